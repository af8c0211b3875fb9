-- name: 11_net_owed
-- question: What net amount is owed per channel for last month's travel?
-- description: Net price of sold bookings by travel date, per channel and currency; bookings without a net price are counted apart.
-- parameter: first: date: month-1: First travel date.
-- parameter: last: date: month: The day after the last travel date.
select
  b.channel_name,
  b.supplier_name,
  b.currency,
  count(*) as bookings,
  count(*) filter (where b.net_amount is null) as without_net,
  sum(b.net_amount) as net_amount,
  sum(b.retail_amount) as retail_amount,
  c.bookings_from as known_from,
  min(b.verified_at_utc) as verified_at_utc
from marts.fct_bookings b
join marts.dim_channel c on c.connection_id = b.connection_id
where b.is_sold and b.travel_date >= cast($first as date) and b.travel_date < cast($last as date)
group by b.channel_name, b.supplier_name, b.currency, c.bookings_from
order by b.channel_name, b.supplier_name, b.currency
