-- name: cancellations_months
-- description: Bookings made per month and channel that were ever sold, and those of them cancelled since.
-- parameter: first: date: month-11: First booking date.
-- parameter: last: date: today: Last booking date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  booking_date - (cast(extract(day from booking_date) as integer) - 1) as booking_month,
  connection_id,
  channel_name,
  count(*) as was_sold,
  count(case when is_cancelled then 1 end) as cancelled,
  cast(count(case when is_cancelled then 1 end) as double precision) / count(*) as cancellation_rate
from marts.fct_bookings
where was_sold and booking_date between cast($first as date) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
group by booking_month, connection_id, channel_name
order by booking_month, channel_name, connection_id
