-- name: departure
-- description: One departure as the service offers it, and since when this copy knows it sold out. No row where it is not known.
-- parameter: key: text: none: Its departure_key.
-- parameter: day: date: today: Its day of travel.
-- parameter: now: instant: now: What time it is.
select
  d.product_name,
  d.option_name,
  d.travel_date,
  d.local_start_at,
  d.is_all_day,
  d.local_end_at,
  d.utc_start_at,
  d.time_zone,
  d.status,
  case when d.utc_cutoff_at <= cast($now as timestamptz)
    then d.utc_cutoff_at at time zone coalesce(d.time_zone, 'UTC') end as sold_until,
  d.vacancies,
  d.capacity,
  d.taken,
  d.verified_at_utc,
  d.is_covered,
  s.sold_out_at_utc,
  s.was_on_sale
from marts.fct_departures d
left join marts.fct_sellouts s
  on s.departure_key = d.departure_key and s.travel_date = cast($day as date) and s.is_sold_out
  -- Of one that opened again nobody keeps when it sold out the last time.
  and s.times_sold_out = 1
where d.departure_key = cast($key as text) and d.travel_date = cast($day as date)
