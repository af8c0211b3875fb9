-- name: cancellations_days
-- description: Bookings that were ever sold by the day on which they were cancelled, whenever they were made.
-- parameter: first: date: month-11: First day of cancellation.
-- parameter: last: date: today: Last day of cancellation.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select cancelled_date, count(*) as bookings
from marts.fct_bookings
where was_sold and is_cancelled and cancelled_date between cast($first as date) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
group by cancelled_date
order by cancelled_date
