-- name: finance_deferred
-- description: What was sold by the end of each month and travels after it, per channel and currency.
-- parameter: first: date: month-3: The first month is the one of this day.
-- parameter: last: date: month: The last month is the one of this day.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  month_end,
  connection_id,
  channel_name,
  currency,
  bookings,
  guests,
  retail_amount,
  net_amount,
  without_net,
  without_retail,
  is_over,
  is_complete
from marts.agg_deferred_revenue
where month_end >= cast($first as date) and date_trunc('month', cast(month_end as timestamp)) <= cast($last as date)
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
order by month_end desc, channel_name, connection_id, currency
