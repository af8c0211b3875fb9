-- name: lead_time
-- description: How long before travel bookings that were made in a time and are sold were made, and those of the time before. One row.
-- parameter: before: date: today-60d: First booking date of the time before.
-- parameter: first: date: today-30d: First booking date.
-- parameter: last: date: today-1d: Last booking date.
select
  count(case when booking_date >= cast($first as date) then lead_days end) as with_lead,
  percentile_cont(0.5) within group (order by case when booking_date >= cast($first as date) then lead_days end)
    as median_lead_days,
  percentile_cont(0.5) within group (order by case when booking_date < cast($first as date) then lead_days end)
    as median_before
from marts.fct_bookings
where is_sold and booking_date between cast($before as date) and cast($last as date)
