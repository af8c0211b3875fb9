-- name: occupancy_products
-- description: How full each product is in a time of travel.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+41d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
select
  product_key,
  product_name,
  count(*) as days,
  cast(sum(departures) as bigint) as departures,
  cast(sum(capacity) as bigint) as capacity,
  cast(sum(taken) as bigint) as taken,
  cast(sum(taken) as double precision) / nullif(cast(sum(capacity) as double precision), 0) as fill_rate,
  count(case when sold_out_departures > 0 and sold_out_departures + closed_departures = departures then 1 end)
    as sold_out_days,
  count(case when closed_departures = departures then 1 end) as closed_days,
  count(case
    when fill_rate < 0.2 and not (sold_out_departures > 0 and sold_out_departures + closed_departures = departures) then 1
  end) as weak_days,
  case when count(*) = count(our_guests) then cast(sum(our_guests) as bigint) end as our_guests,
  min(case when is_covered then 1 else 0 end) = 1 as is_covered
from marts.agg_occupancy_daily
where is_followed and travel_date between cast($first as date) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
group by product_key, product_name
order by product_name, product_key
