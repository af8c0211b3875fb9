-- name: finance_open
-- description: Sold bookings without a day of travel, per currency: those used in these months, by day of redemption, and those not used yet.
-- parameter: first: date: month-3: The first month of redemption is the one of this day.
-- parameter: last: date: month: The last month of redemption is the one of this day.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
with open_dated as (
  select
    b.*,
    b.status = 'CONFIRMED' and not b.is_redeemed as is_unused,
    b.is_redeemed and coalesce(
      substr(cast(cast(b.utc_redeemed_at at time zone coalesce(c.business_time_zone, 'UTC') as date) as text), 1, 7)
        between substr(cast(cast($first as date) as text), 1, 7) and substr(cast(cast($last as date) as text), 1, 7),
      false
    ) as is_used
  from marts.fct_bookings b
  left join marts.dim_channel c on c.connection_id = b.connection_id
  where b.is_sold and b.travel_date is null
    and (cast($channel as text) is null or b.connection_id = cast($channel as text))
    and (cast($currency as text) is null or b.currency = cast($currency as text))
)
select
  currency,
  count(*) as bookings,
  count(case when net_amount is null then 1 end) as without_net,
  count(case when is_used then 1 end) as used,
  -- 0 where there are none; null where none of them has a price.
  coalesce(sum(case when is_used then retail_amount end), case when count(case when is_used then 1 end) = 0 then 0 end)
    as used_retail,
  coalesce(sum(case when is_used then net_amount end), case when count(case when is_used then 1 end) = 0 then 0 end)
    as used_net,
  count(case when is_redeemed and utc_redeemed_at is null then 1 end) as used_some_day,
  count(case when is_unused then 1 end) as unused,
  coalesce(sum(case when is_unused then retail_amount end), case when count(case when is_unused then 1 end) = 0 then 0 end)
    as unused_retail,
  coalesce(sum(case when is_unused then net_amount end), case when count(case when is_unused then 1 end) = 0 then 0 end)
    as unused_net
from open_dated
group by currency
order by currency
