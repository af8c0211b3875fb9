-- What each list of bookings speaks for: days of travel, or days of booking where the service lists by those. The one place that tells them apart; every mart that says what is known of bookings reads it here.
-- One row: One connection and month whose bookings were asked for.
-- Made of warehouse/marts/booking_lists.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH by_booking AS (
  /* As the service's answers showed, or the pipeline says. */
  SELECT DISTINCT
    connection_id
  FROM ops.schema_drift
  WHERE
    resource = 'bookings' AND kind = 'meaning' AND name = 'creation'
), lists AS (
  SELECT
    connection_id,
    key,
    travel_month AS month,
    window_start,
    window_end,
    verified_at_utc,
    source,
    is_complete,
    missing_capabilities,
    row_count,
    1 AS answers
  FROM ops.coverage
  WHERE
    resource = 'bookings'
  UNION ALL
  SELECT
    connection_id,
    key,
    travel_month,
    NULL,
    NULL,
    NULL,
    NULL,
    FALSE,
    NULL,
    NULL,
    0
  FROM ops.unanswered
  WHERE
    resource = 'bookings'
)
SELECT
  l.connection_id,
  l.key,
  CASE WHEN d.connection_id IS NULL THEN CAST(l.month || '-01' AS DATE) END AS travel_month,
  CASE WHEN d.connection_id IS NULL THEN l.window_start END AS window_start,
  CASE WHEN d.connection_id IS NULL THEN l.window_end END AS window_end,
  CASE WHEN NOT d.connection_id IS NULL THEN CAST(l.month || '-01' AS DATE) END AS booking_month,
  CASE WHEN NOT d.connection_id IS NULL THEN l.window_start END AS booked_start,
  CASE
    WHEN NOT d.connection_id IS NULL
    THEN LEAST(l.window_end, CAST(FROM_UTC_TIMESTAMP(l.verified_at_utc, 'UTC') AS DATE) + 1)
  END AS booked_end, /* Nobody has booked later than it was asked; it may have been tomorrow already where the service is. */
  l.verified_at_utc,
  l.source AS verified_by,
  l.is_complete,
  l.missing_capabilities,
  l.row_count,
  l.answers
FROM lists AS l
LEFT JOIN by_booking AS d
  ON d.connection_id = l.connection_id
/* Asked for before it was known what the days mean: nobody had booked on them yet. */
WHERE
  d.connection_id IS NULL
  OR l.verified_at_utc IS NULL
  OR l.window_start <= CAST(FROM_UTC_TIMESTAMP(l.verified_at_utc, 'UTC') AS DATE) + 1
