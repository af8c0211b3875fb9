-- name: agg_occupancy_daily
-- grain: One product and travel date.
-- description: Occupancy by product and day, all channels' sales included; each departure counts once per supplier. Capacity excludes closed departures and those of unknown capacity.
-- materialize: table
-- column: product_key: One column to join products on.
-- column: connection_id: The connection whose names the product has in dim_product; sold_through there are all.
-- column: product_name: Title, else internal name, else id.
-- column: travel_date: Day of travel at the venue.
-- column: travel_month: First day of its month.
-- column: departures: All departures of the day.
-- column: measured_departures: Those open with known capacity and vacancies: what capacity, taken and fill_rate are about.
-- column: capacity: Places of the measured departures; null when there is none.
-- column: taken: Places of them that are taken.
-- column: fill_rate: taken / capacity, 0 to 1.
-- column: differing_departures: Departures of which the supplier's connections see different capacities: the largest counts, fct_departures.least_capacity is the smallest.
-- column: sold_out_departures: Departures that are SOLD_OUT.
-- column: closed_departures: Departures that are CLOSED.
-- column: our_bookings: Sold bookings that our tokens can see and that name one of its departures, each once.
-- column: our_guests: Guests in them; null where one of them does not say how many.
-- column: verified_at_utc: When the option verified longest ago was verified.
-- column: is_covered: Whether every option that is offered was answered completely through each connection that offers it, and the last answers spoke for this day.
-- column: is_followed: Whether the pipeline has its connection, or had it until the day came; what lay ahead when it left is not known any more.
with days as (
  select
    product_key,
    product_id,
    product_name,
    travel_date,
    travel_month,
    count(*) as departures,
    count(taken) as measured_departures,
    cast(sum(capacity) filter (where taken is not null) as bigint) as capacity,
    cast(sum(taken) as bigint) as taken,
    count(*) filter (where least_capacity < capacity) as differing_departures,
    count(*) filter (where is_sold_out) as sold_out_departures,
    count(*) filter (where is_closed) as closed_departures,
    cast(sum(our_bookings) as bigint) as our_bookings,
    case when count(*) = count(our_guests) then cast(sum(our_guests) as bigint) end as our_guests,
    min(verified_at_utc) as verified_at_utc,
    min(case when is_covered then 1 else 0 end) = 1 as is_covered,
    min(case when is_followed then 1 else 0 end) = 1 as is_followed
  from marts.fct_departures
  group by product_key, product_id, product_name, travel_date, travel_month
),
known as (
  -- Through each connection that is asked: one may sell options that the others do not.
  select
    product_key,
    travel_month,
    coalesce(
      min(case when is_complete then 1 else 0 end) filter (where is_active), min(case when is_complete then 1 else 0 end)
    ) = 1 as is_complete
  from marts.coverage
  where resource = 'availability'
  group by product_key, travel_month
)
select
  d.product_key,
  p.connection_id,
  d.product_id,
  d.product_name,
  d.travel_date,
  d.travel_month,
  d.departures,
  d.measured_departures,
  d.capacity,
  d.taken,
  cast(d.taken as double precision) / nullif(cast(d.capacity as double precision), 0) as fill_rate,
  d.differing_departures,
  d.sold_out_departures,
  d.closed_departures,
  d.our_bookings,
  d.our_guests,
  d.verified_at_utc,
  -- An option that never answered has no departure that could say so.
  d.is_covered and coalesce(k.is_complete, false) as is_covered,
  d.is_followed
from days d
left join marts.dim_product p on p.product_key = d.product_key
left join known k on k.product_key = d.product_key and k.travel_month = d.travel_month
