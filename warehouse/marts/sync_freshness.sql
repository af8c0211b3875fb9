-- name: sync_freshness
-- grain: One connection and resource.
-- description: How old the oldest and newest verification are, and what is open. A booking is as fresh as in fct_bookings, a product as its own or the catalogue's, whichever is newer. Months and bookings that were over when the connection was last heard of, and what is offered no more, are left out.
-- column: resource: Kind of subject; open_dated: bookings without a day of travel that a list showed; unlisted: other bookings for which no list by day of travel and no answer of their own speaks, as all are that a service lists by day of booking.
-- column: subjects: How many there are; of booking those that were asked for alone.
-- column: oldest_verified_at: When the one verified longest ago was verified.
-- column: last_verified_at: When one was last verified.
-- column: minutes_behind: Minutes from the oldest verification to the last of anything of this connection, which is what the copy calls now.
-- column: incomplete_subjects: Those whose answer were not stored completely.
-- column: missed_rows: Rows that complete answers no longer had, not yet proven gone or held back; a booking counts for 'booking' and 'bookings', a product for 'product' and 'products'.
-- column: open_subjects: Subjects and records that were never answered, are incomplete, in quarantine or to be asked again for a missed row.
-- column: is_complete: Whether nothing of it is open, incomplete or missed: the one definition that status, the dashboard and the questions use.
-- column: failures_7d: Those in quarantine that failed in the last seven days.
with newest as (
  select connection_id, max(verified_at_utc) as at_utc from ops.coverage group by connection_id
),
asked as (
  select c.*
  from ops.coverage c
  left join core.options o
    on o.connection_id = c.connection_id and o.product_id = c.product_id and o.option_id = c.option_id
  left join core.products p on p.connection_id = c.connection_id and p.product_id = c.product_id
  where not coalesce(o.is_deleted, false) and not coalesce(p.is_deleted, false)
),
evidence as (
  -- One line a subject that is not over, with the newest complete answer that speaks for it: its own or its list's.
  select
    c.connection_id,
    c.resource,
    c.key,
    c.is_complete,
    greatest(c.verified_at_utc, listed.verified_at_utc, case when f.is_covered then f.verified_at_utc end) as verified_at_utc
  from asked c
  join newest on newest.connection_id = c.connection_id
  left join core.bookings b
    on c.resource in ('booking', 'open_dated') and b.connection_id = c.connection_id
    and c.key = '["' || b.booking_uuid || '"]'
  left join ops.absences a
    on c.resource = 'product' and a.connection_id = c.connection_id and a.key = c.key and a.table_name = 'core.products'
  left join ops.coverage listed
    on listed.connection_id = c.connection_id and listed.is_complete and a.key is null
    and c.resource = 'product' and listed.resource = 'products'
  left join marts.fct_bookings f on f.connection_id = b.connection_id and f.booking_uuid = b.booking_uuid
  where coalesce(c.window_end, b.local_date, date '9999-12-31') >= cast(newest.at_utc at time zone 'UTC' as date)
    and not (c.is_complete and c.resource in ('booking', 'open_dated') and (
      coalesce(b.is_deleted, c.row_count = 0)
      or (b.local_date is null and b.status not in ('ON_HOLD', 'CONFIRMED', 'PENDING'))))
  union all
  -- Bookings that are not over and of which no answer of their own and no list by day of travel is on record.
  select f.connection_id, 'unlisted', '["' || f.booking_uuid || '"]', f.is_covered, f.verified_at_utc
  from marts.fct_bookings f
  join newest on newest.connection_id = f.connection_id
  left join ops.coverage own
    on own.connection_id = f.connection_id and own.resource in ('booking', 'open_dated')
    and own.key = '["' || f.booking_uuid || '"]'
  left join marts.booking_lists v
    on v.connection_id = f.connection_id and v.travel_month = f.travel_month
    and f.travel_date between v.window_start and v.window_end
  where own.key is null and v.connection_id is null
    and (f.travel_date >= cast(newest.at_utc at time zone 'UTC' as date)
      or f.travel_date is null and (f.status in ('ON_HOLD', 'CONFIRMED', 'PENDING') or not f.is_covered))
),
verified as (
  select
    connection_id,
    resource,
    count(*) as subjects,
    min(verified_at_utc) as oldest_verified_at,
    max(verified_at_utc) as last_verified_at,
    count(case when not is_complete then 1 end) as incomplete_subjects
  from evidence
  group by connection_id, resource
),
unproven as (
  select connection_id, resource, key from asked where not is_complete
  union
  select connection_id, resource, key from evidence where not is_complete
  union
  select connection_id, resource, key from ops.unanswered
  union
  select connection_id, resource, key from ops.quarantine
  union
  select connection_id, resource, subject_key from ops.absences
),
missed as (
  select connection_id, resource, count(*) as missed_rows
  from (
    select connection_id, resource from ops.absences
    union all
    -- Whichever of the two is asked, it lacks in both.
    select a.connection_id, other.resource
    from ops.absences a
    join (values ('booking', 'bookings'), ('bookings', 'booking'), ('product', 'products'), ('products', 'product'))
      as other(asked, resource) on other.asked = a.resource
  ) as missing
  group by connection_id, resource
),
failing as (
  select
    q.connection_id,
    q.resource,
    count(case when newest.at_utc is null or q.last_at_utc >= newest.at_utc - interval '7 days' then 1 end) as failures_7d
  from ops.quarantine q
  left join newest on newest.connection_id = q.connection_id
  group by q.connection_id, q.resource
),
kinds as (
  select connection_id, resource from verified
  union
  select connection_id, resource from unproven
  union
  select connection_id, resource from missed
),
still_open as (
  select connection_id, resource, count(*) as open_subjects from unproven group by connection_id, resource
)
select
  k.connection_id,
  k.resource,
  coalesce(v.subjects, 0) as subjects,
  v.oldest_verified_at,
  v.last_verified_at,
  cast(floor(extract(epoch from (newest.at_utc - v.oldest_verified_at)) / 60) as bigint) as minutes_behind,
  coalesce(v.incomplete_subjects, 0) as incomplete_subjects,
  coalesce(missed.missed_rows, 0) as missed_rows,
  coalesce(still_open.open_subjects, 0) as open_subjects,
  coalesce(failing.failures_7d, 0) as failures_7d,
  coalesce(v.incomplete_subjects, 0) + coalesce(missed.missed_rows, 0) + coalesce(still_open.open_subjects, 0) = 0
    as is_complete
from kinds k
left join newest on newest.connection_id = k.connection_id
left join verified v on v.connection_id = k.connection_id and v.resource = k.resource
left join missed on missed.connection_id = k.connection_id and missed.resource = k.resource
left join failing on failing.connection_id = k.connection_id and failing.resource = k.resource
left join still_open on still_open.connection_id = k.connection_id and still_open.resource = k.resource
