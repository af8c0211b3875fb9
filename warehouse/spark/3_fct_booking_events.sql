-- What happened to bookings since this copy began, in the order in which it learnt of it. A booking as it was at an instant: event_at_utc <= instant and (valid_to_utc is null or valid_to_utc > instant) and not is_gone. Test bookings are left out.
-- One row: One version of one booking, and one row with is_gone where it was proven to be gone.
-- Made of warehouse/marts/fct_booking_events.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH versions AS (
  SELECT
    *,
    LAG(status) OVER (PARTITION BY connection_id, booking_uuid ORDER BY version_no NULLS LAST) AS status_before,
    LEAD(changed_fields) OVER (PARTITION BY connection_id, booking_uuid ORDER BY version_no NULLS LAST) AS changed_after
  FROM core.booking_history
), events AS (
  SELECT
    connection_id,
    booking_uuid,
    version_no,
    valid_from_utc AS event_at_utc,
    valid_to_utc,
    is_current,
    FALSE AS is_gone,
    status_before AS previous_status,
    status,
    changed_fields,
    source,
    local_date,
    product_id,
    option_id,
    currency,
    retail_amount,
    net_amount,
    pax_count
  FROM versions
  UNION ALL
  SELECT
    connection_id,
    booking_uuid,
    version_no,
    valid_to_utc,
    NULL,
    FALSE,
    TRUE,
    status,
    NULL,
    'is_deleted',
    '',
    local_date,
    product_id,
    option_id,
    currency,
    retail_amount,
    net_amount,
    pax_count
  FROM versions
  /* Followed by nothing, or by its return. */
  WHERE
    NOT valid_to_utc IS NULL
    AND (
      changed_after IS NULL OR ',' || changed_after || ',' LIKE '%,is_deleted,%'
    )
)
SELECT
  e.connection_id || '|' || e.booking_uuid AS booking_key,
  COALESCE(c.supplier_key, e.connection_id) || '|' || e.product_id AS product_key,
  COALESCE(c.supplier_key, e.connection_id) || '|' || e.product_id || '|' || e.option_id AS option_key,
  CASE
    WHEN e.product_id = b.product_id
    AND e.option_id = b.option_id
    AND e.local_date = b.local_date
    THEN COALESCE(c.supplier_key, e.connection_id) || '|' || e.product_id || '|' || e.option_id || '|' || b.availability_id
  END AS departure_key,
  e.connection_id,
  COALESCE(c.channel_name, e.connection_id) AS channel_name,
  e.booking_uuid,
  b.booking_id,
  b.supplier_reference,
  b.reseller_reference,
  e.version_no,
  e.event_at_utc,
  e.valid_to_utc,
  e.is_current,
  e.is_gone,
  e.previous_status,
  e.status,
  COALESCE(e.status IN ('CONFIRMED', 'REDEEMED', 'NOSHOW'), FALSE) AS is_sold,
  e.changed_fields,
  e.source,
  CASE
    WHEN b.utc_created_at BETWEEN CAST('1970-01-01 00:00:00+00' AS TIMESTAMP) AND CAST('2199-12-31 23:59:59+00' AS TIMESTAMP)
    THEN CAST(FROM_UTC_TIMESTAMP(b.utc_created_at, COALESCE(c.business_time_zone, 'UTC')) AS DATE)
  END AS booking_date,
  e.local_date AS travel_date,
  e.local_date - (
    CAST(EXTRACT(DAY FROM e.local_date) AS INT) - 1
  ) AS travel_month,
  e.product_id,
  COALESCE(p.product_name, e.product_id) AS product_name,
  e.option_id,
  COALESCE(o.title, o.internal_name, e.option_id) AS option_name,
  e.currency,
  e.retail_amount,
  e.net_amount,
  e.pax_count
FROM events AS e
JOIN core.bookings AS b
  ON b.connection_id = e.connection_id AND b.booking_uuid = e.booking_uuid
LEFT JOIN marts.supplier_connections AS c
  ON c.connection_id = e.connection_id
LEFT JOIN marts.dim_product AS p
  ON p.supplier_key = COALESCE(c.supplier_key, e.connection_id)
  AND p.product_id = e.product_id
LEFT JOIN core.options AS o
  ON o.connection_id = e.connection_id
  AND o.product_id = e.product_id
  AND o.option_id = e.option_id
WHERE
  NOT b.is_test
