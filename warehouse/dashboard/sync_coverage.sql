-- name: sync_coverage
-- description: The coverage map: each product and travel month, and each connection's bookings, from a month on; by month of booking where the service lists them so.
-- parameter: first: date: month-3: The first month is the one of this day.
select
  v.connection_id,
  v.resource,
  v.product_id,
  coalesce(p.product_name, v.product_id) as product_name,
  v.travel_month,
  v.verified_at_utc,
  v.verified_by,
  v.last_verified_at_utc,
  v.window_start,
  v.window_end,
  v.booking_month,
  v.booked_start,
  v.booked_end,
  v.is_complete,
  v.parts,
  v.parts_wanted,
  v.missing_capabilities,
  v.row_count
from marts.coverage v
left join marts.dim_product p on p.connection_id = v.connection_id and p.product_id = v.product_id
where coalesce(v.travel_month, v.booking_month) >= substr(cast(cast($first as date) as text), 1, 7)
order by v.connection_id, v.resource, v.product_id, v.travel_month, v.booking_month
