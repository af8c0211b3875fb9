-- name: booking_lists
-- grain: One connection and month whose bookings were asked for.
-- description: What each list of bookings speaks for: days of travel, or days of booking where the service lists by those. The one place that tells them apart; every mart that says what is known of bookings reads it here.
-- column: key: The month that was asked for, as a JSON array, as in the journal.
-- column: travel_month: First day of the month of travel; null where the service lists by day of booking.
-- column: window_start: First day of travel that was asked for.
-- column: window_end: Last day of travel that was asked for.
-- column: booking_month: First day of the month of booking, where the service lists by it: nothing there speaks for a month of travel.
-- column: booked_start: First day of booking that was asked for, in UTC.
-- column: booked_end: Last day of booking that was asked for, in UTC, no later than the day after it was asked.
-- column: verified_at_utc: When it was asked for; null where no answer ever came.
-- column: verified_by: How: schedule, notification, confirm, repair, timer or user.
-- column: is_complete: Whether it was answered and every record of the answer landed.
-- column: missing_capabilities: Capabilities asked for but not served, comma-separated.
-- column: row_count: Records in the answer.
-- column: answers: 1, or 0 where no answer ever came.
with by_booking as (
  -- As the service's answers showed, or the pipeline says.
  select distinct connection_id
  from ops.schema_drift
  where resource = 'bookings' and kind = 'meaning' and name = 'creation'
),
lists as (
  select
    connection_id, key, travel_month as month, window_start, window_end, verified_at_utc, source, is_complete,
    missing_capabilities, row_count, 1 as answers
  from ops.coverage
  where resource = 'bookings'
  union all
  select connection_id, key, travel_month, null, null, null, null, false, null, null, 0
  from ops.unanswered
  where resource = 'bookings'
)
select
  l.connection_id,
  l.key,
  case when d.connection_id is null then cast(l.month || '-01' as date) end as travel_month,
  case when d.connection_id is null then l.window_start end as window_start,
  case when d.connection_id is null then l.window_end end as window_end,
  case when d.connection_id is not null then cast(l.month || '-01' as date) end as booking_month,
  case when d.connection_id is not null then l.window_start end as booked_start,
  -- Nobody has booked later than it was asked; it may have been tomorrow already where the service is.
  case when d.connection_id is not null
    then least(l.window_end, cast(l.verified_at_utc at time zone 'UTC' as date) + 1) end as booked_end,
  l.verified_at_utc,
  l.source as verified_by,
  l.is_complete,
  l.missing_capabilities,
  l.row_count,
  l.answers
from lists l
left join by_booking d on d.connection_id = l.connection_id
-- Asked for before it was known what the days mean: nobody had booked on them yet.
where d.connection_id is null or l.verified_at_utc is null
  or l.window_start <= cast(l.verified_at_utc at time zone 'UTC' as date) + 1
