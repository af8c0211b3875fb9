-- name: 05_cancellation_rate
-- question: What share of sales is cancelled, by channel and month?
-- description: Bookings made in the month that were ever sold, and those of them cancelled since; a hold that was let go is no cancellation.
-- parameter: first: date: month-11: First booking date.
-- parameter: last: date: today: Last booking date.
select
  channel_name,
  booking_date - (cast(extract(day from booking_date) as integer) - 1) as booking_month,
  count(*) as was_sold,
  count(*) filter (where is_cancelled) as cancelled,
  cast(count(*) filter (where is_cancelled) as double precision) / count(*) as cancellation_rate,
  min(verified_at_utc) as verified_at_utc
from marts.fct_bookings
where was_sold and booking_date between cast($first as date) and cast($last as date)
group by channel_name, booking_month
order by channel_name, booking_month
