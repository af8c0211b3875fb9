-- What the service says although it cannot be so. It is in the copy as it was said where a column can hold it, and stops nothing. Test bookings are left out.
-- One row: One rule and field of one departure, booking or product.
-- Made of warehouse/marts/data_quality.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH departures AS (
  SELECT
    *
  FROM core.availability
  WHERE
    NOT is_deleted
    AND (
      vacancies > capacity
      OR vacancies < 0
      OR capacity < 0
      OR vacancies > 1000000000
      OR capacity > 1000000000
      OR NOT oddities IS NULL
      OR NOT local_date BETWEEN CAST('1970-01-01' AS DATE) AND CAST('2199-12-31' AS DATE)
      OR NOT utc_cutoff_at BETWEEN CAST('1970-01-01 00:00:00+00' AS TIMESTAMP) AND CAST('2199-12-31 23:59:59+00' AS TIMESTAMP)
    )
), bookings AS (
  SELECT
    *
  FROM core.bookings
  WHERE
    NOT is_deleted AND NOT is_test
), counted AS (
  SELECT
    d.connection_id,
    d.product_id,
    d.option_id,
    d.availability_id,
    d.first_seen_at_utc,
    r.rule,
    r.field,
    r.value
  FROM departures AS d
  CROSS JOIN LATERAL STACK(
    5,
    'more_vacancies_than_capacity',
    'vacancies',
    d.vacancies,
    d.vacancies > d.capacity,
    'oversold',
    'vacancies',
    d.vacancies,
    d.vacancies < 0,
    'not_countable',
    'vacancies',
    d.vacancies,
    NOT d.vacancies BETWEEN -1000000000 AND 1000000000,
    'capacity_below_zero',
    'capacity',
    d.capacity,
    d.capacity < 0,
    'not_countable',
    'capacity',
    d.capacity,
    d.capacity > 1000000000
  ) AS r(rule, field, value, is_so)
  WHERE
    r.is_so
), versions AS (
  SELECT
    c.rule,
    c.field,
    h.*,
    CASE
      WHEN c.rule = 'oversold'
      THEN h.vacancies < 0
      WHEN c.rule = 'capacity_below_zero'
      THEN h.capacity < 0
      WHEN c.rule = 'more_vacancies_than_capacity'
      THEN h.vacancies > h.capacity
      WHEN c.field = 'vacancies'
      THEN NOT h.vacancies BETWEEN -1000000000 AND 1000000000
      ELSE h.capacity > 1000000000
    END AS is_so
  FROM counted AS c
  JOIN core.availability_history AS h
    ON h.connection_id = c.connection_id
    AND h.product_id = c.product_id
    AND h.option_id = c.option_id
    AND h.availability_id = c.availability_id
), began AS (
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    rule,
    field,
    COALESCE(
      GREATEST(
        MAX(CASE WHEN NOT COALESCE(is_so, FALSE) THEN valid_to_utc END),
        MAX(
          CASE
            WHEN ',' || changed_fields || ',' LIKE '%,is_deleted,%'
            THEN valid_from_utc
          END
        )
      ),
      MIN(valid_from_utc)
    ) AS since /* When the last version ended that was otherwise, or when it came back. */
  FROM versions
  GROUP BY
    connection_id,
    product_id,
    option_id,
    availability_id,
    rule,
    field
), dated AS (
  SELECT
    d.connection_id,
    d.product_id,
    d.option_id,
    d.availability_id,
    NULL AS booking_uuid,
    d.last_seen_at_utc,
    r.field,
    r.day
  FROM departures AS d
  CROSS JOIN LATERAL STACK(
    2,
    'local_date',
    d.local_date,
    'utc_cutoff_at',
    CAST(FROM_UTC_TIMESTAMP(d.utc_cutoff_at, 'UTC') AS DATE)
  ) AS r(field, day)
  UNION ALL
  SELECT
    b.connection_id,
    b.product_id,
    b.option_id,
    b.availability_id,
    b.booking_uuid,
    b.last_seen_at_utc,
    r.field,
    r.day
  FROM bookings AS b
  CROSS JOIN LATERAL STACK(
    7,
    'local_date',
    b.local_date,
    'utc_created_at',
    CAST(FROM_UTC_TIMESTAMP(b.utc_created_at, 'UTC') AS DATE),
    'utc_updated_at',
    CAST(FROM_UTC_TIMESTAMP(b.utc_updated_at, 'UTC') AS DATE),
    'utc_expires_at',
    CAST(FROM_UTC_TIMESTAMP(b.utc_expires_at, 'UTC') AS DATE),
    'utc_confirmed_at',
    CAST(FROM_UTC_TIMESTAMP(b.utc_confirmed_at, 'UTC') AS DATE),
    'utc_redeemed_at',
    CAST(FROM_UTC_TIMESTAMP(b.utc_redeemed_at, 'UTC') AS DATE),
    'utc_cancelled_at',
    CAST(FROM_UTC_TIMESTAMP(b.utc_cancelled_at, 'UTC') AS DATE)
  ) AS r(field, day)
), noted AS (
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    NULL AS booking_uuid,
    last_seen_at_utc,
    oddities
  FROM departures
  UNION ALL
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    last_seen_at_utc,
    oddities
  FROM bookings
  UNION ALL
  SELECT
    connection_id,
    product_id,
    NULL,
    NULL,
    NULL,
    last_seen_at_utc,
    oddities
  FROM core.products
  WHERE
    NOT is_deleted
), adrift AS (
  SELECT
    b.*,
    gone.deleted_at_utc AS gone_at_utc
  FROM bookings AS b
  JOIN marts.dim_channel AS c
    ON c.connection_id = b.connection_id AND c.is_active
  JOIN ops.coverage AS v
    ON v.connection_id = b.connection_id
    AND v.resource = 'availability'
    AND v.product_id = b.product_id
    AND v.option_id = b.option_id
    AND v.is_complete
    AND b.local_date BETWEEN v.window_start AND v.window_end
    AND /* Before that the departure may have been new. */ v.verified_at_utc >= b.last_seen_at_utc
  LEFT JOIN core.availability AS gone
    ON gone.connection_id = b.connection_id
    AND gone.product_id = b.product_id
    AND gone.option_id = b.option_id
    AND gone.availability_id = b.availability_id
  WHERE
    b.status IN ('CONFIRMED', 'REDEEMED', 'NOSHOW')
    AND b.utc_start_at > c.last_verified_at_utc
    AND NOT b.availability_id IS NULL
    AND NOT COALESCE(b.is_freesale, FALSE)
    AND NOT EXISTS(
      SELECT
        1
      FROM core.availability AS a
      JOIN marts.supplier_connections AS s
        ON s.connection_id = a.connection_id
      WHERE
        s.supplier_key = c.supplier_key
        AND a.product_id = b.product_id
        AND a.option_id = b.option_id
        AND a.availability_id = b.availability_id
        AND NOT a.is_deleted
    )
), zoned AS (
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    NULL AS booking_uuid,
    last_seen_at_utc,
    local_date,
    local_start_at,
    utc_start_at,
    time_zone
  FROM core.availability
  WHERE
    NOT is_deleted
  UNION ALL
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    last_seen_at_utc,
    local_date,
    local_start_at,
    utc_start_at,
    time_zone
  FROM bookings
), found AS (
  SELECT
    c.connection_id,
    c.product_id,
    c.option_id,
    c.availability_id,
    CAST(NULL AS STRING) AS booking_uuid,
    c.rule,
    c.field,
    CAST(c.value AS STRING) AS value,
    COALESCE(s.since, c.first_seen_at_utc) AS since /* What has no versions has never changed. */
  FROM counted AS c
  LEFT JOIN began AS s
    ON s.connection_id = c.connection_id
    AND s.product_id = c.product_id
    AND s.option_id = c.option_id
    AND s.availability_id = c.availability_id
    AND s.rule = c.rule
    AND s.field = c.field
  UNION ALL
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    'date_out_of_range',
    field,
    CAST(day AS STRING),
    last_seen_at_utc
  FROM dated
  WHERE
    NOT day BETWEEN CAST('1970-01-01' AS DATE) AND CAST('2199-12-31' AS DATE)
  UNION ALL
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    'no_ticket',
    'unit_count',
    '0',
    last_seen_at_utc
  FROM bookings
  WHERE
    unit_count = 0
  UNION ALL
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    'unknown_status',
    'status',
    status,
    last_seen_at_utc
  FROM bookings
  WHERE
    NOT status IN (
      'ON_HOLD',
      'PENDING',
      'CONFIRMED',
      'REDEEMED',
      'NOSHOW',
      'CANCELLED',
      'EXPIRED',
      'REJECTED'
    )
  UNION ALL
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    'other_time_zone',
    'local_start_at',
    REPLACE(CAST(local_start_at AS STRING), 'T', ' '),
    last_seen_at_utc /* Sail writes a T */
  FROM zoned
  WHERE
    local_date BETWEEN CAST('1970-01-01' AS DATE) AND CAST('2199-12-31' AS DATE)
    AND DATE_TRUNC('MINUTE', FROM_UTC_TIMESTAMP(utc_start_at, time_zone)) <> DATE_TRUNC('MINUTE', local_start_at)
  UNION ALL
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    'no_departure',
    'availability_id',
    availability_id,
    GREATEST(last_seen_at_utc, gone_at_utc)
  FROM adrift
  UNION ALL
  SELECT
    n.connection_id,
    n.product_id,
    n.option_id,
    n.availability_id,
    n.booking_uuid,
    SPLIT_PART(o.note, ':', 1),
    SPLIT_PART(o.note, ':', 2),
    NULL,
    n.last_seen_at_utc
  FROM noted AS n
  CROSS JOIN LATERAL EXPLODE(SPLIT(n.oddities, ',')) AS o(note)
  WHERE
    NOT n.oddities IS NULL
)
SELECT
  f.connection_id,
  f.product_id,
  COALESCE(p.title, p.internal_name, f.product_id) AS product_name,
  f.option_id,
  f.availability_id,
  f.booking_uuid,
  f.rule,
  f.field,
  f.value,
  f.since
FROM found AS f
LEFT JOIN core.products AS p
  ON p.connection_id = f.connection_id AND p.product_id = f.product_id
