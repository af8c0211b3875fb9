-- name: 10_manifest
-- question: Who travels on a day?
-- description: The day's sold bookings by departure with their tickets; references instead of names, which only the private file holds.
-- parameter: day: date: today: Travel date at the venue.
with counted as (
  select booking_key, unit_name, count(*) as tickets
  from marts.fct_guests
  where is_sold and travel_date = cast($day as date)
  group by booking_key, unit_name
),
tickets as (
  select booking_key, string_agg(tickets || ' ' || unit_name, ', ' order by unit_name collate "C") as tickets
  from counted
  group by booking_key
)
select
  b.local_start_at,
  b.product_name,
  b.pax_count as guests,
  t.tickets,
  b.option_name,
  b.supplier_reference,
  b.reseller_reference,
  b.booking_uuid,
  b.channel_name,
  b.status,
  coalesce(d.is_all_day, p.availability_type = 'OPENING_HOURS', false) as is_all_day,
  b.verified_at_utc
from marts.fct_bookings b
left join tickets t on t.booking_key = b.booking_key
left join marts.dim_product p on p.product_key = b.product_key
left join marts.fct_departures d on d.departure_key = b.departure_key and d.travel_date = b.travel_date
where b.is_sold and b.travel_date = cast($day as date)
order by b.local_start_at, b.product_name, b.option_name, b.booking_uuid
