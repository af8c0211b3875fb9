-- name: unique_keys
-- description: No key occurs twice; big tables have no primary key on purpose, so this is the proof.
select 'suppliers' as table_name, connection_id, supplier_id as id, count(*) as times
from core.suppliers group by connection_id, supplier_id having count(*) > 1
union all
select 'products', connection_id, product_id, count(*)
from core.products group by connection_id, product_id having count(*) > 1
union all
select 'options', connection_id, product_id || '|' || option_id, count(*)
from core.options group by connection_id, product_id, option_id having count(*) > 1
union all
select 'units', connection_id, product_id || '|' || option_id || '|' || unit_id, count(*)
from core.units group by connection_id, product_id, option_id, unit_id having count(*) > 1
union all
select 'extras', connection_id, product_id || '|' || option_id || '|' || unit_id || '|' || extra_id, count(*)
from core.extras group by connection_id, product_id, option_id, unit_id, extra_id having count(*) > 1
union all
select 'product_content', connection_id, product_id || '|' || option_id || '|' || language, count(*)
from core.product_content group by connection_id, product_id, option_id, language having count(*) > 1
union all
select 'unit_prices', connection_id, product_id || '|' || option_id || '|' || unit_id || '|' || currency, count(*)
from core.unit_prices where is_current
group by connection_id, product_id, option_id, unit_id, currency having count(*) > 1
union all
select 'availability', connection_id, product_id || '|' || option_id || '|' || availability_id, count(*)
from core.availability group by connection_id, product_id, option_id, availability_id having count(*) > 1
union all
select 'availability_prices', connection_id, product_id || '|' || option_id || '|' || availability_id, count(*)
from core.availability_prices
group by connection_id, product_id, option_id, availability_id, unit_id, currency having count(*) > 1
union all
select 'bookings', connection_id, booking_uuid, count(*)
from core.bookings group by connection_id, booking_uuid having count(*) > 1
union all
select 'booking_unit_items', connection_id, booking_uuid || '|' || unit_item_uuid, count(*)
from core.booking_unit_items group by connection_id, booking_uuid, unit_item_uuid having count(*) > 1
union all
select 'booking_extra_items', connection_id, booking_uuid || '|' || unit_item_uuid || '|' || extra_id, count(*)
from core.booking_extra_items group by connection_id, booking_uuid, unit_item_uuid, extra_id having count(*) > 1
union all
select 'booking_taxes', connection_id, booking_uuid, count(*)
from core.booking_taxes group by connection_id, booking_uuid, name having count(*) > 1
union all
select 'coverage', connection_id, resource || ' ' || key, count(*)
from ops.coverage group by connection_id, resource, key having count(*) > 1
