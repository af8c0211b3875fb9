-- name: cancellations_products
-- description: Bookings made in a time that were ever sold, and those of them cancelled since with their retail price, per product and currency.
-- parameter: first: date: month-11: First booking date.
-- parameter: last: date: today: Last booking date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
select
  product_key,
  product_name,
  currency,
  count(*) as was_sold,
  count(case when is_cancelled then 1 end) as cancelled,
  cast(count(case when is_cancelled then 1 end) as double precision) / count(*) as cancellation_rate,
  coalesce(sum(case when is_cancelled then retail_amount end), case when count(case when is_cancelled then 1 end) = 0 then 0 end)
    as cancelled_retail,
  cast(sum(case when is_cancelled then pax_count end) as bigint) as cancelled_guests
from marts.fct_bookings
where was_sold and booking_date between cast($first as date) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
group by product_key, product_name, currency
order by cancelled desc, product_name, product_key, currency
