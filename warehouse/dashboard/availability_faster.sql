-- name: availability_faster
-- description: Departures of the next 30 days that are fuller by a fifth of their places than was usual so many days ahead; and since when this copy has seen departures.
-- parameter: product: text: : One product alone (product_key); null: all.
with shown as (
  select *, fill_rate - usual_fill_rate as above
  from marts.filling_pace
  where cast($product as text) is null or product_key = cast($product as text)
)
select
  departures,
  compared,
  departure_key as slot_key,
  travel_date,
  local_start_at,
  is_all_day,
  product_name,
  option_name,
  days_ahead,
  taken,
  capacity,
  fill_rate,
  usual_fill_rate,
  compared_departures,
  known_since_utc
from (select count(*) as departures, count(above) as compared from shown) as counted
cross join (select min(first_seen_at_utc) as known_since_utc from core.availability) as history
-- Without any there is one row, which counts.
left join shown on above >= 0.2
order by above desc, local_start_at, product_name, option_name, slot_key
