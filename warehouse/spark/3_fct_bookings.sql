-- Bookings with all names in one table that needs no join. Products, options and departures are the supplier's, whichever of its connections sold them. Test bookings and proven deletions are left out.
-- One row: One booking, as one connection sees it.
-- Made of warehouse/marts/fct_bookings.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH seen_sold AS (
  /* Services that leave utcConfirmedAt out: this copy saw the booking sold before it was cancelled. */
  SELECT DISTINCT
    b.connection_id,
    b.booking_uuid
  FROM core.bookings AS b
  JOIN core.booking_history AS h
    ON h.connection_id = b.connection_id AND h.booking_uuid = b.booking_uuid
  WHERE
    b.status = 'CANCELLED'
    AND b.utc_confirmed_at IS NULL
    AND h.status IN ('CONFIRMED', 'REDEEMED', 'NOSHOW')
), landed AS (
  SELECT
    b.*,
    COALESCE(c.supplier_key, b.connection_id) AS supplier_key,
    COALESCE(c.channel_name, b.connection_id) AS channel_name,
    c.supplier_name,
    c.business_time_zone,
    CASE
      WHEN b.utc_created_at BETWEEN CAST('1970-01-01 00:00:00+00' AS TIMESTAMP) AND CAST('2199-12-31 23:59:59+00' AS TIMESTAMP)
      THEN b.utc_created_at
    END AS made_at, /* Days at the edge of the calendar are on no other clock, and fill calendars with a million days. */
    CASE
      WHEN b.utc_confirmed_at BETWEEN CAST('1970-01-01 00:00:00+00' AS TIMESTAMP) AND CAST('2199-12-31 23:59:59+00' AS TIMESTAMP)
      THEN b.utc_confirmed_at
    END AS confirmed_at,
    CASE
      WHEN b.utc_cancelled_at BETWEEN CAST('1970-01-01 00:00:00+00' AS TIMESTAMP) AND CAST('2199-12-31 23:59:59+00' AS TIMESTAMP)
      THEN b.utc_cancelled_at
    END AS cancelled_at,
    COALESCE(b.status IN ('CONFIRMED', 'REDEEMED', 'NOSHOW'), FALSE)
    OR (
      COALESCE(b.status = 'CANCELLED', FALSE)
      AND (
        NOT b.utc_confirmed_at IS NULL OR NOT seen.booking_uuid IS NULL
      )
    ) AS was_sold
  FROM core.bookings AS b
  LEFT JOIN marts.supplier_connections AS c
    ON c.connection_id = b.connection_id
  LEFT JOIN seen_sold AS seen
    ON seen.connection_id = b.connection_id AND seen.booking_uuid = b.booking_uuid
  WHERE
    NOT b.is_deleted AND NOT b.is_test
), looked_up AS (
  /* Services that leave the unit out of a booking's tickets: the product says how many guests a unit admits. */
  SELECT
    i.connection_id,
    i.booking_uuid,
    CASE
      WHEN COUNT(*) = COUNT(COALESCE(i.pax_count, u.pax_count))
      THEN CAST(SUM(COALESCE(i.pax_count, u.pax_count)) AS BIGINT)
    END AS pax_count
  FROM core.bookings AS b
  JOIN core.booking_unit_items AS i
    ON i.connection_id = b.connection_id AND i.booking_uuid = b.booking_uuid
  LEFT JOIN core.units AS u
    ON u.connection_id = b.connection_id
    AND u.product_id = b.product_id
    AND u.option_id = b.option_id
    AND u.unit_id = i.unit_id
  WHERE
    b.pax_count IS NULL AND NOT i.is_deleted
  GROUP BY
    i.connection_id,
    i.booking_uuid
), lists AS (
  SELECT
    connection_id,
    verified_at_utc,
    verified_by,
    missing_capabilities,
    COALESCE(travel_month, booking_month) AS month,
    COALESCE(window_start, booked_start) AS first_day,
    COALESCE(window_end, booked_end) AS last_day
  FROM marts.booking_lists
  WHERE
    is_complete
), own AS (
  /* Its own answer, or of one without a day of travel the list that showed it, whichever is newer. */
  SELECT
    connection_id,
    key,
    verified_at_utc,
    source,
    missing_capabilities
  FROM (
    SELECT
      *,
      ROW_NUMBER() OVER (
        PARTITION BY connection_id, key
        ORDER BY verified_at_utc DESC, resource NULLS LAST
      ) AS place
    FROM ops.coverage
    WHERE
      resource IN ('booking', 'open_dated') AND row_count > 0 AND is_complete
  ) AS answers
  WHERE
    place = 1
), by_booking AS (
  /* Where lists are by day of booking, none of them speaks for a month of travel. */
  SELECT DISTINCT
    connection_id
  FROM marts.booking_lists
  WHERE
    NOT booking_month IS NULL
)
SELECT
  b.connection_id || '|' || b.booking_uuid AS booking_key,
  b.supplier_key || '|' || b.product_id AS product_key,
  b.supplier_key || '|' || b.product_id || '|' || b.option_id AS option_key,
  b.supplier_key || '|' || b.product_id || '|' || b.option_id || '|' || b.availability_id AS departure_key,
  b.connection_id,
  b.booking_uuid,
  b.booking_id,
  b.supplier_reference,
  b.reseller_reference,
  b.channel_name,
  b.supplier_name,
  b.product_id,
  COALESCE(p.product_name, b.product_id) AS product_name,
  p.product_code,
  b.option_id,
  COALESCE(o.title, o.internal_name, b.option_id) AS option_name,
  b.availability_id,
  b.status,
  COALESCE(b.status IN ('CONFIRMED', 'REDEEMED', 'NOSHOW'), FALSE) AS is_sold,
  b.was_sold,
  COALESCE(b.status = 'CANCELLED', FALSE) AS is_cancelled,
  COALESCE(b.status = 'REDEEMED', FALSE)
  OR (
    NOT b.utc_redeemed_at IS NULL AND b.status IS DISTINCT FROM 'NOSHOW'
  ) AS is_redeemed,
  b.is_freesale,
  CAST(FROM_UTC_TIMESTAMP(b.made_at, COALESCE(b.business_time_zone, 'UTC')) AS DATE) AS booking_date,
  CASE
    WHEN b.was_sold
    THEN CAST(FROM_UTC_TIMESTAMP(GREATEST(b.made_at, b.confirmed_at), COALESCE(b.business_time_zone, 'UTC')) AS DATE)
  END AS sold_date,
  CAST(FROM_UTC_TIMESTAMP(b.cancelled_at, COALESCE(b.business_time_zone, 'UTC')) AS DATE) AS cancelled_date,
  b.local_date AS travel_date,
  b.local_date - (
    CAST(EXTRACT(DAY FROM b.local_date) AS INT) - 1
  ) AS travel_month,
  DATEDIFF(
    b.local_date,
    CAST(FROM_UTC_TIMESTAMP(b.made_at, COALESCE(b.time_zone, p.time_zone, b.business_time_zone, 'UTC')) AS DATE)
  ) AS lead_days,
  DATEDIFF(
    b.local_date,
    CAST(FROM_UTC_TIMESTAMP(b.cancelled_at, COALESCE(b.time_zone, p.time_zone, b.business_time_zone, 'UTC')) AS DATE)
  ) AS notice_days,
  b.local_start_at,
  CASE p.availability_type
    WHEN 'OPENING_HOURS'
    THEN TRUE
    WHEN 'START_TIME'
    THEN FALSE
  END AS is_all_day,
  b.utc_start_at,
  COALESCE(b.time_zone, p.time_zone) AS time_zone,
  b.utc_created_at,
  b.utc_updated_at,
  b.utc_expires_at,
  b.utc_confirmed_at,
  b.utc_cancelled_at,
  b.utc_redeemed_at,
  b.cancellation_refund,
  b.currency,
  b.currency_precision,
  b.original_amount,
  b.retail_amount,
  b.net_amount,
  b.tax_amount,
  b.retail_amount - b.net_amount AS margin_amount,
  b.unit_count,
  COALESCE(b.pax_count, looked_up.pax_count) AS pax_count,
  GREATEST(own.verified_at_utc, listed.verified_at_utc, b.verified_at_utc) AS verified_at_utc,
  CASE
    WHEN b.verified_at_utc > GREATEST(own.verified_at_utc, listed.verified_at_utc)
    THEN NULL
    WHEN own.verified_at_utc >= COALESCE(listed.verified_at_utc, own.verified_at_utc)
    THEN own.source
    ELSE listed.verified_by
  END AS verified_by,
  COALESCE(b.verified_at_utc <= GREATEST(own.verified_at_utc, listed.verified_at_utc), FALSE) AS is_covered,
  CASE
    WHEN b.verified_at_utc > GREATEST(own.verified_at_utc, listed.verified_at_utc)
    THEN NULL
    WHEN own.verified_at_utc >= COALESCE(listed.verified_at_utc, own.verified_at_utc)
    THEN own.missing_capabilities
    ELSE listed.missing_capabilities
  END AS missing_capabilities,
  b.supplier_key
