-- name: fct_bookings
-- grain: One booking.
-- description: Bookings with all names in one table that needs no join. Test bookings and proven deletions are left out.
-- column: booking_key: One column to join bookings on.
-- column: product_key: One column to join products on.
-- column: option_key: One column to join options on.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: supplier_name: The supplier's name.
-- column: product_name: Title, else internal name, else id.
-- column: option_name: Title, else internal name, else id.
-- column: is_sold: CONFIRMED or REDEEMED.
-- column: is_cancelled: CANCELLED.
-- column: is_redeemed: Whether it was used.
-- column: booking_date: Day it was made, in the business time zone.
-- column: travel_date: Day of travel at the venue.
-- column: lead_days: Days from booking to travel.
-- column: margin_amount: Retail minus net, exact.
select
  b.connection_id || '|' || b.booking_uuid as booking_key,
  b.connection_id || '|' || b.product_id as product_key,
  b.connection_id || '|' || b.product_id || '|' || b.option_id as option_key,
  b.connection_id,
  b.booking_uuid,
  b.booking_id,
  b.supplier_reference,
  b.reseller_reference,
  coalesce(c.channel, b.connection_id) as channel_name,
  s.name as supplier_name,
  b.product_id,
  coalesce(p.title, p.internal_name, b.product_id) as product_name,
  b.option_id,
  coalesce(o.title, o.internal_name, b.option_id) as option_name,
  b.availability_id,
  b.status,
  b.status in ('CONFIRMED', 'REDEEMED') as is_sold,
  b.status = 'CANCELLED' as is_cancelled,
  b.utc_redeemed_at is not null as is_redeemed,
  cast(b.utc_created_at at time zone coalesce(c.business_time_zone, 'UTC') as date) as booking_date,
  b.local_date as travel_date,
  b.local_date - cast(b.utc_created_at at time zone coalesce(c.business_time_zone, 'UTC') as date) as lead_days,
  b.local_start_at,
  b.utc_start_at,
  coalesce(b.time_zone, p.time_zone) as time_zone,
  b.utc_created_at,
  b.utc_confirmed_at,
  b.utc_cancelled_at,
  b.utc_redeemed_at,
  b.cancellation_refund,
  b.currency,
  b.currency_precision,
  b.original_amount,
  b.retail_amount,
  b.net_amount,
  b.tax_amount,
  b.retail_amount - b.net_amount as margin_amount,
  b.unit_count,
  b.pax_count
from core.bookings b
left join core.connections c on c.connection_id = b.connection_id
left join core.suppliers s on s.connection_id = c.connection_id and s.supplier_id = c.supplier_id
left join core.products p on p.connection_id = b.connection_id and p.product_id = b.product_id
left join core.options o
  on o.connection_id = b.connection_id and o.product_id = b.product_id and o.option_id = b.option_id
where not b.is_deleted and not b.is_test
