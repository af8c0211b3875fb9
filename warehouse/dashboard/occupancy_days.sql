-- name: occupancy_days
-- description: How full each travel date is, all products together, or one.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+41d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
select
  travel_date,
  cast(sum(departures) as bigint) as departures,
  cast(sum(capacity) as bigint) as capacity,
  cast(sum(taken) as bigint) as taken,
  cast(sum(taken) as double precision) / nullif(cast(sum(capacity) as double precision), 0) as fill_rate,
  cast(sum(sold_out_departures) as bigint) as sold_out_departures,
  cast(sum(closed_departures) as bigint) as closed_departures,
  case when count(*) = count(our_guests) then cast(sum(our_guests) as bigint) end as our_guests
from marts.agg_occupancy_daily
where is_followed and travel_date between cast($first as date) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
group by travel_date
order by travel_date
