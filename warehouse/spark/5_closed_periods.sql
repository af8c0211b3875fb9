-- The figures of months that octo-sync close has closed, as they were then, what was adjusted since, and what they are now. Figures then and adjustments add up to the figures now; period_adjustments has each booking and its cause. A month that was closed without a booking has one row without a connection.
-- One row: One closed month of travel, connection and currency.
-- Made of warehouse/marts/closed_periods.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH closed AS (
  SELECT
    CAST(period || '-01' AS DATE) AS month,
    connection_id,
    currency,
    COALESCE(currency, '') AS money,
    COUNT(*) AS bookings,
    CAST(SUM(pax_count) AS BIGINT) AS guests,
    SUM(retail_amount) AS retail_amount,
    SUM(net_amount) AS net_amount
  FROM ops.closed_bookings
  GROUP BY
    period,
    connection_id,
    currency
), adjusted AS (
  SELECT
    period,
    connection_id,
    currency,
    COALESCE(currency, '') AS money,
    COUNT(*) AS adjustments,
    CAST(SUM(bookings) AS BIGINT) AS bookings,
    SUM(retail_adjustment) AS retail,
    SUM(net_adjustment) AS net,
    CAST(SUM(guests_adjustment) AS BIGINT) AS guests
  FROM marts.period_adjustments
  GROUP BY
    period,
    connection_id,
    currency
), figures AS (
  SELECT
    COALESCE(c.month, a.period) AS month,
    COALESCE(c.connection_id, a.connection_id) AS connection_id,
    COALESCE(c.currency, a.currency) AS currency,
    COALESCE(c.bookings, 0) AS bookings,
    COALESCE(c.guests, 0) AS guests,
    c.retail_amount,
    c.net_amount,
    COALESCE(a.adjustments, 0) AS adjustments,
    COALESCE(a.bookings, 0) AS bookings_adjustment,
    a.retail AS retail_adjustment,
    a.net AS net_adjustment,
    COALESCE(a.guests, 0) AS guests_adjustment
  FROM closed AS c
  FULL JOIN adjusted AS a
    ON a.period = c.month AND a.connection_id = c.connection_id AND a.money = c.money
)
SELECT
  p.month AS period,
  f.connection_id,
  COALESCE(ch.channel_name, f.connection_id) AS channel_name,
  f.currency,
  p.closed_at_utc,
  p.was_complete,
  p.digest,
  f.bookings,
  f.guests,
  f.retail_amount,
  f.net_amount,
  f.adjustments,
  f.bookings_adjustment,
  f.retail_adjustment,
  f.net_adjustment,
  f.guests_adjustment,
  f.bookings + f.bookings_adjustment AS bookings_now,
  COALESCE(f.retail_amount + f.retail_adjustment, f.retail_amount, f.retail_adjustment) AS retail_now,
  COALESCE(f.net_amount + f.net_adjustment, f.net_amount, f.net_adjustment) AS net_now
FROM (
  SELECT
    *,
    CAST(period || '-01' AS DATE) AS month
  FROM ops.closed_periods
) AS p
LEFT JOIN figures AS f
  ON f.month = p.month
LEFT JOIN marts.supplier_connections AS ch
  ON ch.connection_id = f.connection_id
