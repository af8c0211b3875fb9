-- name: 01_bookings_per_day
-- question: How many bookings and guests per day?
-- description: Bookings by the day they were made, in the business time zone; days without any included.
-- parameter: first: date: today-30d: First booking date.
-- parameter: last: date: today: Last booking date.
with known as (
  select max(bookings_from) as first_day, min(as_of_date) as today from marts.dim_channel where is_active
)
select
  d.date_key as booking_date,
  d.weekday_name,
  cast(coalesce(sum(a.bookings), 0) as bigint) as bookings,
  cast(coalesce(sum(a.sold), 0) as bigint) as sold,
  cast(coalesce(sum(a.cancelled), 0) as bigint) as cancelled,
  cast(coalesce(sum(a.pax), 0) as bigint) as guests,
  d.date_key >= k.first_day and d.date_key < k.today
    and coalesce(min(case when a.is_complete is null then null when a.is_complete then 1 else 0 end), 1) = 1 as is_complete
from marts.dim_date d
cross join known k
left join marts.agg_bookings_daily a on a.booking_date = d.date_key
where d.date_key between cast($first as date) and cast($last as date)
group by d.date_key, d.weekday_name, k.first_day, k.today
order by d.date_key
