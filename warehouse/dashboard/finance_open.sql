-- name: finance_open
-- description: Sold bookings without a day of travel, per channel and currency: those used in these months, by day of redemption, and those sold by the end of the last one, not used or cancelled by then. Of a month that is not over: by now.
-- parameter: first: date: month-3: The first month of redemption is the one of this day.
-- parameter: last: date: month: The last month of redemption is the one of this day.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
with undated as (
  select
    b.*,
    cast(b.utc_redeemed_at at time zone coalesce(c.business_time_zone, 'UTC') as date) as used_date,
    date_trunc('month', cast($first as timestamp)) as begins_at,
    date_trunc('month', cast($last as timestamp)) + interval '1 month' as ends_at
  from marts.fct_bookings b
  left join marts.dim_channel c on c.connection_id = b.connection_id
  where b.was_sold and b.travel_date is null
    and (cast($channel as text) is null or b.connection_id = cast($channel as text))
    and (cast($currency as text) is null or b.currency = cast($currency as text))
),
open_dated as (
  select
    *,
    is_sold and is_redeemed and used_date >= begins_at and used_date < ends_at as is_used,
    coalesce(sold_date < ends_at, true)
      and (not is_redeemed or used_date >= ends_at)
      and (not is_cancelled or cancelled_date >= ends_at)
      and status <> 'NOSHOW' as is_unused
  from undated
)
select
  connection_id,
  channel_name,
  currency,
  count(case when is_sold then 1 end) as bookings,
  count(case when is_sold and net_amount is null then 1 end) as without_net,
  count(case when is_used then 1 end) as used,
  -- 0 where there are none; null where none of them has a price.
  coalesce(sum(case when is_used then retail_amount end), case when count(case when is_used then 1 end) = 0 then 0 end)
    as used_retail,
  coalesce(sum(case when is_used then net_amount end), case when count(case when is_used then 1 end) = 0 then 0 end)
    as used_net,
  count(case when is_sold and is_redeemed and utc_redeemed_at is null then 1 end) as used_some_day,
  count(case when is_unused then 1 end) as unused,
  coalesce(sum(case when is_unused then retail_amount end), case when count(case when is_unused then 1 end) = 0 then 0 end)
    as unused_retail,
  coalesce(sum(case when is_unused then net_amount end), case when count(case when is_unused then 1 end) = 0 then 0 end)
    as unused_net
from open_dated
group by connection_id, channel_name, currency
having count(case when is_sold or is_unused then 1 end) > 0
order by channel_name, connection_id, currency
