-- name: revenue_undated
-- description: Sold bookings without a day of travel, and how many of them were used, per currency: they are in no month.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  currency, count(*) as bookings, count(case when is_redeemed then 1 end) as redeemed, sum(retail_amount) as retail_amount
from marts.fct_bookings
where is_sold and travel_date is null
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
group by currency
order by count(*) desc, currency
