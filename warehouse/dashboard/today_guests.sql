-- name: today_guests
-- description: Guests of sold bookings by day of travel, each booking once, through however many connections it is seen; null where a booking does not say how many.
-- parameter: first: date: today-29d: First travel date.
-- parameter: last: date: today+2d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
select travel_date, case when count(*) = count(guests) then cast(sum(guests) as bigint) end as guests
from (
  select b.travel_date, coalesce(c.supplier_key, b.connection_id) as supplier_key, b.booking_uuid, max(b.pax_count) as guests
  from marts.fct_bookings b
  left join marts.dim_channel c on c.connection_id = b.connection_id
  where b.is_sold and b.travel_date between cast($first as date) and cast($last as date)
    and (cast($product as text) is null or b.product_key = cast($product as text))
  group by 1, 2, 3
) as seen
group by travel_date
order by travel_date
