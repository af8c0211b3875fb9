-- How old the oldest and newest verification are, and what is open. A booking is as fresh as in fct_bookings, a product as its own or the catalogue's, whichever is newer. Months and bookings that were over when the connection was last heard of, and what is offered no more, are left out.
-- One row: One connection and resource.
-- Made of warehouse/marts/sync_freshness.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH newest AS (
  SELECT
    connection_id,
    MAX(verified_at_utc) AS at_utc
  FROM ops.coverage
  GROUP BY
    connection_id
), asked AS (
  SELECT
    c.*
  FROM ops.coverage AS c
  LEFT JOIN core.options AS o
    ON o.connection_id = c.connection_id
    AND o.product_id = c.product_id
    AND o.option_id = c.option_id
  LEFT JOIN core.products AS p
    ON p.connection_id = c.connection_id AND p.product_id = c.product_id
  WHERE
    NOT COALESCE(o.is_deleted, FALSE) AND NOT COALESCE(p.is_deleted, FALSE)
), evidence AS (
  /* One line a subject that is not over, with the newest complete answer that speaks for it: its own or its list's. */
  SELECT
    c.connection_id,
    c.resource,
    c.key,
    c.is_complete,
    GREATEST(
      c.verified_at_utc,
      listed.verified_at_utc,
      CASE WHEN f.is_covered THEN f.verified_at_utc END
    ) AS verified_at_utc
  FROM asked AS c
  JOIN newest
    ON newest.connection_id = c.connection_id
  LEFT JOIN core.bookings AS b
    ON c.resource IN ('booking', 'open_dated')
    AND b.connection_id = c.connection_id
    AND c.key = '["' || b.booking_uuid || '"]'
  LEFT JOIN ops.absences AS a
    ON c.resource = 'product'
    AND a.connection_id = c.connection_id
    AND a.key = c.key
    AND a.table_name = 'core.products'
  LEFT JOIN ops.coverage AS listed
    ON listed.connection_id = c.connection_id
    AND listed.is_complete
    AND a.key IS NULL
    AND c.resource = 'product'
    AND listed.resource = 'products'
  LEFT JOIN marts.fct_bookings AS f
    ON f.connection_id = b.connection_id AND f.booking_uuid = b.booking_uuid
  WHERE
    COALESCE(c.window_end, b.local_date, CAST('9999-12-31' AS DATE)) >= CAST(FROM_UTC_TIMESTAMP(newest.at_utc, 'UTC') AS DATE)
    AND NOT (
      c.is_complete
      AND c.resource IN ('booking', 'open_dated')
      AND (
        COALESCE(b.is_deleted, c.row_count = 0)
        OR (
          b.local_date IS NULL AND NOT b.status IN ('ON_HOLD', 'CONFIRMED', 'PENDING')
        )
      )
    )
  UNION ALL
  /* Bookings that are not over and of which no answer of their own and no list by day of travel is on record. */
  SELECT
    f.connection_id,
    'unlisted',
    '["' || f.booking_uuid || '"]',
    f.is_covered,
    f.verified_at_utc
  FROM marts.fct_bookings AS f
  JOIN newest
    ON newest.connection_id = f.connection_id
  LEFT JOIN ops.coverage AS own
    ON own.connection_id = f.connection_id
    AND own.resource IN ('booking', 'open_dated')
    AND own.key = '["' || f.booking_uuid || '"]'
  LEFT JOIN marts.booking_lists AS v
    ON v.connection_id = f.connection_id
    AND v.travel_month = f.travel_month
    AND f.travel_date BETWEEN v.window_start AND v.window_end
  WHERE
    own.key IS NULL
    AND v.connection_id IS NULL
    AND (
      f.travel_date >= CAST(FROM_UTC_TIMESTAMP(newest.at_utc, 'UTC') AS DATE)
      OR f.travel_date IS NULL
      AND (
        f.status IN ('ON_HOLD', 'CONFIRMED', 'PENDING') OR NOT f.is_covered
      )
    )
), verified AS (
  SELECT
    connection_id,
    resource,
    COUNT(*) AS subjects,
    MIN(verified_at_utc) AS oldest_verified_at,
    MAX(verified_at_utc) AS last_verified_at,
    COUNT(CASE WHEN NOT is_complete THEN 1 END) AS incomplete_subjects
  FROM evidence
  GROUP BY
    connection_id,
    resource
), unproven AS (
  SELECT
    connection_id,
    resource,
    key
  FROM asked
  WHERE
    NOT is_complete
  UNION
  SELECT
    connection_id,
    resource,
    key
  FROM evidence
  WHERE
    NOT is_complete
  UNION
  SELECT
    connection_id,
    resource,
    key
  FROM ops.unanswered
  UNION
  SELECT
    connection_id,
    resource,
    key
  FROM ops.quarantine
  UNION
  SELECT
    connection_id,
    resource,
    subject_key
  FROM ops.absences
), missed AS (
  SELECT
    connection_id,
    resource,
    COUNT(*) AS missed_rows
  FROM (
    SELECT
      connection_id,
      resource
    FROM ops.absences
    UNION ALL
    /* Whichever of the two is asked, it lacks in both. */
    SELECT
      a.connection_id,
      other.resource
    FROM ops.absences AS a
    JOIN VALUES
      ('booking', 'bookings'),
      ('bookings', 'booking'),
      ('product', 'products'),
      ('products', 'product') AS other(asked, resource)
      ON other.asked = a.resource
  ) AS missing
  GROUP BY
    connection_id,
    resource
), failing AS (
  SELECT
    q.connection_id,
    q.resource,
    COUNT(
      CASE
        WHEN newest.at_utc IS NULL OR q.last_at_utc >= newest.at_utc - INTERVAL '7' DAYS
        THEN 1
      END
    ) AS failures_7d
  FROM ops.quarantine AS q
  LEFT JOIN newest
    ON newest.connection_id = q.connection_id
  GROUP BY
    q.connection_id,
    q.resource
), kinds AS (
  SELECT
    connection_id,
    resource
  FROM verified
  UNION
  SELECT
    connection_id,
    resource
  FROM unproven
  UNION
  SELECT
    connection_id,
    resource
  FROM missed
), still_open AS (
  SELECT
    connection_id,
    resource,
    COUNT(*) AS open_subjects
  FROM unproven
  GROUP BY
    connection_id,
    resource
)
SELECT
  k.connection_id,
  k.resource,
  COALESCE(v.subjects, 0) AS subjects,
  v.oldest_verified_at,
  v.last_verified_at,
  CAST(FLOOR(
    (
      UNIX_MICROS(newest.at_utc) - UNIX_MICROS(v.oldest_verified_at)
    ) / 1000000 / 60
  ) AS BIGINT) AS minutes_behind,
  COALESCE(v.incomplete_subjects, 0) AS incomplete_subjects,
  COALESCE(missed.missed_rows, 0) AS missed_rows,
  COALESCE(still_open.open_subjects, 0) AS open_subjects,
  COALESCE(failing.failures_7d, 0) AS failures_7d,
  COALESCE(v.incomplete_subjects, 0) + COALESCE(missed.missed_rows, 0) + COALESCE(still_open.open_subjects, 0) = 0 AS is_complete
FROM kinds AS k
LEFT JOIN newest
  ON newest.connection_id = k.connection_id
LEFT JOIN verified AS v
  ON v.connection_id = k.connection_id AND v.resource = k.resource
LEFT JOIN missed
  ON missed.connection_id = k.connection_id AND missed.resource = k.resource
LEFT JOIN failing
  ON failing.connection_id = k.connection_id AND failing.resource = k.resource
LEFT JOIN still_open
  ON still_open.connection_id = k.connection_id AND still_open.resource = k.resource
