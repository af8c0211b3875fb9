-- name: revenue_months
-- description: Sold bookings per travel month, currency and channel, now or as many as were on the books at the end of a day; currencies are never added up.
-- parameter: first: date: month-5: First travel date.
-- parameter: last: date: month+6: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
-- parameter: by: date: : On the books at the end of this day; null: now.
select
  currency,
  travel_month,
  connection_id,
  channel_name,
  count(*) as bookings,
  cast(sum(pax_count) as bigint) as guests,
  sum(retail_amount) as retail_amount,
  sum(net_amount) as net_amount,
  count(case when retail_amount is null then 1 end) as without_retail,
  count(case when net_amount is null then 1 end) as without_net
from marts.fct_bookings
where travel_date between cast($first as date) and cast($last as date)
  and case when cast($by as date) is null then is_sold
    else was_sold and coalesce(sold_date, date '1970-01-01') <= cast($by as date)
      and (not is_cancelled or cancelled_date > cast($by as date)) end
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
group by currency, travel_month, connection_id, channel_name
order by currency, travel_month, channel_name, connection_id
