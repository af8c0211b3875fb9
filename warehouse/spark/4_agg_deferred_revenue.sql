-- What was sold by the end of a month and travels after it, not cancelled by then: revenue that was not earned yet. Each booking counts as it is now, by its present day of travel and amount. Open-dated bookings, and those sold or cancelled at a time nobody told, are in no column.
-- One row: One connection (channel), end of a month and currency.
-- Made of warehouse/marts/agg_deferred_revenue.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH channels AS (
  /* One that left hears no more of the time: the supplier's others say which day it is. */
  SELECT
    connection_id,
    channel_name,
    business_time_zone,
    bookings_from,
    bookings_to,
    MAX(as_of_date) OVER (PARTITION BY supplier_key) AS as_of_date
  FROM marts.dim_channel
), spans AS (
  /* Deferred at the end of each month from the one in which it was sold to the one before it travels or is cancelled. */
  SELECT
    connection_id,
    currency,
    DATE_TRUNC('MONTH', CAST(sold_date AS TIMESTAMP_NTZ)) AS first_month,
    DATE_TRUNC(
      'MONTH',
      CAST(LEAST(travel_date, CASE WHEN is_cancelled THEN cancelled_date END) AS TIMESTAMP_NTZ)
    ) AS end_month,
    COUNT(*) AS bookings,
    COUNT(retail_amount) AS with_retail,
    COUNT(net_amount) AS with_net,
    SUM(pax_count) AS guests,
    SUM(retail_amount) AS retail_amount,
    SUM(net_amount) AS net_amount
  FROM marts.fct_bookings
  WHERE
    was_sold
    AND NOT travel_date IS NULL
    AND NOT sold_date IS NULL
    AND (
      NOT is_cancelled OR NOT cancelled_date IS NULL
    )
  GROUP BY
    1,
    2,
    3,
    4
), months AS (
  SELECT
    c.*,
    d.travel_month AS month_start,
    CAST(d.travel_month + INTERVAL '1' MONTH AS DATE) - 1 AS month_end
  FROM channels AS c
  JOIN (
    SELECT DISTINCT
      travel_month
    FROM marts.dim_date
  ) AS d
    ON d.travel_month <= c.as_of_date
), lists AS (
  SELECT
    v.connection_id,
    v.verified_at_utc,
    CAST(FROM_UTC_TIMESTAMP(v.verified_at_utc, COALESCE(c.business_time_zone, 'UTC')) AS DATE) AS read_date,
    v.travel_month AS month_start,
    v.is_complete /* To its last day, or as far as anything was asked for; of a month that is over after it. */
    AND (
      v.window_end >= m.month_end OR v.window_end >= c.bookings_to
    )
    AND (
      m.month_end >= c.as_of_date
      OR CAST(FROM_UTC_TIMESTAMP(v.verified_at_utc, COALESCE(c.business_time_zone, 'UTC')) AS DATE) > m.month_end
    ) AS is_known
  FROM marts.booking_lists AS v
  JOIN channels AS c
    ON c.connection_id = v.connection_id
  CROSS JOIN LATERAL (
    SELECT
      CAST(v.travel_month + INTERVAL '1' MONTH AS DATE) - 1 AS month_end
  ) AS m
  WHERE
    NOT v.travel_month IS NULL
), known AS (
  SELECT
    m.connection_id,
    m.month_start,
    MIN(v.verified_at_utc) AS verified_at_utc,
    MIN(
      CASE
        WHEN v.is_known
        AND m.bookings_from <= m.month_end + 1
        AND /* Read before the month's end, it does not have what was booked on the days after. */ (
          m.month_end >= m.as_of_date OR v.read_date > m.month_end
        )
        THEN 1
        ELSE 0
      END
    ) AS is_complete
  FROM months AS m
  JOIN lists AS v
    ON v.connection_id = m.connection_id AND v.month_start > m.month_start
  GROUP BY
    m.connection_id,
    m.month_start
), deferred AS (
  SELECT
    m.connection_id,
    m.channel_name,
    m.month_start,
    m.month_end,
    m.month_end < m.as_of_date AS is_over,
    m.bookings_to AS known_to,
    s.currency,
    SUM(s.bookings) AS bookings,
    SUM(s.guests) AS guests,
    SUM(s.retail_amount) AS retail_amount,
    SUM(s.net_amount) AS net_amount,
    SUM(s.bookings - s.with_retail) AS without_retail,
    SUM(s.bookings - s.with_net) AS without_net
  FROM months AS m
  JOIN spans AS s
    ON s.connection_id = m.connection_id
    AND s.first_month <= m.month_start
    AND s.end_month > m.month_start
  GROUP BY
    m.connection_id,
    m.channel_name,
    m.month_start,
    m.month_end,
    m.as_of_date,
    m.bookings_to,
    s.currency
)
SELECT
  d.connection_id,
  d.channel_name,
  d.month_end,
  d.currency,
  d.is_over,
  CAST(d.bookings AS BIGINT) AS bookings,
  CAST(d.guests AS BIGINT) AS guests,
  CAST(d.retail_amount AS DECIMAL(38, 4)) AS retail_amount,
  CAST(d.net_amount AS DECIMAL(38, 4)) AS net_amount,
  CAST(d.without_retail AS BIGINT) AS without_retail,
  CAST(d.without_net AS BIGINT) AS without_net,
  d.known_to,
  k.verified_at_utc,
  COALESCE(k.is_complete = 1, FALSE) AS is_complete
FROM deferred AS d
LEFT JOIN known AS k
  ON k.connection_id = d.connection_id AND k.month_start = d.month_start
