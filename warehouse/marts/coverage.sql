-- name: coverage
-- grain: One connection, product and travel month; product null = the month's bookings.
-- description: What the copy can prove: when each part was last verified, by which road, and whether wholly.
-- column: resource: availability or bookings.
-- column: travel_month: YYYY-MM.
-- column: verified_at_utc: When the part verified longest ago was verified.
-- column: window_start: First day that was asked for.
-- column: window_end: Last day that was asked for.
-- column: is_complete: Whether every record of every answer landed.
-- column: missing_capabilities: Capabilities asked for but not served.
-- column: verified_by: schedule, notification, confirm, repair or user.
-- column: row_count: Records in the answers.
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
