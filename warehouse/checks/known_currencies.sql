-- name: known_currencies
-- description: A price always says its currency and precision, where nothing in the row is older than the rest.
select 'bookings' as table_name, connection_id, booking_uuid as id
from core.bookings
where stale_columns is null and (retail_minor is not null or net_minor is not null) and (currency is null or currency_precision is null)
union all
select 'booking_unit_items', connection_id, unit_item_uuid
from core.booking_unit_items
where stale_columns is null and (retail_minor is not null or net_minor is not null) and (currency is null or currency_precision is null)
union all
select 'unit_prices', connection_id, unit_id
from core.unit_prices
where (retail_minor is not null or net_minor is not null) and (currency is null or currency_precision is null)
