-- name: 32_extras
-- question: Which extras are sold, by product and month?
-- description: Extras of sold bookings by travel month, product and currency: how many, and their retail and net prices. without_price: those without a retail price. is_complete: whether all bookings of the month are known.
-- parameter: first: date: month-3: First travel month.
-- parameter: last: date: month+2: Last travel month.
select
  x.travel_month,
  x.product_name,
  x.extra_name,
  x.currency,
  cast(sum(x.quantity) as bigint) as quantity,
  sum(x.retail_amount) as retail_amount,
  sum(x.net_amount) as net_amount,
  count(distinct x.booking_key) as bookings,
  count(*) - count(x.retail_amount) as without_price,
  coalesce(min(case when v.is_complete then 1 else 0 end) = 1, false) as is_complete,
  min(x.verified_at_utc) as verified_at_utc
from marts.fct_extras x
left join marts.booking_months v on v.connection_id = x.connection_id and v.travel_month = x.travel_month
where x.is_sold
  and x.travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
group by x.travel_month, x.product_key, x.product_name, x.extra_name, x.currency
order by x.travel_month, x.product_name, x.product_key, x.extra_name, x.currency
