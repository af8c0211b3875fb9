-- Taxes by name, refunds due and deferred revenue of each month as they are now and, of a month that octo-sync close has closed, as they were then and what lies between. Then and adjustment add up to now; an adjustment is null where one of both is not known. Nothing is known of then where is_kept is not true.
-- One row: One total of one month, connection and currency.
-- Made of warehouse/marts/month_totals.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH present AS (
  SELECT
    b.travel_month AS period,
    'tax' AS kind,
    t.name AS tax_name,
    b.connection_id,
    COALESCE(t.currency, b.currency, '') AS money,
    COUNT(*) AS bookings,
    CASE WHEN COUNT(*) = COUNT(t.retail_amount) THEN SUM(t.retail_amount) END AS retail,
    CASE WHEN COUNT(*) = COUNT(t.net_amount) THEN SUM(t.net_amount) END AS net
  FROM core.booking_taxes AS t
  JOIN marts.fct_bookings AS b
    ON b.connection_id = t.connection_id AND b.booking_uuid = t.booking_uuid
  WHERE
    b.is_sold AND NOT b.travel_month IS NULL
  GROUP BY
    b.travel_month,
    t.name,
    b.connection_id,
    COALESCE(t.currency, b.currency, '')
  UNION ALL
  SELECT
    cancelled_date - (
      CAST(EXTRACT(DAY FROM cancelled_date) AS INT) - 1
    ),
    'refund',
    '',
    connection_id,
    COALESCE(currency, ''),
    COUNT(*),
    CASE WHEN COUNT(*) = COUNT(retail_amount) THEN SUM(retail_amount) END,
    CASE WHEN COUNT(*) = COUNT(net_amount) THEN SUM(net_amount) END
  FROM marts.fct_bookings
  WHERE
    was_sold
    AND is_cancelled
    AND cancellation_refund = 'FULL'
    AND NOT cancelled_date IS NULL
  GROUP BY
    1,
    connection_id,
    COALESCE(currency, '')
  UNION ALL
  SELECT
    month_end - (
      CAST(EXTRACT(DAY FROM month_end) AS INT) - 1
    ),
    'deferred',
    '',
    connection_id,
    COALESCE(currency, ''),
    bookings,
    CASE WHEN without_retail = 0 THEN retail_amount END,
    CASE WHEN without_net = 0 THEN net_amount END
  FROM marts.agg_deferred_revenue
  WHERE
    bookings > 0
), both_times AS (
  SELECT
    COALESCE(n.period, t.month) AS period,
    COALESCE(n.kind, t.kind) AS kind,
    COALESCE(n.tax_name, t.name) AS tax_name,
    COALESCE(n.connection_id, t.connection_id) AS connection_id,
    COALESCE(n.money, t.currency) AS money,
    t.bookings,
    t.retail_amount,
    t.net_amount,
    COALESCE(n.bookings, 0) AS bookings_now,
    n.retail AS retail_now,
    n.net AS net_now
  FROM present AS n
  FULL JOIN (
    SELECT
      *,
      CAST(period || '-01' AS DATE) AS month
    FROM ops.closed_totals
  ) AS t
    ON t.month = n.period
    AND t.kind = n.kind
    AND t.name = n.tax_name
    AND t.connection_id = n.connection_id
    AND t.currency = n.money
)
SELECT
  b.period,
  b.kind,
  NULLIF(b.tax_name, '') AS tax_name,
  b.connection_id,
  COALESCE(ch.channel_name, b.connection_id) AS channel_name,
  NULLIF(b.money, '') AS currency,
  p.closed_at_utc,
  p.has_totals AS is_kept,
  CASE WHEN p.has_totals THEN COALESCE(b.bookings, 0) END AS bookings,
  b.retail_amount,
  b.net_amount,
  CASE WHEN p.has_totals THEN b.bookings_now - COALESCE(b.bookings, 0) END AS bookings_adjustment,
  CASE
    WHEN p.has_totals
    AND (
      NOT b.retail_amount IS NULL OR b.bookings IS NULL
    )
    AND (
      NOT b.retail_now IS NULL OR b.bookings_now = 0
    )
    THEN COALESCE(b.retail_now, 0) - COALESCE(b.retail_amount, 0)
  END AS retail_adjustment,
  CASE
    WHEN p.has_totals
    AND (
      NOT b.net_amount IS NULL OR b.bookings IS NULL
    )
    AND (
      NOT b.net_now IS NULL OR b.bookings_now = 0
    )
    THEN COALESCE(b.net_now, 0) - COALESCE(b.net_amount, 0)
  END AS net_adjustment,
  b.bookings_now,
  b.retail_now,
  b.net_now
FROM both_times AS b
LEFT JOIN ops.closed_periods AS p
  ON CAST(p.period || '-01' AS DATE) = b.period
LEFT JOIN marts.supplier_connections AS ch
  ON ch.connection_id = b.connection_id
