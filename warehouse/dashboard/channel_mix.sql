-- name: channel_mix
-- description: Sold bookings per travel month, currency and channel: share of the month's retail price, and the margin where the net price is known.
-- parameter: first: date: month-5: The first travel month is the one of this day.
-- parameter: last: date: month+2: The last travel month is the one of this day.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: currency: text: : One currency alone; null: all.
with mix as (
  select
    travel_month,
    currency,
    connection_id,
    channel_name,
    count(*) as bookings,
    cast(sum(pax_count) as bigint) as guests,
    sum(case when pax_count is not null then retail_amount end) as guest_amount,
    sum(retail_amount) as retail_amount,
    sum(net_amount) as net_amount,
    sum(margin_amount) as margin_amount,
    sum(case when margin_amount is not null then retail_amount end) as margin_base,
    count(case when net_amount is null then 1 end) as without_net
  from marts.fct_bookings
  where is_sold
    and travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
    and (cast($product as text) is null or product_key = cast($product as text))
    and (cast($currency as text) is null or currency = cast($currency as text))
  group by travel_month, currency, connection_id, channel_name
)
select
  m.travel_month,
  m.currency,
  m.connection_id,
  m.channel_name,
  m.bookings,
  m.guests,
  m.guest_amount,
  m.retail_amount,
  cast(m.retail_amount as double precision)
    / nullif(cast(sum(m.retail_amount) over (partition by m.travel_month, m.currency) as double precision), 0) as retail_share,
  m.net_amount,
  m.margin_amount,
  cast(m.margin_amount as double precision) / nullif(cast(m.margin_base as double precision), 0) as margin_rate,
  m.margin_base,
  m.without_net,
  coalesce(v.is_complete, false) as is_complete
from mix m
left join marts.booking_months v on v.connection_id = m.connection_id and v.travel_month = m.travel_month
order by m.travel_month, m.currency, m.retail_amount desc nulls last, m.channel_name, m.connection_id
