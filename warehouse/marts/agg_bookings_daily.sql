-- name: agg_bookings_daily
-- grain: One booking date, connection (channel), product and currency.
-- description: Bookings per day they were made. Days before the first pull are known in part, and a month that was never answered leaves a day in doubt: see is_complete and booking_coverage.
-- column: booking_date: Day the bookings were made, in the business time zone.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: product_key: One column to join products on.
-- column: product_name: Title, else internal name, else id.
-- column: bookings: All bookings made, whatever became of them.
-- column: sold: Those CONFIRMED, REDEEMED or NOSHOW.
-- column: cancelled: Those CANCELLED.
-- column: guests: Guests in the sold ones, where known.
-- column: sold_without_guests: Sold ones of which nothing says how many guests they admit.
-- column: original_amount: Original price of the sold ones.
-- column: retail_amount: Retail price of the sold ones.
-- column: net_amount: Net price of the sold ones, where known.
-- column: tax_amount: Taxes included in the sold ones' retail price.
-- column: margin_amount: Retail minus net of the sold ones, where net is known.
-- column: sold_without_net: Sold ones without a net price, which net_amount and margin_amount leave out.
-- column: verified_at_utc: Of the months that have its bookings, when the one read longest ago was read: see booking_coverage.
-- column: is_complete: Of travel up to bookings_to (dim_channel): whether the day is over and every month that has its bookings was answered and read completely after it, to the day: see booking_coverage.
select
  b.booking_date,
  b.connection_id,
  b.channel_name,
  b.product_key,
  b.product_name,
  b.currency,
  count(*) as bookings,
  count(*) filter (where b.is_sold) as sold,
  count(*) filter (where b.is_cancelled) as cancelled,
  cast(sum(b.pax_count) filter (where b.is_sold) as bigint) as guests,
  count(*) filter (where b.is_sold and b.pax_count is null) as sold_without_guests,
  sum(b.original_amount) filter (where b.is_sold) as original_amount,
  sum(b.retail_amount) filter (where b.is_sold) as retail_amount,
  sum(b.net_amount) filter (where b.is_sold) as net_amount,
  sum(b.tax_amount) filter (where b.is_sold) as tax_amount,
  sum(b.margin_amount) filter (where b.is_sold) as margin_amount,
  count(*) filter (where b.is_sold and b.net_amount is null) as sold_without_net,
  min(e.verified_at_utc) as verified_at_utc,
  coalesce(min(case when e.is_complete then 1 else 0 end) = 1, false) as is_complete
from marts.fct_bookings b
left join marts.booking_coverage e on e.connection_id = b.connection_id and e.booking_date = b.booking_date
group by b.booking_date, b.connection_id, b.channel_name, b.product_key, b.product_name, b.currency
