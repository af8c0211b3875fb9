-- name: 02_revenue
-- question: What is the revenue by currency, product and channel, without open-dated bookings?
-- description: Sold bookings by travel date; currencies are never added up, and bookings without a net price are counted apart. Those without a travel date are in no row. Where known_from is empty, the service lists by day of booking, and who booked before that began may be missing.
-- parameter: first: date: year: First travel date.
-- parameter: last: date: year+1-1d: Last travel date.
-- not shown: open-dated booking: is_sold and travel_date is null
select
  b.currency,
  b.product_name,
  b.channel_name,
  sum(b.retail_amount) as retail_amount,
  sum(b.net_amount) as net_amount,
  count(*) as bookings,
  cast(sum(b.pax_count) as bigint) as guests,
  count(*) filter (where b.net_amount is null) as without_net,
  c.bookings_from as known_from,
  min(b.verified_at_utc) as verified_at_utc
from marts.fct_bookings b
join marts.dim_channel c on c.connection_id = b.connection_id
where b.is_sold and b.travel_date between cast($first as date) and cast($last as date)
group by b.currency, b.product_key, b.product_name, b.channel_name, c.bookings_from
order by b.currency, retail_amount desc nulls last, b.product_key, b.channel_name
