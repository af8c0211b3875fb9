-- What is wrong with the days ahead: sold out, closed, hardly booked, or not loaded. Today is the venue's day at the copy's last verification.
-- One row: One product that is offered through a connection of the pipeline, from the copy's today on.
-- Made of warehouse/marts/availability_health.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH today AS (
  SELECT
    p.product_key,
    CAST(FROM_UTC_TIMESTAMP(MAX(c.last_verified_at_utc), COALESCE(p.time_zone, 'UTC')) AS DATE) AS as_of_date
  FROM marts.dim_product AS p
  JOIN marts.dim_channel AS c
    ON c.supplier_key = p.supplier_key
  WHERE
    p.sold_through <> '' AND c.is_active
  GROUP BY
    p.product_key,
    p.time_zone
), loaded AS (
  SELECT
    c.supplier_key || '|' || v.product_id AS product_key,
    MAX(v.window_end) AS covered_to
  FROM ops.coverage AS v
  JOIN marts.supplier_connections AS c
    ON c.connection_id = v.connection_id AND c.is_active
  WHERE
    v.resource = 'availability'
  GROUP BY
    c.supplier_key,
    v.product_id
), asked AS (
  /* A month without a departure, too, and an option without an answer. */
  SELECT
    t.product_key,
    MIN(CASE WHEN v.is_complete THEN 1 ELSE 0 END) AS is_complete
  FROM today AS t
  JOIN marts.coverage AS v
    ON v.product_key = t.product_key
    AND v.resource = 'availability'
    AND v.is_active
    AND v.travel_month >= DATE_TRUNC('MONTH', CAST(t.as_of_date AS TIMESTAMP_NTZ))
  GROUP BY
    t.product_key
), ahead AS (
  SELECT
    o.*,
    o.closed_departures = o.departures AS is_closed,
    o.sold_out_departures > 0
    AND o.sold_out_departures + o.closed_departures = o.departures AS is_sold_out
  FROM marts.agg_occupancy_daily AS o
  JOIN today AS t
    ON t.product_key = o.product_key AND o.travel_date >= t.as_of_date
)
SELECT
  p.product_key,
  p.connection_id,
  p.product_id,
  p.product_name,
  t.as_of_date,
  COUNT(a.travel_date) AS days,
  COUNT(*) FILTER(WHERE
    a.is_sold_out) AS sold_out_days,
  COUNT(*) FILTER(WHERE
    a.is_closed) AS closed_days,
  COUNT(*) FILTER(WHERE
    a.fill_rate < 0.2 AND NOT a.is_sold_out) AS weak_days,
  MIN(a.travel_date) FILTER(WHERE
    a.is_sold_out) AS next_sold_out_day,
  MAX(a.travel_date) AS last_day_loaded,
  l.covered_to,
  MIN(a.verified_at_utc) AS verified_at_utc,
  COALESCE(MIN(CASE WHEN a.is_covered THEN 1 ELSE 0 END) = 1 AND asked.is_complete = 1, FALSE) AS is_covered
FROM marts.dim_product AS p
JOIN today AS t
  ON t.product_key = p.product_key
LEFT JOIN loaded AS l
  ON l.product_key = p.product_key
LEFT JOIN asked
  ON asked.product_key = p.product_key
LEFT JOIN ahead AS a
  ON a.product_key = p.product_key
GROUP BY
  p.product_key,
  p.connection_id,
  p.product_id,
  p.product_name,
  t.as_of_date,
  l.covered_to,
  asked.is_complete
