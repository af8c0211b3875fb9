-- name: lead_time
-- description: Of bookings that were made in a time and in the time before: how many were sold, how many of them are cancelled since, and how long before travel those still sold were made; also of each seven days, the last ones first.
-- parameter: before: date: today-60d: First booking date of the time before.
-- parameter: first: date: today-30d: First booking date.
-- parameter: last: date: today-1d: Last booking date.
with made as (
  select
    booking_date >= cast($first as date) as is_recent,
    cast(floor((cast($last as date) - booking_date) / 7.0) as bigint) as weeks_ago,
    is_cancelled,
    case when is_sold then lead_days end as lead_days
  from marts.fct_bookings
  where was_sold and booking_date between cast($before as date) and cast($last as date)
)
select
  is_recent,
  weeks_ago,
  count(*) as was_sold,
  count(case when is_cancelled then 1 end) as cancelled,
  count(lead_days) as with_lead,
  percentile_cont(0.5) within group (order by lead_days) as median_lead_days
from made
group by grouping sets ((is_recent), (weeks_ago))
order by is_recent, weeks_ago
