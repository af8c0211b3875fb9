-- name: 24_taxes
-- question: Which taxes are in the prices of a time of travel?
-- description: Taxes of sold bookings by name and travel month, per currency: those in the retail price, and those in the net price. Where the service states no taxes, there is no row. is_complete: whether all bookings of the month are known.
-- parameter: first: date: month-1: First travel month.
-- parameter: last: date: month-1: Last travel month.
select
  t.travel_month,
  t.tax_name,
  t.currency,
  t.channel_name,
  sum(t.retail_amount) as retail_tax,
  sum(t.net_amount) as net_tax,
  count(*) as bookings,
  coalesce(min(case when v.is_complete then 1 else 0 end) = 1, false) as is_complete,
  t.supplier_name,
  min(t.verified_at_utc) as verified_at_utc
from marts.fct_taxes t
left join marts.booking_months v on v.connection_id = t.connection_id and v.travel_month = t.travel_month
where t.is_sold
  and t.travel_month between date_trunc('month', cast($first as timestamp)) and cast($last as date)
group by t.travel_month, t.tax_name, t.currency, t.connection_id, t.channel_name, t.supplier_name
order by t.travel_month, t.tax_name, t.currency, t.channel_name, t.connection_id
