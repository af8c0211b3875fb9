-- name: known_currencies
-- description: A price always says its currency and precision.
select connection_id, booking_uuid
from core.bookings
where (retail_minor is not null or net_minor is not null) and (currency is null or currency_precision is null)
