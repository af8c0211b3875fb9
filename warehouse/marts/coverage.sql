-- name: coverage
-- grain: One connection, product and month; product null = the month's bookings, or the open-dated ones.
-- description: What the copy can prove: when each part was last verified, how, and whether completely. An equal answer renews it without a new version of anything. What was asked for and never answered is there with no parts or too few. What is offered no more is left out.
-- column: product_key: One column to join products on; null = the month's bookings. Several connections of a supplier have equal ones.
-- column: is_active: Whether the pipeline still has the connection.
-- column: resource: availability, bookings, or open_dated: bookings without a day of travel, which no list by day of travel has to show.
-- column: travel_month: First day of the month of travel; null where the service lists bookings by day of booking, and for open_dated.
-- column: verified_at_utc: When the part verified longest ago was verified.
-- column: verified_by: How: schedule, notification, confirm, repair, timer or user.
-- column: last_verified_at_utc: When the part verified last was verified.
-- column: window_start: First day of travel that was asked for.
-- column: window_end: Last day of travel that was asked for.
-- column: booking_month: First day of the month of booking, where the service lists bookings by it: nothing there speaks for a month of travel.
-- column: booked_start: First day of booking that was asked for, in UTC.
-- column: booked_end: Last day of booking that was asked for, in UTC.
-- column: is_complete: Every part was answered and every record was stored.
-- column: parts: Answers it rests on, 0 where none ever came: one for each option of the product, one for a month's bookings, one for each open-dated booking that is known.
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
subjects as (
  select
    connection_id, resource, key, product_id, option_id, verified_at_utc, source, is_complete, missing_capabilities,
    row_count, 1 as answers, cast(travel_month || '-01' as date) as travel_month, window_start, window_end,
    cast(null as date) as booking_month, cast(null as date) as booked_start, cast(null as date) as booked_end
  from ops.coverage
  where resource = 'availability'
  union all
  select
    connection_id, resource, key, product_id, option_id, null, null, false, null, null, 0,
    cast(travel_month || '-01' as date), null, null, null, null, null
  from ops.unanswered
  where resource = 'availability'
  union all
  select
    connection_id, 'bookings', key, null, null, verified_at_utc, verified_by, is_complete, missing_capabilities,
    row_count, answers, travel_month, window_start, window_end, booking_month, booked_start, booked_end
  from marts.booking_lists
  union all
  -- Not by any window: each by the list that showed it, or by its own answer.
  select
    connection_id, 'open_dated', booking_uuid, null, null, verified_at_utc, verified_by, is_covered, missing_capabilities,
    1, case when is_covered then 1 else 0 end, null, null, null, null, null, null
  from marts.fct_bookings
  where travel_date is null
),
asked as (
  select
    s.*,
    row_number() over (
      partition by s.connection_id, s.resource, s.product_id, s.travel_month, s.booking_month
      order by s.answers desc, s.verified_at_utc, s.key
    ) as age,
    case when s.resource = 'open_dated' then count(*) over (partition by s.connection_id, s.resource)
      else coalesce(offered.options, 1) end as wanted
  from subjects s
  left join offered
    on offered.connection_id = s.connection_id and offered.product_id = s.product_id and s.resource = 'availability'
  left join core.options o
    on o.connection_id = s.connection_id and o.product_id = s.product_id and o.option_id = s.option_id
  left join core.products p on p.connection_id = s.connection_id and p.product_id = s.product_id
  where s.resource <> 'availability' or (not coalesce(o.is_deleted, false) and not coalesce(p.is_deleted, false))
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
  a.booking_month,
  min(a.booked_start) as booked_start,
  max(a.booked_end) as booked_end,
  min(case when a.is_complete then 1 else 0 end) = 1 and sum(a.answers) >= max(a.wanted) as is_complete,
  cast(sum(a.answers) as bigint) as parts,
  max(a.wanted) as parts_wanted,
  coalesce(
    string_agg(
      distinct nullif(a.missing_capabilities, '') collate "C", ',' order by nullif(a.missing_capabilities, '') collate "C"
    ),
    ''
  ) as missing_capabilities,
  cast(sum(a.row_count) as bigint) as row_count,
  coalesce(c.supplier_key, a.connection_id) || '|' || a.product_id as product_key,
  coalesce(c.is_active, false) as is_active
from asked a
left join marts.supplier_connections c on c.connection_id = a.connection_id
group by a.connection_id, c.supplier_key, c.is_active, a.resource, a.product_id, a.travel_month, a.booking_month
