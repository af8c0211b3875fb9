-- name: 23_pace
-- question: Which months fill faster or slower than last year?
-- description: Guests and retail amounts on the books when yesterday ended, new guests of the last 7 days beside a usual week of the four before, and what the month a year earlier had at the same time and in the end: empty unless all its bookings are known. All channels together; what is unknown for one of them is empty.
-- parameter: first: date: month: First travel month.
-- parameter: last: date: month+6: Last travel month.
with products as (
  select
    *, min(case when is_last_year_complete then 1 else 0 end) over (
      partition by product_key, travel_month, currency
    ) = 1 as is_last_year_known
  from marts.agg_pickup
  where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
)
select
  product_name,
  travel_month,
  case when count(*) = count(guests) then cast(sum(guests) as bigint) end as guests,
  case when is_last_year_known and count(*) = count(last_year_guests) then cast(sum(last_year_guests) as bigint) end
    as last_year_guests,
  min(case when is_complete then 1 else 0 end) = 1 as is_complete,
  case when is_last_year_known and count(*) = count(last_year_final_guests) then cast(sum(last_year_final_guests) as bigint) end
    as last_year_final,
  case when count(*) = count(guests - guests_7_days_ago) then cast(sum(guests - guests_7_days_ago) as bigint) end as new_in_7_days,
  case when count(*) = count(guests_7_days_ago - guests_35_days_ago)
    then cast(sum(guests_7_days_ago - guests_35_days_ago) as double precision) / 4 end as usual_week,
  currency,
  case when count(*) = count(retail_amount) then sum(retail_amount) end as retail_amount,
  case when is_last_year_known and count(*) = count(last_year_amount) then sum(last_year_amount) end as last_year_amount,
  cast(sum(bookings_without_guests) as bigint) as bookings_without_guests
from products
group by product_key, product_name, travel_month, currency, is_last_year_known
order by product_name, product_key, travel_month, currency
