-- name: occupancy
-- description: One cell a row: a product and a travel date. The products with the most departures in that time come first, at most 40 of them.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+41d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
with chosen as (
  select product_key, cast(sum(departures) as bigint) as departures
  from marts.agg_occupancy_daily
  where is_followed and travel_date between cast($first as date) and cast($last as date)
    and (cast($product as text) is null or product_key = cast($product as text))
  group by product_key
),
ranked as (
  select product_key, row_number() over (order by departures desc, product_key) as place, count(*) over () as products
  from chosen
)
select
  r.products,
  o.product_key,
  o.product_name,
  o.travel_date,
  o.departures,
  o.measured_departures,
  o.capacity,
  o.taken,
  o.fill_rate,
  o.sold_out_departures,
  o.closed_departures,
  o.our_guests,
  o.is_covered
from ranked r
join marts.agg_occupancy_daily o on o.product_key = r.product_key
where r.place <= 40 and o.is_followed and o.travel_date between cast($first as date) and cast($last as date)
order by o.product_name, o.product_key, o.travel_date
