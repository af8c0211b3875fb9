-- name: revenue_per_seat
-- description: Revenue per guest and per seat offered, per travel month, product and currency, all channels together; the newest month first.
-- parameter: first: date: month-5: The first travel month is the one of this day.
-- parameter: last: date: month+6: The last travel month is the one of this day.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  travel_month,
  product_key,
  product_name,
  currency,
  guests,
  guest_amount,
  seats_offered,
  seat_amount,
  first_day_offered,
  last_day_offered,
  is_complete
from marts.agg_revenue_monthly
where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  and (cast($product as text) is null or product_key = cast($product as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
order by travel_month desc, currency, retail_amount desc nulls last, product_name, product_key
