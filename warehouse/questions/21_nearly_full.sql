-- name: 21_nearly_full
-- question: Which upcoming departures are nearly full?
-- description: Open departures with known capacity, by time of start; sold-out ones included.
-- parameter: after: instant: now: Departures that start after this moment.
-- parameter: last: date: today+90d: Last travel date.
-- parameter: above: number: 0.9: Nearly full is above this share.
select
  product_name,
  local_start_at,
  fill_rate,
  vacancies,
  capacity,
  is_sold_out,
  option_name,
  our_guests,
  time_zone,
  utc_start_at,
  is_all_day,
  verified_at_utc
from marts.fct_departures
where is_followed and utc_start_at > cast($after as timestamptz) and travel_date <= cast($last as date)
  and fill_rate > cast($above as double precision) and not is_closed
order by utc_start_at, product_name, option_name, departure_key
