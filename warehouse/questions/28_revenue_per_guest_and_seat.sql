-- name: 28_revenue_per_guest_and_seat
-- question: What is the revenue per guest and per seat offered?
-- description: Retail price of sold bookings by travel month, product and currency, all channels together. Seats offered are the places of departures of known capacity that were not closed, from first_day_offered to last_day_offered; the revenue per seat is of the bookings on these departures.
-- parameter: first: date: month-3: First travel month.
-- parameter: last: date: month+2: Last travel month.
select
  travel_month,
  product_name,
  currency,
  amount_per_guest,
  amount_per_seat,
  guests,
  bookings,
  retail_amount,
  is_complete,
  seats_offered,
  guest_amount,
  seat_amount,
  bookings_without_guests,
  first_day_offered,
  last_day_offered
from marts.agg_revenue_monthly
where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
order by travel_month, currency, retail_amount desc nulls last, product_name, product_key
