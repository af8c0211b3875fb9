-- name: 03_fill_rate_heat_map
-- question: How full is each product on each day?
-- description: One cell a row; unknown capacity is left empty, closed departures do not count as full.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+59d: Last travel date.
select
  o.product_name,
  o.travel_date,
  d.weekday_name,
  o.fill_rate,
  o.taken,
  o.capacity,
  o.departures,
  o.closed_departures,
  o.verified_at_utc
from marts.agg_occupancy_daily o
join marts.dim_date d on d.date_key = o.travel_date
where o.is_followed and o.travel_date between cast($first as date) and cast($last as date)
order by o.product_name, o.product_key, o.travel_date
