-- name: fct_departures
-- grain: One departure, or one open day, of one option.
-- description: Capacity and what is left of it, once for all connections of a supplier. `taken` counts everyone's sales, `our_guests` what our tokens can see; unknown capacity is null, never 0. Past departures are as they were last seen.
-- column: departure_key: One column to join departures on.
-- column: product_key: One column to join products on.
-- column: option_key: One column to join options on.
-- column: product_name: Title, else internal name, else id.
-- column: option_name: Title, else internal name, else id.
-- column: travel_date: Day of travel at the venue.
-- column: travel_month: First day of its month.
-- column: connection_id: The connection whose answer this is: of several that sell it, the one that sees the largest capacity.
-- column: capacity: Places in all; null when unlimited or not told. Where the supplier's connections see different ones, the largest.
-- column: least_capacity: The smallest capacity that one of the supplier's connections sees: below capacity where they see different ones.
-- column: taken: Capacity minus vacancies: everyone's sales; null when unknown, also where there are more vacancies than places, no places at all or more than a billion, and when closed, because nothing is vacant then.
-- column: fill_rate: taken / capacity, 0 to 1; null when taken is.
-- column: our_bookings: Sold bookings that our tokens can see and that name it, each once; test bookings left out.
-- column: our_guests: Guests in them; null where one of them does not say how many.
-- column: our_sold_amount: Their retail amounts; null when they are in several currencies.
-- column: our_currency: The currency of our_sold_amount; null without sales or when there are several.
-- column: status: AVAILABLE, LIMITED, FREESALE, SOLD_OUT, CLOSED or a newer one.
-- column: local_start_at: Start, wall clock at the venue.
-- column: local_end_at: End, wall clock at the venue.
-- column: is_all_day: Whether it spans the whole day: the time in local_start_at means nothing then.
-- column: utc_start_at: Start as an instant.
-- column: utc_cutoff_at: Until when it is sold; null where that is not told, before 1970 or after 2199.
-- column: time_zone: IANA time zone of the venue.
-- column: availability_id: OCTO availability id; unique inside its option only.
-- column: is_sold_out: SOLD_OUT.
-- column: is_closed: CLOSED.
-- column: verified_at_utc: When its month was last verified, changed or not.
-- column: is_covered: Whether that answer was complete and spoke for this day.
-- column: is_followed: Whether the pipeline has its connection, or had it until the day came; what lay ahead when it left is not known any more.
with counted as (
  -- In two parts, so that who has one connection for each supplier pays nothing for the second.
  select a.*, a.capacity as least_seen
  from core.availability a
  -- `not in`, because PostgreSQL expects half of the rows then; of an outer join or `not exists` it expects hardly any, and loops.
  where a.connection_id not in (select connection_id from marts.supplier_connections where connections > 1)
  union all
  select a.*, s.least_capacity
  from marts.shared_departures s
  join core.availability a
    on a.connection_id = s.connection_id and a.product_id = s.product_id and a.option_id = s.option_id
    and a.availability_id = s.availability_id
),
booked as (
  -- One that several connections see is one.
  select
    supplier_key,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    max(pax_count) as pax_count,
    max(currency) as currency,
    max(retail_amount) as retail_amount
  from marts.fct_bookings
  where is_sold and availability_id is not null
  group by supplier_key, product_id, option_id, availability_id, booking_uuid
),
ours as (
  select
    supplier_key,
    product_id,
    option_id,
    availability_id,
    count(*) as bookings,
    case when count(*) = count(pax_count) then cast(sum(pax_count) as bigint) end as guests,
    case when min(currency) = max(currency) and count(*) = count(currency) then min(currency) end as currency,
    case when min(currency) = max(currency) and count(*) = count(currency) then sum(retail_amount) end as retail_amount
  from booked
  group by supplier_key, product_id, option_id, availability_id
),
departures as (
  select
    a.*,
    coalesce(c.supplier_key, a.connection_id) as supplier_key,
    c.is_active,
    c.last_verified_at_utc,
    coalesce(a.least_seen, a.capacity) as least_capacity,
    a.status = 'SOLD_OUT' as is_sold_out,
    a.status = 'CLOSED' as is_closed,
    case
      when a.status is distinct from 'CLOSED' and a.capacity between 1 and 1000000000
        and a.vacancies between -1000000000 and a.capacity then a.capacity - a.vacancies
    end as taken
  from counted a
  left join marts.dim_channel c on c.connection_id = a.connection_id
  where not a.is_deleted
)
select
  a.supplier_key || '|' || a.product_id || '|' || a.option_id || '|' || a.availability_id as departure_key,
  a.supplier_key || '|' || a.product_id as product_key,
  a.supplier_key || '|' || a.product_id || '|' || a.option_id as option_key,
  a.connection_id,
  a.product_id,
  coalesce(p.product_name, a.product_id) as product_name,
  a.option_id,
  coalesce(o.title, o.internal_name, a.option_id) as option_name,
  a.availability_id,
  a.local_start_at,
  a.local_end_at,
  coalesce(a.is_all_day, p.availability_type = 'OPENING_HOURS', false) as is_all_day,
  a.local_date as travel_date,
  a.local_date - (cast(extract(day from a.local_date) as integer) - 1) as travel_month,
  a.utc_start_at,
  -- One at the edge of the calendar is on no other clock.
  case when a.utc_cutoff_at between timestamptz '1970-01-01 00:00:00+00' and timestamptz '2199-12-31 23:59:59+00'
    then a.utc_cutoff_at end as utc_cutoff_at,
  a.time_zone,
  a.status,
  a.is_available,
  a.capacity,
  a.least_capacity,
  a.vacancies,
  a.taken,
  case when a.capacity > 0 then cast(a.taken as double precision) / a.capacity end as fill_rate,
  coalesce(ours.bookings, 0) as our_bookings,
  case when ours.bookings is null then 0 else ours.guests end as our_guests,
  ours.retail_amount as our_sold_amount,
  ours.currency as our_currency,
  coalesce(a.is_sold_out, false) as is_sold_out,
  coalesce(a.is_closed, false) as is_closed,
  v.verified_at_utc,
  coalesce(v.is_complete and a.local_date between v.window_start and v.window_end, false) as is_covered,
  coalesce(
    a.is_active or a.local_date < cast(a.last_verified_at_utc at time zone coalesce(p.time_zone, 'UTC') as date), false
  ) as is_followed
from departures a
left join marts.dim_product p on p.supplier_key = a.supplier_key and p.product_id = a.product_id
left join core.options o
  on o.connection_id = a.connection_id and o.product_id = a.product_id and o.option_id = a.option_id
left join ops.coverage v
  on v.connection_id = a.connection_id and v.resource = 'availability' and v.product_id = a.product_id
  and v.option_id = a.option_id and v.travel_month = substr(cast(a.local_date as text), 1, 7)
left join ours
  on ours.supplier_key = a.supplier_key and ours.product_id = a.product_id and ours.option_id = a.option_id
  and ours.availability_id = a.availability_id
