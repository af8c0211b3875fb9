-- name: 25_refunds_due
-- question: Which refunds are due for cancelled bookings, by channel and month?
-- description: Sold bookings cancelled in the month, by what the cancellation says. A full refund is the whole price; of a partial one nobody says how much, so its prices are the most that it can be. Whether it was paid is not known. Those cancelled at an unknown time are in no row.
-- parameter: first: date: month-1: First day of cancellation.
-- parameter: last: date: today: Last day of cancellation.
select
  cancelled_date - (cast(extract(day from cancelled_date) as integer) - 1) as cancelled_month,
  channel_name,
  currency,
  count(*) as cancelled,
  count(*) filter (where cancellation_refund = 'FULL') as full_refunds,
  case when count(*) filter (where cancellation_refund = 'FULL') = 0 then cast(0 as decimal(18, 4))
    else sum(retail_amount) filter (where cancellation_refund = 'FULL') end as refund_amount,
  case when count(*) filter (where cancellation_refund = 'FULL') = 0 then cast(0 as decimal(18, 4))
    else sum(net_amount) filter (where cancellation_refund = 'FULL') end as refund_net_amount,
  count(*) filter (where cancellation_refund = 'FULL' and retail_amount is null) as without_amount,
  count(*) filter (where cancellation_refund = 'PARTIAL') as partial_refunds,
  case when count(*) filter (where cancellation_refund = 'PARTIAL') = 0 then cast(0 as decimal(18, 4))
    else sum(retail_amount) filter (where cancellation_refund = 'PARTIAL') end as partial_at_most,
  count(*) filter (where cancellation_refund = 'NONE') as no_refund,
  count(*) filter (where coalesce(cancellation_refund, '') not in ('FULL', 'PARTIAL', 'NONE')) as refund_not_stated,
  min(verified_at_utc) as verified_at_utc
from marts.fct_bookings
where was_sold and is_cancelled and cancelled_date between cast($first as date) and cast($last as date)
group by cancelled_month, connection_id, channel_name, currency
order by cancelled_month, channel_name, connection_id, currency
