-- name: revenue_products
-- description: Sold bookings of a time of travel per currency, product and channel; the largest of each currency first.
-- parameter: first: date: month-5: First travel date.
-- parameter: last: date: month+6: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  currency,
  product_key,
  product_name,
  connection_id,
  channel_name,
  count(*) as bookings,
  cast(sum(pax_count) as bigint) as guests,
  sum(retail_amount) as retail_amount,
  sum(net_amount) as net_amount,
  sum(margin_amount) as margin_amount,
  count(case when net_amount is null then 1 end) as without_net
from marts.fct_bookings
where is_sold and travel_date between cast($first as date) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
group by currency, product_key, product_name, connection_id, channel_name
order by currency, retail_amount desc nulls last, product_key, connection_id
