-- name: money_exact
-- description: Every amount is its minor units, scaled by the currency's own precision, exactly; where nothing in the record is older than the rest.
with amounts as (
  select 'bookings original' as what, connection_id, booking_uuid as id, 'bookings' as owner, booking_uuid as owner_key, currency_precision,
    original_minor as minor, original_amount as amount from core.bookings
  union all
  select 'bookings retail', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    retail_minor, retail_amount from core.bookings
  union all
  select 'bookings net', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    net_minor, net_amount from core.bookings
  union all
  select 'bookings tax', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    tax_minor, tax_amount from core.bookings
  union all
  select 'booking_unit_items retail', connection_id, unit_item_uuid, 'booking_unit_items', unit_item_uuid, currency_precision,
    retail_minor, retail_amount from core.booking_unit_items
  union all
  select 'booking_unit_items net', connection_id, unit_item_uuid, 'booking_unit_items', unit_item_uuid, currency_precision,
    net_minor, net_amount from core.booking_unit_items
  union all
  select 'booking_extra_items original', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    original_minor, original_amount from core.booking_extra_items
  union all
  select 'booking_extra_items retail', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    retail_minor, retail_amount from core.booking_extra_items
  union all
  select 'booking_extra_items net', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    net_minor, net_amount from core.booking_extra_items
  union all
  select 'booking_taxes original', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    original_minor, original_amount from core.booking_taxes
  union all
  select 'booking_taxes retail', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    retail_minor, retail_amount from core.booking_taxes
  union all
  select 'booking_taxes net', connection_id, booking_uuid, 'bookings', booking_uuid, currency_precision,
    net_minor, net_amount from core.booking_taxes
  union all
  select 'unit_prices original', connection_id, unit_id, 'products', product_id, currency_precision,
    original_minor, original_amount from core.unit_prices where is_current
  union all
  select 'unit_prices retail', connection_id, unit_id, 'products', product_id, currency_precision,
    retail_minor, retail_amount from core.unit_prices where is_current
  union all
  select 'unit_prices net', connection_id, unit_id, 'products', product_id, currency_precision,
    net_minor, net_amount from core.unit_prices where is_current
  union all
  select 'availability_prices original', connection_id, availability_id, 'availability', product_id || '|' || option_id || '|' || availability_id, currency_precision,
    original_minor, original_amount from core.availability_prices
  union all
  select 'availability_prices retail', connection_id, availability_id, 'availability', product_id || '|' || option_id || '|' || availability_id, currency_precision,
    retail_minor, retail_amount from core.availability_prices
  union all
  select 'availability_prices net', connection_id, availability_id, 'availability', product_id || '|' || option_id || '|' || availability_id, currency_precision,
    net_minor, net_amount from core.availability_prices
),
wrong as materialized (
  select *
  from amounts
  -- Compared with 1, so that PostgreSQL expects few rows and asks several processes: of a bare comparison it expects nearly all.
  where case when amount is distinct from case currency_precision
    when 0 then cast(minor as numeric(24, 4))
    when 1 then cast(minor as numeric(24, 4)) * 0.1
    when 2 then cast(minor as numeric(24, 4)) * 0.01
    when 3 then cast(minor as numeric(24, 4)) * 0.001
    when 4 then cast(minor as numeric(24, 4)) * 0.0001 end then 1 end = 1
),
-- Whose own values or details are older in part.
older as (
  select 'bookings' as owner, connection_id, booking_uuid as owner_key from core.bookings where stale_columns is not null
  union all
  select 'booking_unit_items', connection_id, unit_item_uuid from core.booking_unit_items where stale_columns is not null
  union all
  select 'products', connection_id, product_id from core.products where stale_columns is not null
  union all
  select 'availability', connection_id, product_id || '|' || option_id || '|' || availability_id
  from core.availability
  where stale_columns is not null
)
select what, connection_id, id, currency_precision, minor, amount
from wrong w
where not exists (
  select 1 from older o where o.owner = w.owner and o.connection_id = w.connection_id and o.owner_key = w.owner_key
)
