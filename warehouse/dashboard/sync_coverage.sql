-- name: sync_coverage
-- description: The coverage map: each product and travel month once for all connections of a supplier, and each connection's bookings, from a month on; by month of booking where the service lists them so.
-- parameter: first: date: month-3: The first month is the one of this day.
with asked as (
  select
    coalesce(c.supplier_key, v.connection_id) as supplier_key,
    c.channel_name,
    v.*,
    -- What a connection that left was told counts where no other asks.
    max(case when v.is_active then 1 else 0 end) over same as is_asked,
    row_number() over (same order by v.is_active desc, v.verified_at_utc, v.connection_id collate "C") as place
  from marts.coverage v
  left join marts.supplier_connections c on c.connection_id = v.connection_id
  where coalesce(v.travel_month, v.booking_month) >= date_trunc('month', cast($first as timestamp))
  window same as (
    partition by v.resource, v.product_key, v.travel_month, v.booking_month, case when v.product_key is null then v.connection_id end
  )
)
select
  v.supplier_key,
  case when v.resource = 'bookings' then v.connection_id end as connection_id,
  case when v.resource = 'bookings' then v.channel_name end as channel_name,
  v.resource,
  v.product_key,
  coalesce(p.product_name, v.product_id) as product_name,
  v.travel_month,
  min(v.verified_at_utc) as verified_at_utc,
  max(case when v.place = 1 then v.verified_by end) as verified_by,
  max(v.last_verified_at_utc) as last_verified_at_utc,
  min(v.window_start) as window_start,
  max(v.window_end) as window_end,
  v.booking_month,
  min(v.booked_start) as booked_start,
  max(v.booked_end) as booked_end,
  min(case when v.is_complete then 1 else 0 end) = 1 as is_complete,
  cast(sum(v.parts) as bigint) as parts,
  cast(sum(v.parts_wanted) as bigint) as parts_wanted,
  string_agg(
    distinct nullif(v.missing_capabilities, '') collate "C", ',' order by nullif(v.missing_capabilities, '') collate "C"
  ) as missing_capabilities,
  -- Those who share a supplier are told of the same records.
  max(v.row_count) as row_count
from asked v
left join marts.dim_product p on p.product_key = v.product_key
where v.is_active or v.is_asked = 0
group by
  v.supplier_key, case when v.resource = 'bookings' then v.connection_id end,
  case when v.resource = 'bookings' then v.channel_name end, v.resource, v.product_key, v.product_id,
  p.product_name, v.travel_month, v.booking_month
order by v.supplier_key, v.resource, v.product_key, connection_id, v.travel_month, v.booking_month
