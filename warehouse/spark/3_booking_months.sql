-- Whether a month's bookings are known completely. Empty where lists are by day of booking: none of them speaks for a month of travel.
-- One row: One connection and month of travel whose bookings were asked for.
-- Made of warehouse/marts/booking_months.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH channels AS (
  /* One that left hears no more of the time: the supplier's others say which day it is. */
  SELECT
    *,
    MAX(as_of_date) OVER (PARTITION BY supplier_key) AS this_day
  FROM marts.dim_channel
), lists AS (
  SELECT
    *,
    CAST(travel_month + INTERVAL '1' MONTH AS DATE) - 1 AS last_day
  FROM marts.booking_lists
  WHERE
    NOT travel_month IS NULL
)
SELECT
  v.connection_id,
  v.travel_month,
  v.verified_at_utc,
  COALESCE(
    v.is_complete
    AND c.bookings_from <= v.travel_month
    AND v.window_end >= v.last_day
    AND (
      c.this_day <= v.last_day
      OR CAST(FROM_UTC_TIMESTAMP(v.verified_at_utc, COALESCE(c.business_time_zone, 'UTC')) AS DATE) > v.last_day
    ),
    FALSE
  ) AS is_complete
FROM lists AS v
JOIN channels AS c
  ON c.connection_id = v.connection_id
