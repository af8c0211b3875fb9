-- Where bookings come from, and what is known through it: the connection, its channel, the supplier behind it.
-- One row: One connection of the pipeline.
-- Made of warehouse/marts/dim_channel.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH heard AS (
  SELECT
    connection_id,
    MAX(verified_at_utc) AS last_verified_at_utc
  FROM ops.coverage
  GROUP BY
    connection_id
), lists AS (
  /* Their months and days are those of travel, or else of booking. */
  SELECT
    connection_id,
    COALESCE(travel_month, booking_month) AS month,
    COALESCE(window_start, booked_start) AS first_day,
    window_end,
    NOT booking_month IS NULL AS is_by_booking
  FROM marts.booking_lists
  WHERE
    answers > 0
), covered AS (
  SELECT
    connection_id,
    MAX(window_end) AS last_day,
    MAX(CASE WHEN is_by_booking THEN 1 ELSE 0 END) = 1 AS is_by_booking
  FROM lists
  GROUP BY
    connection_id
), began AS (
  SELECT
    connection_id,
    MIN(first_seen_at_utc) AS first_pulled_at_utc
  FROM core.products
  GROUP BY
    connection_id
), pulled AS (
  SELECT
    c.connection_id,
    began.first_pulled_at_utc,
    CAST(FROM_UTC_TIMESTAMP(began.first_pulled_at_utc, COALESCE(c.business_time_zone, 'UTC')) AS DATE) AS first_pulled_date,
    heard.last_verified_at_utc,
    CAST(FROM_UTC_TIMESTAMP(heard.last_verified_at_utc, COALESCE(c.business_time_zone, 'UTC')) AS DATE) AS as_of_date,
    covered.last_day,
    covered.is_by_booking
  FROM core.connections AS c
  LEFT JOIN heard
    ON heard.connection_id = c.connection_id
  LEFT JOIN covered
    ON covered.connection_id = c.connection_id
  LEFT JOIN began
    ON began.connection_id = c.connection_id
), months AS (
  SELECT
    v.connection_id,
    v.month,
    v.first_day /* Nobody says in which zone days of booking are counted, so the first one may be in part. */ + CASE WHEN v.is_by_booking THEN 1 ELSE 0 END AS first_day,
    v.month /* The month after it was never answered, and is not one to come. */ + INTERVAL '1' MONTH <= p.as_of_date
    AND LEAD(v.month) OVER (PARTITION BY v.connection_id ORDER BY v.month NULLS LAST) > v.month + INTERVAL '1' MONTH AS is_before_hole
  FROM lists AS v
  JOIN pulled AS p
    ON p.connection_id = v.connection_id
), holes AS (
  SELECT
    connection_id,
    MAX(month) AS month_before
  FROM months
  WHERE
    is_before_hole
  GROUP BY
    connection_id
), known AS (
  SELECT
    m.connection_id,
    MIN(m.first_day) AS first_day,
    NOT MAX(h.month_before) IS NULL AS is_after_hole,
    MIN(m.month) AS first_month
  FROM months AS m
  LEFT JOIN holes AS h
    ON h.connection_id = m.connection_id
  WHERE
    h.month_before IS NULL OR m.month > h.month_before
  GROUP BY
    m.connection_id
), told AS (
  SELECT
    p.*,
    CASE
      WHEN k.is_after_hole AND p.first_pulled_date < k.first_month
      THEN k.first_day
      WHEN NOT k.first_day IS NULL
      THEN LEAST(k.first_day, p.first_pulled_date)
    END AS known_from /* A horizon moves on, but what was booked since the first pull has been there; not so beyond a hole. */
  FROM pulled AS p
  LEFT JOIN known AS k
    ON k.connection_id = p.connection_id
)
SELECT
  c.connection_id,
  c.channel_name,
  c.role,
  c.supplier_id,
  c.supplier_name,
  c.business_time_zone,
  c.is_active,
  p.first_pulled_at_utc,
  p.last_verified_at_utc,
  p.as_of_date,
  CASE WHEN NOT p.is_by_booking THEN p.known_from END AS bookings_from,
  p.last_day AS bookings_to,
  p.known_from AS booked_from,
  c.supplier_key
FROM marts.supplier_connections AS c
JOIN told AS p
  ON p.connection_id = c.connection_id
