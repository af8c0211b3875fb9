-- name: 09_no_shows
-- question: How many sold bookings were never used?
-- description: Sold bookings that travelled and were not redeemed, NOSHOW included. Where a product has neither redeemed nor NOSHOW ones, nobody counts arrivals, and the rate is left empty.
-- parameter: first: date: today-30d: First travel date.
-- parameter: last: date: today-1d: Last travel date.
select
  product_name,
  count(*) as sold,
  count(*) filter (where is_redeemed) as redeemed,
  count(*) filter (where not is_redeemed) as not_redeemed,
  case when count(*) filter (where is_redeemed or status = 'NOSHOW') > 0
    then cast(count(*) filter (where not is_redeemed) as double precision) / count(*) end as no_show_rate,
  cast(sum(pax_count) filter (where not is_redeemed) as bigint) as guests_not_redeemed,
  min(verified_at_utc) as verified_at_utc
from marts.fct_bookings
where is_sold and travel_date between cast($first as date) and cast($last as date)
group by product_key, product_name
order by product_name, product_key
