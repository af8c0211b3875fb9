-- name: agg_bookings_daily
-- grain: One booking date, channel, product and currency.
-- description: Bookings per day they were made. Bookings are listed by travel date, so days before the first pull are incomplete.
-- column: booking_date: Day the bookings were made, in the business time zone.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: product_key: One column to join products on.
-- column: product_name: Title, else internal name, else id.
-- column: bookings: All bookings made.
-- column: sold: Those CONFIRMED or REDEEMED.
-- column: cancelled: Those CANCELLED.
-- column: pax: People in the sold ones.
select
  booking_date,
  channel_name,
  product_key,
  product_name,
  currency,
  count(*) as bookings,
  sum(case when is_sold then 1 else 0 end) as sold,
  sum(case when is_cancelled then 1 else 0 end) as cancelled,
  sum(case when is_sold then pax_count end) as pax,
  sum(case when is_sold then retail_amount end) as retail_amount,
  sum(case when is_sold then net_amount end) as net_amount
from marts.fct_bookings
group by booking_date, channel_name, product_key, product_name, currency
