-- name: occupancy_departures
-- description: Departures of a time that are sold out, or open and at least 90 % or less than 20 % full, by time of start.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+41d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
select
  departure_key as slot_key,
  travel_date,
  local_start_at,
  product_name,
  option_name,
  case when is_sold_out then 'sold out' when fill_rate >= 0.9 then 'nearly' else 'weak' end as state,
  taken,
  capacity,
  fill_rate,
  our_pax
from marts.fct_departures
where is_followed
  and travel_date between cast($first as date) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (is_sold_out or ((fill_rate >= 0.9 or fill_rate < 0.2) and not is_closed))
order by local_start_at, product_name, option_name, departure_key
