-- What the copy can prove: when each part was last verified, how, and whether completely. An equal answer renews it without a new version of anything. What was asked for and never answered is there with no parts or too few. What is offered no more is left out.
-- One row: One connection, product and month; product null = the month's bookings, or the open-dated ones.
-- Made of warehouse/marts/coverage.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH offered AS (
  SELECT
    o.connection_id,
    o.product_id,
    COUNT(*) AS options
  FROM core.options AS o
  JOIN core.products AS p
    ON p.connection_id = o.connection_id AND p.product_id = o.product_id
  WHERE
    NOT o.is_deleted AND NOT p.is_deleted
  GROUP BY
    o.connection_id,
    o.product_id
), subjects AS (
  SELECT
    connection_id,
    resource,
    key,
    product_id,
    option_id,
    verified_at_utc,
    source,
    is_complete,
    missing_capabilities,
    row_count,
    1 AS answers,
    CAST(travel_month || '-01' AS DATE) AS travel_month,
    window_start,
    window_end,
    CAST(NULL AS DATE) AS booking_month,
    CAST(NULL AS DATE) AS booked_start,
    CAST(NULL AS DATE) AS booked_end
  FROM ops.coverage
  WHERE
    resource = 'availability'
  UNION ALL
  SELECT
    connection_id,
    resource,
    key,
    product_id,
    option_id,
    NULL,
    NULL,
    FALSE,
    NULL,
    NULL,
    0,
    CAST(travel_month || '-01' AS DATE),
    NULL,
    NULL,
    NULL,
    NULL,
    NULL
  FROM ops.unanswered
  WHERE
    resource = 'availability'
  UNION ALL
  SELECT
    connection_id,
    'bookings',
    key,
    NULL,
    NULL,
    verified_at_utc,
    verified_by,
    is_complete,
    missing_capabilities,
    row_count,
    answers,
    travel_month,
    window_start,
    window_end,
    booking_month,
    booked_start,
    booked_end
  FROM marts.booking_lists
  UNION ALL
  /* Not by any window: each by the list that showed it, or by its own answer. */
  SELECT
    connection_id,
    'open_dated',
    booking_uuid,
    NULL,
    NULL,
    verified_at_utc,
    verified_by,
    is_covered,
    missing_capabilities,
    1,
    CASE WHEN is_covered THEN 1 ELSE 0 END,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL,
    NULL
  FROM marts.fct_bookings
  WHERE
    travel_date IS NULL
), asked AS (
  SELECT
    s.*,
    ROW_NUMBER() OVER (
      PARTITION BY s.connection_id, s.resource, s.product_id, s.travel_month, s.booking_month
      ORDER BY s.answers DESC, s.verified_at_utc NULLS LAST, s.key NULLS LAST
    ) AS age,
    CASE
      WHEN s.resource = 'open_dated'
      THEN COUNT(*) OVER (PARTITION BY s.connection_id, s.resource)
      ELSE COALESCE(offered.options, 1)
    END AS wanted
  FROM subjects AS s
  LEFT JOIN offered
    ON offered.connection_id = s.connection_id
    AND offered.product_id = s.product_id
    AND s.resource = 'availability'
  LEFT JOIN core.options AS o
    ON o.connection_id = s.connection_id
    AND o.product_id = s.product_id
    AND o.option_id = s.option_id
  LEFT JOIN core.products AS p
    ON p.connection_id = s.connection_id AND p.product_id = s.product_id
  WHERE
    s.resource <> 'availability'
    OR (
      NOT COALESCE(o.is_deleted, FALSE) AND NOT COALESCE(p.is_deleted, FALSE)
    )
)
SELECT
  a.connection_id,
  a.resource,
  a.product_id,
  a.travel_month,
  MIN(a.verified_at_utc) AS verified_at_utc,
  MAX(CASE WHEN a.age = 1 THEN a.source END) AS verified_by,
  MAX(a.verified_at_utc) AS last_verified_at_utc,
  MIN(a.window_start) AS window_start,
  MAX(a.window_end) AS window_end,
  a.booking_month,
  MIN(a.booked_start) AS booked_start,
  MAX(a.booked_end) AS booked_end,
  MIN(CASE WHEN a.is_complete THEN 1 ELSE 0 END) = 1
  AND SUM(a.answers) >= MAX(a.wanted) AS is_complete,
  CAST(SUM(a.answers) AS BIGINT) AS parts,
  MAX(a.wanted) AS parts_wanted,
  COALESCE(ARRAY_JOIN(SORT_ARRAY(COLLECT_SET(NULLIF(a.missing_capabilities, ''))), ','), '') AS missing_capabilities,
  CAST(SUM(a.row_count) AS BIGINT) AS row_count,
  COALESCE(c.supplier_key, a.connection_id) || '|' || a.product_id AS product_key,
  COALESCE(c.is_active, FALSE) AS is_active
FROM asked AS a
LEFT JOIN marts.supplier_connections AS c
  ON c.connection_id = a.connection_id
GROUP BY
  a.connection_id,
  c.supplier_key,
  c.is_active,
  a.resource,
  a.product_id,
  a.travel_month,
  a.booking_month
