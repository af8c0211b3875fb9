-- name: fct_departures
-- grain: One departure, or one open day, of one option.
-- description: Capacity and what is left of it. `taken` counts everyone's sales; unknown capacity is null, never 0.
-- column: departure_key: One column to join departures on.
-- column: product_key: One column to join products on.
-- column: option_key: One column to join options on.
-- column: product_name: Title, else internal name, else id.
-- column: travel_date: Day of travel at the venue.
-- column: taken: Capacity minus vacancies: everyone's sales; null when unknown.
-- column: fill_rate: taken / capacity, 0 to 1; null when capacity is unknown.
-- column: is_sold_out: SOLD_OUT.
-- column: is_closed: CLOSED.
select
  a.connection_id || '|' || a.product_id || '|' || a.option_id || '|' || a.availability_id as departure_key,
  a.connection_id || '|' || a.product_id as product_key,
  a.connection_id || '|' || a.product_id || '|' || a.option_id as option_key,
  a.connection_id,
  a.product_id,
  coalesce(p.title, p.internal_name, a.product_id) as product_name,
  a.option_id,
  a.availability_id,
  a.local_start_at,
  a.local_date as travel_date,
  a.utc_start_at,
  a.time_zone,
  a.status,
  a.is_available,
  a.capacity,
  a.vacancies,
  a.capacity - a.vacancies as taken,
  case when a.capacity > 0 then cast(a.capacity - a.vacancies as numeric(18, 4)) / a.capacity end as fill_rate,
  a.status = 'SOLD_OUT' as is_sold_out,
  a.status = 'CLOSED' as is_closed
from core.availability a
left join core.products p on p.connection_id = a.connection_id and p.product_id = a.product_id
where not a.is_deleted
