-- Whether all bookings made on a day are known that travel on days which are asked for. Where they are listed by travel date, every month of travel since has to have been asked for and read completely after the day, and every day of them: one that was never answered, or that the last answer of its month did not speak for, leaves all days up to it in doubt. Where they are listed by day of booking, only the months of the day itself and of its neighbours count, because nobody says in which zone its days are.
-- One row: One connection and booking date, from the first booking to the copy's today.
-- Made of warehouse/marts/booking_coverage.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH began AS (
  SELECT
    connection_id,
    MIN(CAST(FROM_UTC_TIMESTAMP(utc_created_at, 'UTC') AS DATE)) - 1 AS first_day
  FROM core.bookings
  WHERE
    utc_created_at >= CAST('1970-01-01 00:00:00+00' AS TIMESTAMP)
  GROUP BY
    connection_id
), asked AS (
  SELECT
    connection_id,
    NOT booking_month IS NULL AS is_by_booking,
    COALESCE(travel_month, booking_month) AS first_day,
    CAST(COALESCE(travel_month, booking_month) + INTERVAL '1' MONTH AS DATE) - 1 AS last_day,
    COALESCE(window_start, booked_start) AS window_start,
    COALESCE(window_end, booked_end) AS window_end,
    verified_at_utc,
    is_complete
  FROM marts.booking_lists
), by_booking AS (
  SELECT DISTINCT
    connection_id
  FROM asked
  WHERE
    is_by_booking
), days AS (
  SELECT
    c.connection_id,
    c.business_time_zone,
    c.booked_from,
    CAST(series.day AS DATE) AS booking_date,
    c.as_of_date,
    CAST(series.day AS DATE) /* Where the venue's day is behind the business day, what is booked today may have travelled yesterday. */ - 1 AS first_wanted,
    CASE
      WHEN d.connection_id IS NULL
      THEN CAST('9999-12-31' AS DATE)
      ELSE LEAST(CAST(series.day AS DATE) + 1, c.as_of_date)
    END AS last_wanted /* Where lists are by day of booking, those of later months have nothing of this day. */
  FROM marts.dim_channel AS c
  LEFT JOIN began
    ON began.connection_id = c.connection_id
  LEFT JOIN by_booking AS d
    ON d.connection_id = c.connection_id
  CROSS JOIN LATERAL EXPLODE(
    CASE
      WHEN CAST(LEAST(began.first_day, c.booked_from) AS TIMESTAMP_NTZ) <= CAST(c.as_of_date AS TIMESTAMP_NTZ)
      THEN SEQUENCE(
        CAST(LEAST(began.first_day, c.booked_from) AS TIMESTAMP_NTZ),
        CAST(c.as_of_date AS TIMESTAMP_NTZ),
        INTERVAL '1' DAY
      )
    END
  ) AS series(day)
), counted AS (
  SELECT
    d.connection_id,
    d.booking_date,
    MIN(v.verified_at_utc) AS verified_at_utc,
    COUNT(CASE WHEN v.is_complete AND v.first_day <= d.as_of_date THEN 1 END) AS months,
    CAST((
      EXTRACT(YEAR FROM LEAST(d.as_of_date, d.last_wanted)) - EXTRACT(YEAR FROM d.first_wanted)
    ) * 12 + EXTRACT(MONTH FROM LEAST(d.as_of_date, d.last_wanted)) - EXTRACT(MONTH FROM d.first_wanted) + 1 AS BIGINT) AS months_wanted,
    COUNT(CASE WHEN NOT v.is_complete THEN 1 END) AS in_doubt,
    COUNT(
      CASE
        WHEN v.is_by_booking
        THEN CASE
          WHEN v.window_start > GREATEST(d.first_wanted, v.first_day)
          OR v.window_end < LEAST(d.last_wanted, v.last_day)
          THEN 1
        END
        WHEN v.last_day < d.as_of_date
        AND v.window_end < v.last_day
        AND v.last_day >= d.booking_date
        THEN 1
        WHEN v.first_day <= d.as_of_date
        AND v.window_start > GREATEST(d.booking_date, v.first_day)
        THEN 1
      END
    ) AS in_part, /* Days since then that the month's last answer did not speak for. */
    d.booking_date >= d.booked_from
    AND d.booking_date < CAST(FROM_UTC_TIMESTAMP(MIN(v.verified_at_utc), COALESCE(d.business_time_zone, 'UTC')) AS DATE) AS is_known
  FROM days AS d
  LEFT JOIN asked AS v
    ON v.connection_id = d.connection_id
    AND v.last_day >= d.first_wanted
    AND v.first_day <= d.last_wanted
  GROUP BY
    d.connection_id,
    d.booking_date,
    d.booked_from,
    d.business_time_zone,
    d.as_of_date,
    d.first_wanted,
    d.last_wanted
)
SELECT
  connection_id,
  booking_date,
  verified_at_utc,
  months,
  months_wanted,
  COALESCE(is_known AND in_doubt = 0 AND in_part = 0 AND months = months_wanted, FALSE) AS is_complete
FROM counted
