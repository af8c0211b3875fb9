-- name: finance_ready
-- description: Months of travel that are over and not closed, and whether all their bookings are known; sold bookings that are neither redeemed nor no-shows, those without a net price, and sold bookings cancelled in the month that say nothing of a refund. The latest first.
-- parameter: first: date: month-3: The first month is the one of this day.
-- parameter: last: date: month: The last month is the one of this day.
with months as (
  select
    travel_month,
    max(date_key) as month_end
  from marts.dim_date
  where travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
    and travel_month not in (select cast(period || '-01' as date) from ops.closed_periods)
  group by travel_month
),
sold as (
  select
    travel_month,
    count(case when status = 'CONFIRMED' and not is_redeemed then 1 end) as not_used,
    count(case when net_amount is null then 1 end) as without_net
  from marts.fct_bookings
  where is_sold
  group by travel_month
),
cancelled as (
  select
    cancelled_date - (cast(extract(day from cancelled_date) as integer) - 1) as cancelled_month,
    count(*) as refund_not_stated
  from marts.fct_bookings
  where was_sold and is_cancelled and coalesce(cancellation_refund, '') not in ('FULL', 'PARTIAL', 'NONE')
  group by cancelled_month
)
select
  m.travel_month,
  min(case when v.is_complete then 1 else 0 end) = 1 as is_known,
  coalesce(max(s.not_used), 0) as not_used,
  coalesce(max(s.without_net), 0) as without_net,
  coalesce(max(g.refund_not_stated), 0) as refund_not_stated
from months m
left join sold s on s.travel_month = m.travel_month
left join cancelled g on g.cancelled_month = m.travel_month
join marts.dim_channel c
  on c.is_active or c.connection_id in (
    select b.connection_id from marts.fct_bookings b where b.is_sold and b.travel_month = m.travel_month
  )
left join marts.booking_months v on v.connection_id = c.connection_id and v.travel_month = m.travel_month
group by m.travel_month
having min(case when c.as_of_date > m.month_end then 1 else 0 end) = 1
order by m.travel_month desc
