-- name: 26_deferred_revenue
-- question: What was sold by a month's end for travel after it?
-- description: Deferred revenue: what was sold by the month's last day, not cancelled by then and travels later. Each counts as it is now, by its present day of travel and amount. Of a month that is not over, what is on the books now. Open-dated bookings are in no row; travel after known_to was never asked for.
-- parameter: first: date: month-6: First month.
-- parameter: last: date: month: Last month.
select
  month_end,
  is_over,
  channel_name,
  currency,
  retail_amount,
  net_amount,
  bookings,
  guests,
  without_retail,
  without_net,
  known_to,
  verified_at_utc,
  is_complete
from marts.agg_deferred_revenue
where month_end >= cast($first as date) and date_trunc('month', cast(month_end as timestamp)) <= cast($last as date)
order by month_end, channel_name, connection_id, currency
