-- name: 11_net_owed
-- question: How much is owed at net prices for a time of travel, by channel and supplier?
-- description: The net price is what the seller pays the supplier. Sold bookings by travel date, per currency; without_net counts those that have no net price and are missing in the sum. Those without a travel date are in no row. Where known_from is empty, the service lists by day of booking, and who booked before that began may be missing.
-- parameter: first: date: month-1: First travel date.
-- parameter: last: date: month-1d: Last travel date.
-- not shown: open-dated booking: is_sold and travel_date is null
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
where b.is_sold and b.travel_date between cast($first as date) and cast($last as date)
group by b.channel_name, b.supplier_name, b.currency, c.bookings_from
order by b.channel_name, b.supplier_name, b.currency
