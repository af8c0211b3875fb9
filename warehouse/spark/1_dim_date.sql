-- Every day of the years in which something was booked or travels, without gaps; none before 1970 or after 2199.
-- One row: One day.
-- Made of warehouse/marts/dim_date.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH days AS (
  SELECT
    local_date AS day
  FROM core.availability
  UNION ALL
  SELECT
    local_date
  FROM core.bookings
  UNION ALL
  SELECT
    CAST(FROM_UTC_TIMESTAMP(utc_created_at, 'UTC') AS DATE)
  FROM core.bookings
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
