-- name: finance_taxes
-- description: Taxes in the prices of sold bookings, and the whole retail price of those whose price is in the same currency, per travel month, name, currency and channel; those that state none have no name.
-- parameter: first: date: month-3: The first travel month is the one of this day.
-- parameter: last: date: month: The last travel month is the one of this day.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  b.travel_month,
  t.name as tax_name,
  coalesce(t.currency, b.currency) as currency,
  b.connection_id,
  b.channel_name,
  count(*) as bookings,
  sum(t.retail_amount) as retail_tax,
  sum(t.net_amount) as net_tax,
  sum(case when t.currency = b.currency or t.currency is null then b.retail_amount end) as retail_amount,
  min(case when b.travel_month + interval '1 month' <= c.this_day then 1 else 0 end) = 1 as is_over,
  min(case when v.is_complete then 1 else 0 end) = 1 as is_complete
from marts.fct_bookings b
left join core.booking_taxes t on t.connection_id = b.connection_id and t.booking_uuid = b.booking_uuid
left join (
  select connection_id, max(as_of_date) over (partition by supplier_key) as this_day
  from marts.dim_channel
) c on c.connection_id = b.connection_id
left join marts.booking_months v on v.connection_id = b.connection_id and v.travel_month = b.travel_month
where b.is_sold
  and b.travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
  and (cast($channel as text) is null or b.connection_id = cast($channel as text))
  and (cast($currency as text) is null or coalesce(t.currency, b.currency) = cast($currency as text))
group by b.travel_month, t.name, coalesce(t.currency, b.currency), b.connection_id, b.channel_name
order by b.travel_month desc, tax_name nulls last, currency, b.channel_name, b.connection_id
