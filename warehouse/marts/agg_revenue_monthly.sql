-- name: agg_revenue_monthly
-- grain: One product, travel month and currency.
-- description: Revenue per guest and per seat offered, all channels of a supplier together; a booking that several of its connections see counts once. Both rest only on what is known: guests where the booking says how many, seats where a departure's capacity is known.
-- column: product_key: One column to join products on.
-- column: product_name: Title, else internal name, else id.
-- column: travel_month: First day of the month of travel.
-- column: bookings: Sold bookings that travel in the month.
-- column: guests: Guests in them; null where none of them says how many.
-- column: bookings_without_guests: Those that do not say how many guests they admit.
-- column: retail_amount: Their retail price.
-- column: guest_amount: Retail price of those that say how many guests they admit: guest_amount / guests is the revenue per guest.
-- column: amount_per_guest: guest_amount / guests, a rounded share; exact are the two it is made of.
-- column: seats_offered: Places of the month's departures of known capacity that were not closed, whoever sold them; equal in each currency. Null where no departure's capacity is known.
-- column: seat_amount: Retail price of the bookings on such departures: seat_amount / seats_offered is the revenue per seat offered.
-- column: amount_per_seat: seat_amount / seats_offered, likewise.
-- column: first_day_offered: First day of travel of which seats are known; departures before the copy began are not.
-- column: last_day_offered: Last day of travel of which seats are known.
-- column: is_complete: Whether all bookings of the month are known through every connection that sold some, as booking_months says.
with seen as (
  -- One that several connections see is one: as it was seen last.
  select
    b.*,
    row_number() over (
      partition by b.supplier_key, b.booking_uuid order by b.verified_at_utc desc nulls last, b.connection_id collate "C"
    ) as place,
    min(case when v.is_complete then 1 else 0 end) over (partition by b.supplier_key, b.booking_uuid) as is_complete
  from marts.fct_bookings b
  left join marts.booking_months v on v.connection_id = b.connection_id and v.travel_month = b.travel_month
  where b.travel_date is not null
),
booked as (
  -- The departure is the one that its supplier's places are counted from: the booking's own connection may read none.
  select
    s.*,
    o.is_followed and a.status is distinct from 'CLOSED' and a.capacity between 1 and 1000000000
      and a.vacancies between -1000000000 and a.capacity as is_on_seats
  from seen s
  left join marts.shared_departures d
    on d.supplier_key = s.supplier_key and d.product_id = s.product_id and d.option_id = s.option_id
    and d.availability_id = s.availability_id
  left join core.availability a
    on a.connection_id = coalesce(d.connection_id, s.supplier_key) and a.product_id = s.product_id
    and a.option_id = s.option_id and a.availability_id = s.availability_id and not a.is_deleted
  left join marts.agg_occupancy_daily o on o.product_key = s.product_key and o.travel_date = a.local_date
  where s.place = 1 and s.is_sold
),
sold as (
  select
    product_key,
    product_name,
    travel_month,
    currency,
    count(*) as bookings,
    cast(sum(pax_count) as bigint) as guests,
    count(*) - count(pax_count) as bookings_without_guests,
    sum(retail_amount) as retail_amount,
    sum(case when pax_count is not null then retail_amount end) as guest_amount,
    sum(case when is_on_seats then retail_amount end) as seat_amount,
    min(is_complete) = 1 as is_complete
  from booked
  group by product_key, product_name, travel_month, currency
),
seats as (
  select
    product_key, travel_month, cast(sum(capacity) as bigint) as capacity,
    min(case when measured_departures > 0 then travel_date end) as first_day,
    max(case when measured_departures > 0 then travel_date end) as last_day
  from marts.agg_occupancy_daily
  where is_followed
  group by product_key, travel_month
)
select
  s.product_key,
  s.product_name,
  s.travel_month,
  s.currency,
  s.bookings,
  s.guests,
  s.bookings_without_guests,
  s.retail_amount,
  s.guest_amount,
  cast(s.guest_amount as double precision) / nullif(cast(s.guests as double precision), 0) as amount_per_guest,
  o.capacity as seats_offered,
  case when o.capacity is not null then coalesce(s.seat_amount, 0) end as seat_amount,
  cast(coalesce(s.seat_amount, 0) as double precision) / nullif(cast(o.capacity as double precision), 0) as amount_per_seat,
  o.first_day as first_day_offered,
  o.last_day as last_day_offered,
  s.is_complete
from sold s
left join seats o on o.product_key = s.product_key and o.travel_month = s.travel_month
