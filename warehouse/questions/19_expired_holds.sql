-- name: 19_expired_holds
-- question: Which held reservations lapsed unsold?
-- description: Bookings that EXPIRED, per channel and product, with what they would have sold for in each currency.
-- parameter: first: date: today-30d: First booking date.
-- parameter: last: date: today: Last booking date.
select
  channel_name,
  product_name,
  currency,
  count(*) as holds,
  cast(sum(pax_count) as bigint) as guests,
  sum(retail_amount) as retail_amount,
  max(utc_expires_at) as last_expired_at_utc,
  min(verified_at_utc) as verified_at_utc
from marts.fct_bookings
where status = 'EXPIRED' and booking_date between cast($first as date) and cast($last as date)
group by channel_name, product_key, product_name, currency
order by holds desc, channel_name, product_key, currency
