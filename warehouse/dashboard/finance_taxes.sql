-- name: finance_taxes
-- description: Taxes in the prices of sold bookings, and the retail price of those that state one, per travel month, name, currency and channel.
-- parameter: first: date: month-3: The first travel month is the one of this day.
-- parameter: last: date: month: The last travel month is the one of this day.
-- parameter: channel: text: : One connection alone (connection_id); null: all.
-- parameter: currency: text: : One currency alone; null: all.
select
  t.travel_month,
  t.tax_name,
  t.currency,
  t.channel_name,
  count(*) as bookings,
  sum(t.retail_amount) as retail_tax,
  sum(t.net_amount) as net_tax,
  sum(b.retail_amount) as retail_amount,
  min(case when t.travel_month < c.this_month then 1 else 0 end) = 1 as is_over,
  min(case when v.is_complete then 1 else 0 end) = 1 as is_complete
from marts.fct_taxes t
join core.bookings b on b.connection_id = t.connection_id and b.booking_uuid = t.booking_uuid
left join (
  select connection_id, substr(cast(max(as_of_date) over (partition by supplier_key) as text), 1, 7) as this_month
  from marts.dim_channel
) c on c.connection_id = t.connection_id
left join marts.booking_months v on v.connection_id = t.connection_id and v.travel_month = t.travel_month
where t.is_sold
  and t.travel_month between substr(cast(cast($first as date) as text), 1, 7) and substr(cast(cast($last as date) as text), 1, 7)
  and (cast($channel as text) is null or t.connection_id = cast($channel as text))
  and (cast($currency as text) is null or t.currency = cast($currency as text))
group by t.travel_month, t.tax_name, t.currency, t.connection_id, t.channel_name
order by t.travel_month desc, t.tax_name, t.currency, t.channel_name, t.connection_id
