-- name: lead_time
-- description: How long before travel bookings that were made in a time and are sold were made. One row.
-- parameter: first: date: today-30d: First booking date.
-- parameter: last: date: today-1d: Last booking date.
select
  count(lead_days) as with_lead,
  percentile_cont(0.5) within group (order by lead_days) as median_lead_days
from marts.fct_bookings
where is_sold and booking_date between cast($first as date) and cast($last as date)
