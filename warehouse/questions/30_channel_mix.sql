-- name: 30_channel_mix
-- question: How does the mix of channels change, and what margin does each leave?
-- description: Sold bookings by travel month, currency and channel: each channel's share of the month's retail price, and retail minus net where the net price is known. margin_rate is of those bookings only; without_net counts the others.
-- parameter: first: date: month-5: First travel month.
-- parameter: last: date: month: Last travel month.
with mix as (
  select
    b.travel_month,
    b.currency,
    b.connection_id,
    b.channel_name,
    count(*) as bookings,
    sum(b.retail_amount) as retail_amount,
    sum(b.net_amount) as net_amount,
    sum(b.margin_amount) as margin_amount,
    sum(b.retail_amount) filter (where b.margin_amount is not null) as margin_base,
    count(*) filter (where b.net_amount is null) as without_net,
    min(b.verified_at_utc) as verified_at_utc
  from marts.fct_bookings b
  where b.is_sold
    and b.travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  group by b.travel_month, b.currency, b.connection_id, b.channel_name
)
select
  m.travel_month,
  m.currency,
  m.channel_name,
  cast(m.retail_amount as double precision)
    / nullif(cast(sum(m.retail_amount) over (partition by m.travel_month, m.currency) as double precision), 0) as retail_share,
  cast(m.margin_amount as double precision) / nullif(cast(m.margin_base as double precision), 0) as margin_rate,
  m.retail_amount,
  m.net_amount,
  m.margin_amount,
  m.bookings,
  m.without_net,
  m.verified_at_utc,
  coalesce(v.is_complete, false) as is_complete
from mix m
left join marts.booking_months v on v.connection_id = m.connection_id and v.travel_month = m.travel_month
order by m.travel_month, m.currency, m.retail_amount desc nulls last, m.channel_name, m.connection_id
