-- name: finance_net
-- description: Net prices of sold bookings per travel month, channel and currency: what the seller pays the supplier.
-- parameter: first: date: month-3: The first travel month is the one of this day.
-- parameter: last: date: month: The last travel month is the one of this day.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  b.travel_month,
  b.connection_id,
  b.channel_name,
  b.supplier_name,
  b.currency,
  count(*) as bookings,
  sum(b.retail_amount) as retail_amount,
  sum(case when b.net_amount is not null then b.retail_amount end) as retail_with_net,
  sum(b.net_amount) as net_amount,
  sum(b.margin_amount) as margin_amount,
  count(case when b.net_amount is null then 1 end) as without_net,
  count(case when b.retail_amount is null then 1 end) as without_retail,
  coalesce(b.travel_month + interval '1 month' <= c.this_day, false) as is_over,
  coalesce(v.is_complete, false) as is_complete
from marts.fct_bookings b
left join (
  select connection_id, max(as_of_date) over (partition by supplier_key) as this_day
  from marts.dim_channel
) c on c.connection_id = b.connection_id
left join marts.booking_months v on v.connection_id = b.connection_id and v.travel_month = b.travel_month
where b.is_sold
  and b.travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  and (cast($channel as text) is null or b.connection_id = cast($channel as text))
  and (cast($currency as text) is null or b.currency = cast($currency as text))
group by b.travel_month, b.connection_id, b.channel_name, b.supplier_name, b.currency, c.this_day, v.is_complete
order by b.travel_month desc, b.channel_name, b.connection_id, b.currency
