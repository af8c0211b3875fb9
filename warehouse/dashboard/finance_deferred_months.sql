-- name: finance_deferred_months
-- description: What was sold by the end of one month and travels after it, per month of travel and currency.
-- parameter: month: date: month: Any day of the month.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  travel_month,
  currency,
  count(*) as bookings,
  cast(sum(pax_count) as bigint) as guests,
  sum(retail_amount) as retail_amount,
  sum(net_amount) as net_amount,
  count(*) - count(net_amount) as without_net,
  count(*) - count(retail_amount) as without_retail
from marts.fct_bookings
where was_sold and travel_date is not null and (not is_cancelled or cancelled_date is not null)
  -- As marts.agg_deferred_revenue counts.
  and sold_date < date_trunc('month', cast($month as timestamp)) + interval '1 month'
  and least(travel_date, case when is_cancelled then cancelled_date end)
    >= date_trunc('month', cast($month as timestamp)) + interval '1 month'
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
group by travel_month, currency
order by travel_month, currency
