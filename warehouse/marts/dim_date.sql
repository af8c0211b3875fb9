-- name: dim_date
-- grain: One day.
-- description: Every day of the years in which something was booked, sold or cancelled, or travels, and of those in between and up to the copy's today, without gaps; none before 1970 or after 2199.
-- materialize: table
-- column: date_key: The day.
-- column: year: Calendar year.
-- column: quarter: 1 to 4.
-- column: month: 1 to 12.
-- column: travel_month: First day of its month.
-- column: day_of_month: 1 to 31.
-- column: iso_year: Year of the ISO week; differs from the calendar year around New Year.
-- column: iso_week: ISO week, 1 to 53; weeks begin on Monday.
-- column: weekday: ISO weekday: 1 Monday to 7 Sunday.
-- column: weekday_name: Its English name.
-- column: is_weekend: Saturday or Sunday.
with instants as (
  select connection_id, utc_created_at as at_utc from core.bookings
  union all select connection_id, utc_confirmed_at from core.bookings
  union all select connection_id, utc_cancelled_at from core.bookings
),
edges as (
  -- The first and the last stand for all others, whatever the time zone.
  select connection_id, min(at_utc) as first_utc, max(at_utc) as last_utc
  from instants
  where at_utc between timestamptz '1970-01-01 00:00:00+00' and timestamptz '2199-12-31 23:59:59+00'
  group by connection_id
),
booked as (
  select
    cast(e.first_utc at time zone coalesce(c.business_time_zone, 'UTC') as date) as first_day,
    cast(e.last_utc at time zone coalesce(c.business_time_zone, 'UTC') as date) as last_day
  from edges e
  left join core.connections c on c.connection_id = e.connection_id
),
days as (
  select local_date as day from core.availability
  union all select local_date from core.bookings
  union all select first_day from booked
  union all select last_day from booked
  -- Also where nothing was booked on days that are known.
  union all select booked_from from marts.dim_channel
  union all select as_of_date from marts.dim_channel
),
span as (
  select
    date_trunc('year', cast(min(day) as timestamp)) as first_day,
    date_trunc('year', cast(max(day) as timestamp)) + interval '1 year' - interval '1 day' as last_day
  from days
  where day between date '1970-01-01' and date '2199-12-31'
),
calendar as (
  select cast(series.day as date) as date_key
  from span cross join lateral generate_series(span.first_day, span.last_day, interval '1 day') as series(day)
)
select
  date_key,
  cast(extract(year from date_key) as integer) as year,
  cast(extract(quarter from date_key) as integer) as quarter,
  cast(extract(month from date_key) as integer) as month,
  date_key - (cast(extract(day from date_key) as integer) - 1) as travel_month,
  cast(extract(day from date_key) as integer) as day_of_month,
  cast(extract(isoyear from date_key) as integer) as iso_year,
  cast(extract(week from date_key) as integer) as iso_week,
  cast(extract(isodow from date_key) as integer) as weekday,
  case extract(isodow from date_key)
    when 1 then 'Monday' when 2 then 'Tuesday' when 3 then 'Wednesday' when 4 then 'Thursday'
    when 5 then 'Friday' when 6 then 'Saturday' else 'Sunday' end as weekday_name,
  extract(isodow from date_key) >= 6 as is_weekend
from calendar
