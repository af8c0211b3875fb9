-- name: 07_pick_up
-- question: What share of a month's guests is on the books 30, 14 and 7 days out?
-- description: Of months that are over: guests of all channels who had booked by then, of all who were sold in the end; bookings_without_guests counts bookings that do not say how many guests, and where no booking of a channel says it, guests are unknown. Where a service lists by day of booking, no month is known completely: none is shown, or beside another channel's not as complete.
-- parameter: first: date: month-6: First travel month.
-- parameter: last: date: month-1: Last travel month.
with products as (
  select
    product_key,
    product_name,
    travel_month,
    days_out,
    case when count(*) = count(guests_on_books) then cast(sum(guests_on_books) as bigint) end as guests_on_books,
    case when count(*) = count(final_guests) then cast(sum(final_guests) as bigint) end as final_guests,
    cast(sum(bookings_without_guests) as bigint) as bookings_without_guests,
    min(case when is_complete and is_final then 1 else 0 end) as is_complete
  from marts.agg_pickup_curve
  where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  group by product_key, product_name, travel_month, days_out
  -- Of a channel of which it is not known whether the month is over, what is known is counted all the same.
  having max(case when is_final then 1 else 0 end) = 1
)
select
  product_name,
  travel_month,
  cast(max(guests_on_books) filter (where days_out = 30) as double precision) / nullif(max(final_guests), 0) as share_30,
  cast(max(guests_on_books) filter (where days_out = 14) as double precision) / nullif(max(final_guests), 0) as share_14,
  cast(max(guests_on_books) filter (where days_out = 7) as double precision) / nullif(max(final_guests), 0) as share_7,
  min(is_complete) = 1 as is_complete,
  max(final_guests) as final_guests,
  max(guests_on_books) filter (where days_out = 30) as guests_30_days_out,
  max(guests_on_books) filter (where days_out = 14) as guests_14_days_out,
  max(guests_on_books) filter (where days_out = 7) as guests_7_days_out,
  max(bookings_without_guests) as bookings_without_guests
from products
group by product_key, product_name, travel_month
order by product_name, product_key, travel_month
