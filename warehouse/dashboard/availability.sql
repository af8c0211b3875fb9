-- name: availability
-- description: What is wrong with the days ahead of each product; the most sold-out and closed days first.
-- parameter: product: text: : One product alone (product_key); null: all.
select
  product_key,
  product_name,
  as_of_date,
  days,
  sold_out_days,
  closed_days,
  weak_days,
  next_sold_out_day,
  last_day_loaded,
  covered_to,
  verified_at_utc,
  is_covered
from marts.availability_health
where cast($product as text) is null or product_key = cast($product as text)
order by sold_out_days + closed_days desc, product_name, product_key
