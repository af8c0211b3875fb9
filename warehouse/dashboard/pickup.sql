-- name: pickup
-- description: Guests on the books so many days before travel, per travel month, all products together, or one.
-- parameter: first: date: month-3: The first travel month is the one of this day.
-- parameter: last: date: month+2: The last travel month is the one of this day.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  travel_month,
  days_out,
  cast(sum(guests_on_books) as bigint) as guests_on_books,
  cast(sum(cancelled_since_guests) as bigint) as cancelled_since_guests,
  cast(sum(final_guests) as bigint) as final_guests,
  cast(sum(bookings_without_guests) as bigint) as bookings_without_guests,
  min(case when is_final then 1 else 0 end) = 1 as is_final,
  min(case when is_complete then 1 else 0 end) = 1 as is_complete
from marts.agg_pickup_curve
where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
group by travel_month, days_out
order by travel_month, days_out
