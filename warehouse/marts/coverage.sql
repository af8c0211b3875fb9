-- name: coverage
-- grain: One connection, product and travel month; product null = the month's bookings.
-- description: What the copy can prove: when each part was last verified, by which road, and whether wholly.
select
  connection_id,
  resource,
  product_id,
  travel_month,
  min(verified_at_utc) as verified_at_utc,
  min(window_start) as window_start,
  max(window_end) as window_end,
  min(case when is_complete then 1 else 0 end) = 1 as is_complete,
  max(missing_capabilities) as missing_capabilities,
  max(source) as verified_by,
  sum(row_count) as row_count
from ops.coverage
where resource in ('availability', 'bookings')
group by connection_id, resource, product_id, travel_month
