-- name: coverage
-- grain: One connection, product and travel month; product null = the month's bookings.
-- description: What the copy can prove: when each part was last verified, by which road, and whether wholly. An equal answer renews it without a new version of anything. What is offered no more is left out.
-- column: resource: availability or bookings.
-- column: travel_month: YYYY-MM.
-- column: verified_at_utc: When the part verified longest ago was verified.
-- column: verified_by: By which road that was: schedule, notification, confirm, repair, timer or user.
-- column: last_verified_at_utc: When the part verified last was verified.
-- column: window_start: First day that was asked for.
-- column: window_end: Last day that was asked for.
-- column: is_complete: Whether every part was answered and every record of every answer landed.
-- column: parts: Answers it rests on: one for each option of the product, one for a month's bookings.
-- column: parts_wanted: How many there have to be.
-- column: missing_capabilities: Capabilities asked for but not served, comma-separated.
-- column: row_count: Records in the answers.
with offered as (
  select o.connection_id, o.product_id, count(*) as options
  from core.options o
  join core.products p on p.connection_id = o.connection_id and p.product_id = o.product_id
  where not o.is_deleted and not p.is_deleted
  group by o.connection_id, o.product_id
),
answers as (
  select
    c.*,
    row_number() over (
      partition by c.connection_id, c.resource, c.product_id, c.travel_month order by c.verified_at_utc, c.key
    ) as age
  from ops.coverage c
  left join core.options o
    on o.connection_id = c.connection_id and o.product_id = c.product_id and o.option_id = c.option_id
  left join core.products p on p.connection_id = c.connection_id and p.product_id = c.product_id
  where c.resource = 'bookings'
    or (c.resource = 'availability' and not coalesce(o.is_deleted, false) and not coalesce(p.is_deleted, false))
)
select
  a.connection_id,
  a.resource,
  a.product_id,
  a.travel_month,
  min(a.verified_at_utc) as verified_at_utc,
  max(case when a.age = 1 then a.source end) as verified_by,
  max(a.verified_at_utc) as last_verified_at_utc,
  min(a.window_start) as window_start,
  max(a.window_end) as window_end,
  min(case when a.is_complete then 1 else 0 end) = 1
    and count(*) >= coalesce(max(offered.options), 1) as is_complete,
  count(*) as parts,
  coalesce(max(offered.options), 1) as parts_wanted,
  coalesce(
    string_agg(distinct nullif(a.missing_capabilities, ''), ',' order by nullif(a.missing_capabilities, '')), ''
  ) as missing_capabilities,
  cast(sum(a.row_count) as bigint) as row_count
from answers a
left join offered
  on offered.connection_id = a.connection_id and offered.product_id = a.product_id and a.resource = 'availability'
group by a.connection_id, a.resource, a.product_id, a.travel_month
