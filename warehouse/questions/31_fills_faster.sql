-- name: 31_fills_faster
-- question: Which departures fill faster than usual?
-- description: Departures of the next 30 days that are fuller than the option's departures of the last eight weeks were so many days ahead, by how much. Only what the copy's history knows: it needs five such departures.
-- parameter: above: number: 0.2: By how much of the places they are fuller.
select
  product_name,
  option_name,
  local_start_at,
  days_ahead,
  taken,
  capacity,
  fill_rate,
  usual_fill_rate,
  compared_departures,
  is_all_day,
  verified_at_utc
from marts.filling_pace
where fill_rate - usual_fill_rate >= cast($above as double precision)
order by fill_rate - usual_fill_rate desc, local_start_at, product_name, option_name, departure_key
