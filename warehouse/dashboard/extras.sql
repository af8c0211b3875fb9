-- name: extras
-- description: Extras of sold bookings of a time of travel, per product, extra and currency; the most first.
-- parameter: first: date: month-5: First travel date.
-- parameter: last: date: month+6: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  product_key,
  product_name,
  extra_id,
  min(extra_name) as extra_name,
  currency,
  count(distinct booking_key) as bookings,
  cast(sum(quantity) as bigint) as quantity,
  sum(retail_amount) as retail_amount,
  sum(net_amount) as net_amount
from marts.fct_extras
where is_sold and travel_date between cast($first as date) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
group by product_key, product_name, extra_id, currency
order by quantity desc nulls last, product_name, product_key, extra_id, currency
