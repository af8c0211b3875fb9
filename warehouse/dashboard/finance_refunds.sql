-- name: finance_refunds
-- description: Sold bookings that were cancelled, per month of cancellation, channel and currency, by what the cancellation says of a refund; those cancelled at an unknown time have no month.
-- parameter: first: date: month-3: The first month of cancellation is the one of this day.
-- parameter: last: date: month: The last month of cancellation is the one of this day.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  cancelled_date - (cast(extract(day from cancelled_date) as integer) - 1) as cancelled_month,
  connection_id,
  channel_name,
  currency,
  count(*) as cancelled,
  count(case when cancellation_refund = 'FULL' then 1 end) as full_refunds,
  -- 0 where none is due; null where one is and its booking has no price.
  case when count(case when cancellation_refund = 'FULL' then 1 end) = 0 then 0
    else sum(case when cancellation_refund = 'FULL' then retail_amount end) end as refund_amount,
  case when count(case when cancellation_refund = 'FULL' then 1 end) = 0 then 0
    else sum(case when cancellation_refund = 'FULL' then net_amount end) end as refund_net_amount,
  count(case when cancellation_refund = 'FULL' and retail_amount is null then 1 end) as without_amount,
  count(case when cancellation_refund = 'PARTIAL' then 1 end) as partial_refunds,
  case when count(case when cancellation_refund = 'PARTIAL' then 1 end) = 0 then 0
    else sum(case when cancellation_refund = 'PARTIAL' then retail_amount end) end as partial_at_most,
  count(case when cancellation_refund = 'NONE' then 1 end) as no_refund,
  case when count(case when cancellation_refund = 'NONE' then 1 end) = 0 then 0
    else sum(case when cancellation_refund = 'NONE' then retail_amount end) end as kept_retail,
  case when count(case when cancellation_refund = 'NONE' then 1 end) = 0 then 0
    else sum(case when cancellation_refund = 'NONE' then net_amount end) end as kept_net,
  count(case when cancellation_refund = 'NONE' and net_amount is null then 1 end) as kept_without_net,
  count(case when coalesce(cancellation_refund, '') not in ('FULL', 'PARTIAL', 'NONE') then 1 end) as refund_not_stated
from marts.fct_bookings
where was_sold and is_cancelled
  and coalesce(
    cancelled_date >= date_trunc('month', cast($first as timestamp))
      and cancelled_date < date_trunc('month', cast($last as timestamp)) + interval '1 month',
    true
  )
  and (cast($channel as text) is null or connection_id = cast($channel as text))
  and (cast($currency as text) is null or currency = cast($currency as text))
group by cancelled_month, connection_id, channel_name, currency
order by cancelled_month desc nulls last, channel_name, connection_id, currency
