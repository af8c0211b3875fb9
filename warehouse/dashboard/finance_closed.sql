-- name: finance_closed
-- description: Closed months of travel: figures then, adjustments since, figures now; the latest month first.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  period, connection_id, channel_name, currency, closed_at_utc, was_complete, retail_amount, net_amount, adjustments,
  retail_adjustment, net_adjustment, retail_now, net_now, digest
from marts.closed_periods
where (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
order by period desc, channel_name, connection_id, currency
