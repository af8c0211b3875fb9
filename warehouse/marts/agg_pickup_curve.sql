-- name: agg_pickup_curve
-- grain: One product, connection (channel), travel month and number of days out.
-- description: How many of a month's guests were on the books so many days before they travel. Sold bookings only, each from when it was made, also where it was confirmed later; those cancelled since are a column of their own. Those cancelled at a time nobody told are in no column: nobody knows until when they were on the books.
-- column: product_key: One column to join products on.
-- column: product_name: Title, else internal name, else id.
-- column: travel_month: First day of the month of travel.
-- column: days_out: Days before travel at the venue: 0, 1, 3, 7, 14, 21, 30, 45, 60, 90, 120 and 180.
-- column: guests_on_books: Guests of the month who had booked by then and have not cancelled; null where of none of the bookings anything says how many.
-- column: cancelled_since_guests: Guests who were on the books then and cancelled afterwards, at a known time; null likewise.
-- column: final_guests: All guests of the month on the books now; null likewise.
-- column: bookings_without_guests: Bookings of the month, sold or cancelled at a known time, of which nothing says how many guests they admit: the guests leave them out.
-- column: is_final: Whether the month is over by what any connection of the supplier was told last; false where lists are by day of booking, because whoever booked before they begin is missing for good.
-- column: verified_at_utc: When the month's bookings were last read; null where they never were.
-- column: is_complete: Whether all bookings of the month are known; booking_months says by which rule.
with guests as (
  select
    connection_id,
    product_key,
    product_name,
    travel_month,
    lead_days,
    is_cancelled,
    case when is_cancelled then notice_days end as cancelled_days_out,
    count(*) as bookings,
    count(pax_count) as with_guests,
    sum(pax_count) as guests
  from marts.fct_bookings
  where was_sold and travel_date is not null
  group by 1, 2, 3, 4, 5, 6, 7
),
channels as (
  -- One that left hears no more of the time: the supplier's others say which day it is.
  select *, max(as_of_date) over (partition by supplier_key) as this_day from marts.dim_channel
),
curve as (
  select
    g.connection_id,
    g.product_key,
    g.product_name,
    g.travel_month,
    d.days_out,
    sum(g.guests) filter (where not g.is_cancelled and g.lead_days >= d.days_out) as guests_on_books,
    sum(g.bookings) filter (where not g.is_cancelled and g.lead_days >= d.days_out) as on_books,
    sum(g.guests) filter (where g.lead_days >= d.days_out and g.cancelled_days_out < d.days_out) as cancelled_since_guests,
    sum(g.bookings) filter (where g.lead_days >= d.days_out and g.cancelled_days_out < d.days_out) as cancelled_since,
    sum(g.guests) filter (where not g.is_cancelled) as final_guests,
    sum(g.bookings) filter (where not g.is_cancelled) as final_bookings,
    sum(g.bookings - g.with_guests) filter (where not g.is_cancelled or g.cancelled_days_out is not null)
      as bookings_without_guests
  from guests g
  cross join (values (0), (1), (3), (7), (14), (21), (30), (45), (60), (90), (120), (180)) as d(days_out)
  group by g.connection_id, g.product_key, g.product_name, g.travel_month, d.days_out
)
select
  m.product_key,
  m.connection_id,
  m.product_name,
  m.travel_month,
  m.days_out,
  -- 0 where there is no booking, null where there are and none of them says how many.
  cast(case when m.on_books > 0 then m.guests_on_books else 0 end as bigint) as guests_on_books,
  cast(case when m.cancelled_since > 0 then m.cancelled_since_guests else 0 end as bigint) as cancelled_since_guests,
  cast(case when m.final_bookings > 0 then m.final_guests else 0 end as bigint) as final_guests,
  cast(coalesce(m.bookings_without_guests, 0) as bigint) as bookings_without_guests,
  coalesce(c.this_day >= m.travel_month + interval '1 month' and c.bookings_from is not null, false) as is_final,
  v.verified_at_utc,
  coalesce(v.is_complete, false) as is_complete
from curve m
join channels c on c.connection_id = m.connection_id
left join marts.booking_months v on v.connection_id = m.connection_id and v.travel_month = m.travel_month
