-- name: finance_adjustments
-- description: Bookings of closed months that changed since, with the cause; the latest change first.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  period, channel_name, booking_key, booking_uuid, supplier_reference, reseller_reference, cause, changed_at_utc, currency,
  retail_adjustment, net_adjustment
from marts.period_adjustments
where (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
order by changed_at_utc desc nulls last, period desc, booking_key, currency
