-- name: 04_weak_departures
-- question: Which departures of the coming days are weak?
-- description: Departures that are not closed and, of a known capacity, less full than `below` (0.2 is 20 %), the emptiest first.
-- parameter: first: date: today+1d: First travel date.
-- parameter: last: date: today+7d: Last travel date.
-- parameter: below: number: 0.2: Weak is below this share.
select
  product_name,
  option_name,
  local_start_at,
  taken,
  capacity,
  fill_rate,
  our_guests,
  is_all_day,
  verified_at_utc
from marts.fct_departures
where is_followed and travel_date between cast($first as date) and cast($last as date)
  and fill_rate < cast($below as double precision) and not is_closed and not is_sold_out
order by fill_rate, local_start_at, product_name, option_name, departure_key