FROM landed AS b
LEFT JOIN marts.dim_product AS p
  ON p.supplier_key = b.supplier_key AND p.product_id = b.product_id
LEFT JOIN core.options AS o
  ON o.connection_id = b.connection_id
  AND o.product_id = b.product_id
  AND o.option_id = b.option_id
LEFT JOIN looked_up
  ON looked_up.connection_id = b.connection_id
  AND looked_up.booking_uuid = b.booking_uuid
LEFT JOIN own
  ON own.connection_id = b.connection_id AND own.key = '["' || b.booking_uuid || '"]'
LEFT JOIN ops.absences AS missed
  ON missed.connection_id = b.connection_id
  AND missed.table_name = 'core.bookings'
  AND missed.key = '["' || b.booking_uuid || '"]'
LEFT JOIN by_booking
  ON by_booking.connection_id = b.connection_id
LEFT JOIN lists AS listed
  ON listed.connection_id = b.connection_id
  AND listed.month = CAST(DATE_TRUNC(
    'MONTH',
    CAST(CASE
      WHEN by_booking.connection_id IS NULL
      THEN b.local_date
      ELSE CAST(FROM_UTC_TIMESTAMP(b.utc_created_at, 'UTC') AS DATE)
    END AS TIMESTAMP_NTZ)
  ) AS DATE)
  AND CASE
    WHEN by_booking.connection_id IS NULL
    THEN b.local_date
    ELSE CAST(FROM_UTC_TIMESTAMP(b.utc_created_at, 'UTC') AS DATE)
  END BETWEEN listed.first_day AND listed.last_day
  AND missed.key IS NULL
  AND /* What was cancelled and answered for itself is not missed for 30 days: a list since then need not have shown it. */ (
    own.key IS NULL
    OR b.verified_at_utc > own.verified_at_utc
    OR NOT COALESCE(b.status, '') IN ('CANCELLED', 'EXPIRED', 'REJECTED')
  )
