-- name: departure
-- description: One departure as the service offers it. No row where it is not known.
-- parameter: key: text: none: Its departure_key.
-- parameter: day: date: today: Its day of travel.
select product_name, option_name, travel_date, local_start_at, time_zone, status, vacancies, capacity, verified_at_utc, is_covered
from marts.fct_departures
where departure_key = cast($key as text) and travel_date = cast($day as date)
