-- name: 08_sold_out_and_closed_days
-- question: Which days ahead are sold out or closed?
-- description: Days on which nothing of a product can be booked: everything closed, or sold out where it is open.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+365d: Last travel date.
select
  product_name,
  travel_date,
  case when closed_departures = departures then 'closed' else 'sold out' end as state,
  departures,
  sold_out_departures,
  closed_departures,
  our_guests,
  verified_at_utc
from marts.agg_occupancy_daily
where is_followed and travel_date between cast($first as date) and cast($last as date)
  and sold_out_departures + closed_departures = departures
order by travel_date, product_name, product_key
