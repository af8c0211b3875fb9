-- Bookings per day they were made. Days before the first pull are known in part, and a month that was never answered leaves a day in doubt: see is_complete and booking_coverage.
-- One row: One booking date, connection (channel), product and currency.
-- Made of warehouse/marts/agg_bookings_daily.sql by scripts/spark.py, for a session whose time zone is UTC.
SELECT
  b.booking_date,
  b.connection_id,
  b.channel_name,
  b.product_key,
  b.product_name,
  b.currency,
  COUNT(*) AS bookings,
  COUNT(*) FILTER(WHERE
    b.is_sold) AS sold,
  COUNT(*) FILTER(WHERE
    b.is_cancelled) AS cancelled,
  CAST(SUM(b.pax_count) FILTER(WHERE
    b.is_sold) AS BIGINT) AS guests,
  COUNT(*) FILTER(WHERE
    b.is_sold AND b.pax_count IS NULL) AS sold_without_guests,
  SUM(b.original_amount) FILTER(WHERE
    b.is_sold) AS original_amount,
  SUM(b.retail_amount) FILTER(WHERE
    b.is_sold) AS retail_amount,
  SUM(b.net_amount) FILTER(WHERE
    b.is_sold) AS net_amount,
  SUM(b.tax_amount) FILTER(WHERE
    b.is_sold) AS tax_amount,
  SUM(b.margin_amount) FILTER(WHERE
    b.is_sold) AS margin_amount,
  COUNT(*) FILTER(WHERE
    b.is_sold AND b.net_amount IS NULL) AS sold_without_net,
  MIN(e.verified_at_utc) AS verified_at_utc,
  COALESCE(MIN(CASE WHEN e.is_complete THEN 1 ELSE 0 END) = 1, FALSE) AS is_complete
FROM marts.fct_bookings AS b
LEFT JOIN marts.booking_coverage AS e
  ON e.connection_id = b.connection_id AND e.booking_date = b.booking_date
GROUP BY
  b.booking_date,
  b.connection_id,
  b.channel_name,
  b.product_key,
  b.product_name,
  b.currency
