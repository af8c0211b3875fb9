-- name: finance_closed_totals
-- description: Taxes by name, refunds due and deferred revenue of closed months: then, what changed since, and now; the latest month first.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  period, kind, tax_name, connection_id, channel_name, currency, is_kept, retail_amount, retail_adjustment, retail_now,
  net_amount, net_adjustment, net_now
from marts.month_totals
where closed_at_utc is not null
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
order by period desc, kind desc, tax_name nulls first, channel_name, connection_id, currency
