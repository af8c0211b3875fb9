-- name: 06_lead_time
-- question: How long before travel do people book, by channel?
-- description: Median days between booking and travel, both at the venue, of sold bookings with a travel date.
-- parameter: first: date: today-90d: First booking date.
-- parameter: last: date: today: Last booking date.
select
  channel_name,
  count(*) as bookings,
  percentile_cont(0.5) within group (order by lead_days) as median_lead_days,
  min(lead_days) as shortest,
  max(lead_days) as longest,
  min(verified_at_utc) as verified_at_utc
from marts.fct_bookings
where is_sold and lead_days is not null and booking_date between cast($first as date) and cast($last as date)
group by channel_name
order by channel_name
