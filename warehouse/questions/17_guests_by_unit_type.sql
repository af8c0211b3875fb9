-- name: 17_guests_by_unit_type
-- question: Who comes: adults, children, families, by product?
-- description: Tickets of sold bookings by the type of unit.
-- parameter: first: date: today-90d: First travel date.
-- parameter: last: date: today+90d: Last travel date.
select
  product_name,
  unit_type,
  count(*) as tickets,
  cast(sum(pax_count) as bigint) as guests,
  count(*) filter (where pax_count is null) as tickets_without_guests,
  min(verified_at_utc) as verified_at_utc
from marts.fct_guests
where is_sold and travel_date between cast($first as date) and cast($last as date)
group by product_key, product_name, unit_type
order by product_name, product_key, tickets desc, unit_type
