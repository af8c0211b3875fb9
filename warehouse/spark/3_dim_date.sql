-- Every day of the years in which something was booked, sold or cancelled, or travels, and of those in between and up to the copy's today, without gaps; none before 1970 or after 2199.
-- One row: One day.
-- Made of warehouse/marts/dim_date.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH instants AS (
  SELECT
    connection_id,
    utc_created_at AS at_utc
  FROM core.bookings
  UNION ALL
  SELECT
    connection_id,
    utc_confirmed_at
  FROM core.bookings
  UNION ALL
  SELECT
    connection_id,
    utc_cancelled_at
  FROM core.bookings
), edges AS (
  /* The first and the last stand for all others, whatever the time zone. */
  SELECT
    connection_id,
    MIN(at_utc) AS first_utc,
    MAX(at_utc) AS last_utc
  FROM instants
  WHERE
    at_utc BETWEEN CAST('1970-01-01 00:00:00+00' AS TIMESTAMP) AND CAST('2199-12-31 23:59:59+00' AS TIMESTAMP)
  GROUP BY
    connection_id
), booked AS (
  SELECT
    CAST(FROM_UTC_TIMESTAMP(e.first_utc, COALESCE(c.business_time_zone, 'UTC')) AS DATE) AS first_day,
    CAST(FROM_UTC_TIMESTAMP(e.last_utc, COALESCE(c.business_time_zone, 'UTC')) AS DATE) AS last_day
  FROM edges AS e
  LEFT JOIN core.connections AS c
    ON c.connection_id = e.connection_id
), days AS (
  SELECT
    local_date AS day
  FROM core.availability
  UNION ALL
  SELECT
    local_date
  FROM core.bookings
  UNION ALL
  SELECT
    first_day
  FROM booked
  UNION ALL
  SELECT
    last_day
  FROM booked
  /* Also where nothing was booked on days that are known. */
  UNION ALL
  SELECT
    booked_from
  FROM marts.dim_channel
  UNION ALL
  SELECT
    as_of_date
  FROM marts.dim_channel
), span AS (
  SELECT
    DATE_TRUNC('YEAR', CAST(MIN(day) AS TIMESTAMP_NTZ)) AS first_day,
    DATE_TRUNC('YEAR', CAST(MAX(day) AS TIMESTAMP_NTZ)) + INTERVAL '1' YEAR - INTERVAL '1' DAY AS last_day
  FROM days
  WHERE
    day BETWEEN CAST('1970-01-01' AS DATE) AND CAST('2199-12-31' AS DATE)
), calendar AS (
  SELECT
    CAST(series.day AS DATE) AS date_key
  FROM span
  CROSS JOIN LATERAL EXPLODE(
    CASE
      WHEN span.first_day <= span.last_day
      THEN SEQUENCE(span.first_day, span.last_day, INTERVAL '1' DAY)
    END
  ) AS series(day)
)
SELECT
  date_key,
  CAST(EXTRACT(YEAR FROM date_key) AS INT) AS year,
  CAST(EXTRACT(QUARTER FROM date_key) AS INT) AS quarter,
  CAST(EXTRACT(MONTH FROM date_key) AS INT) AS month,
  date_key - (
    CAST(EXTRACT(DAY FROM date_key) AS INT) - 1
  ) AS travel_month,
  CAST(EXTRACT(DAY FROM date_key) AS INT) AS day_of_month,
  CAST(YEAR((
    date_key - (
      (
        DAYOFWEEK(date_key) + 5
      ) % 7
    )
  ) + 3) AS INT) AS iso_year,
  CAST(EXTRACT(WEEK FROM date_key) AS INT) AS iso_week,
  CAST((
    (
      (
        DAYOFWEEK(date_key) + 5
      ) % 7
    ) + 1
  ) AS INT) AS weekday,
  CASE (
      (
        (
          DAYOFWEEK(date_key) + 5
        ) % 7
      ) + 1
    )
    WHEN 1
    THEN 'Monday'
    WHEN 2
    THEN 'Tuesday'
    WHEN 3
    THEN 'Wednesday'
    WHEN 4
    THEN 'Thursday'
    WHEN 5
    THEN 'Friday'
    WHEN 6
    THEN 'Saturday'
    ELSE 'Sunday'
  END AS weekday_name,
  (
    (
      (
        DAYOFWEEK(date_key) + 5
      ) % 7
    ) + 1
  ) >= 6 AS is_weekend
FROM calendar
