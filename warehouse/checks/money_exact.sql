-- name: money_exact
-- description: Every amount is its minor units, scaled by the currency's own precision, exactly; where nothing in the row is older than the rest.
with amounts as (
  select 'bookings original' as what, connection_id, booking_uuid as id, currency_precision, original_minor as minor,
    original_amount as amount from core.bookings
  union all
  select 'bookings retail', connection_id, booking_uuid, currency_precision, retail_minor,
    retail_amount from core.bookings
  union all
  select 'bookings net', connection_id, booking_uuid, currency_precision, net_minor,
    net_amount from core.bookings
  union all
  select 'bookings tax', connection_id, booking_uuid, currency_precision, tax_minor,
    tax_amount from core.bookings
  union all
  select 'booking_unit_items retail', connection_id, unit_item_uuid, currency_precision, retail_minor,
    retail_amount from core.booking_unit_items
  union all
  select 'booking_unit_items net', connection_id, unit_item_uuid, currency_precision, net_minor,
    net_amount from core.booking_unit_items
  union all
  select 'booking_extra_items original', connection_id, booking_uuid, currency_precision, original_minor,
    original_amount from core.booking_extra_items
  union all
  select 'booking_extra_items retail', connection_id, booking_uuid, currency_precision, retail_minor,
    retail_amount from core.booking_extra_items
  union all
  select 'booking_extra_items net', connection_id, booking_uuid, currency_precision, net_minor,
    net_amount from core.booking_extra_items
  union all
  select 'booking_taxes original', connection_id, booking_uuid, currency_precision, original_minor,
    original_amount from core.booking_taxes
  union all
  select 'booking_taxes retail', connection_id, booking_uuid, currency_precision, retail_minor,
    retail_amount from core.booking_taxes
  union all
  select 'booking_taxes net', connection_id, booking_uuid, currency_precision, net_minor,
    net_amount from core.booking_taxes
  union all
  select 'unit_prices original', connection_id, unit_id, currency_precision, original_minor,
    original_amount from core.unit_prices where is_current
  union all
  select 'unit_prices retail', connection_id, unit_id, currency_precision, retail_minor,
    retail_amount from core.unit_prices where is_current
  union all
  select 'unit_prices net', connection_id, unit_id, currency_precision, net_minor,
    net_amount from core.unit_prices where is_current
  union all
  select 'availability_prices original', connection_id, availability_id, currency_precision, original_minor,
    original_amount from core.availability_prices
  union all
  select 'availability_prices retail', connection_id, availability_id, currency_precision, retail_minor,
    retail_amount from core.availability_prices
  union all
  select 'availability_prices net', connection_id, availability_id, currency_precision, net_minor,
    net_amount from core.availability_prices
),
older as (
  select connection_id, booking_uuid as id from core.bookings where stale_columns is not null
  union all
  select connection_id, unit_item_uuid from core.booking_unit_items where stale_columns is not null
  union all
  select connection_id, availability_id from core.availability where stale_columns is not null
  union all
  select u.connection_id, u.unit_id
  from core.unit_prices u
  join core.products p on p.connection_id = u.connection_id and p.product_id = u.product_id
  where p.stale_columns is not null
)
select what, connection_id, id, currency_precision, minor, amount
from amounts
where amount is distinct from case currency_precision
  when 0 then cast(minor as numeric(24, 4))
  when 1 then cast(minor as numeric(24, 4)) * 0.1
  when 2 then cast(minor as numeric(24, 4)) * 0.01
  when 3 then cast(minor as numeric(24, 4)) * 0.001
  when 4 then cast(minor as numeric(24, 4)) * 0.0001 end
  and not exists (select 1 from older o where o.connection_id = amounts.connection_id and o.id = amounts.id)
