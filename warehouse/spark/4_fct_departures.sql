-- Capacity and what is left of it, once for all connections of a supplier. `taken` counts everyone's sales, `our_guests` what our tokens can see; unknown capacity is null, never 0. Past departures are as they were last seen.
-- One row: One departure, or one open day, of one option.
-- Made of warehouse/marts/fct_departures.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH counted AS (
  /* In two parts, so that who has one connection for each supplier pays nothing for the second. */
  SELECT
    a.*,
    a.capacity AS least_seen
  FROM core.availability AS a
  /* `not in`, because PostgreSQL expects half of the rows then; of an outer join or `not exists` it expects hardly any, and loops. */
  WHERE
    NOT a.connection_id IN (
      SELECT
        connection_id
      FROM marts.supplier_connections
      WHERE
        connections > 1
    )
  UNION ALL
  SELECT
    a.*,
    s.least_capacity
  FROM marts.shared_departures AS s
  JOIN core.availability AS a
    ON a.connection_id = s.connection_id
    AND a.product_id = s.product_id
    AND a.option_id = s.option_id
    AND a.availability_id = s.availability_id
), booked AS (
  /* One that several connections see is one. */
  SELECT
    supplier_key,
    product_id,
    option_id,
    availability_id,
    booking_uuid,
    MAX(pax_count) AS pax_count,
    MAX(currency) AS currency,
    MAX(retail_amount) AS retail_amount
  FROM marts.fct_bookings
  WHERE
    is_sold AND NOT availability_id IS NULL
  GROUP BY
    supplier_key,
    product_id,
    option_id,
    availability_id,
    booking_uuid
), ours AS (
  SELECT
    supplier_key,
    product_id,
    option_id,
    availability_id,
    COUNT(*) AS bookings,
    CASE WHEN COUNT(*) = COUNT(pax_count) THEN CAST(SUM(pax_count) AS BIGINT) END AS guests,
    CASE
      WHEN MIN(currency) = MAX(currency) AND COUNT(*) = COUNT(currency)
      THEN MIN(currency)
    END AS currency,
    CASE
      WHEN MIN(currency) = MAX(currency) AND COUNT(*) = COUNT(currency)
      THEN SUM(retail_amount)
    END AS retail_amount
  FROM booked
  GROUP BY
    supplier_key,
    product_id,
    option_id,
    availability_id
), departures AS (
  SELECT
    a.*,
    COALESCE(c.supplier_key, a.connection_id) AS supplier_key,
    c.is_active,
    c.last_verified_at_utc,
    COALESCE(a.least_seen, a.capacity) AS least_capacity,
    a.status = 'SOLD_OUT' AS is_sold_out,
    a.status = 'CLOSED' AS is_closed,
    CASE
      WHEN a.status IS DISTINCT FROM 'CLOSED'
      AND a.capacity BETWEEN 1 AND 1000000000
      AND a.vacancies BETWEEN -1000000000 AND a.capacity
      THEN a.capacity - a.vacancies
    END AS taken
  FROM counted AS a
  LEFT JOIN marts.dim_channel AS c
    ON c.connection_id = a.connection_id
  WHERE
    NOT a.is_deleted
)
SELECT
  a.supplier_key || '|' || a.product_id || '|' || a.option_id || '|' || a.availability_id AS departure_key,
  a.supplier_key || '|' || a.product_id AS product_key,
  a.supplier_key || '|' || a.product_id || '|' || a.option_id AS option_key,
  a.connection_id,
  a.product_id,
  COALESCE(p.product_name, a.product_id) AS product_name,
  a.option_id,
  COALESCE(o.title, o.internal_name, a.option_id) AS option_name,
  a.availability_id,
  a.local_start_at,
  a.local_end_at,
  COALESCE(a.is_all_day, p.availability_type = 'OPENING_HOURS', FALSE) AS is_all_day,
  a.local_date AS travel_date,
  a.local_date - (
    CAST(EXTRACT(DAY FROM a.local_date) AS INT) - 1
  ) AS travel_month,
  a.utc_start_at,
  CASE
    WHEN a.utc_cutoff_at BETWEEN CAST('1970-01-01 00:00:00+00' AS TIMESTAMP) AND CAST('2199-12-31 23:59:59+00' AS TIMESTAMP)
    THEN a.utc_cutoff_at
  END AS utc_cutoff_at, /* One at the edge of the calendar is on no other clock. */
  a.time_zone,
  a.status,
  a.is_available,
  a.capacity,
  a.least_capacity,
  a.vacancies,
  a.taken,
  CASE WHEN a.capacity > 0 THEN CAST(a.taken AS DOUBLE) / a.capacity END AS fill_rate,
  COALESCE(ours.bookings, 0) AS our_bookings,
  CASE WHEN ours.bookings IS NULL THEN 0 ELSE ours.guests END AS our_guests,
  ours.retail_amount AS our_sold_amount,
  ours.currency AS our_currency,
  COALESCE(a.is_sold_out, FALSE) AS is_sold_out,
  COALESCE(a.is_closed, FALSE) AS is_closed,
  v.verified_at_utc,
  COALESCE(v.is_complete AND a.local_date BETWEEN v.window_start AND v.window_end, FALSE) AS is_covered,
  COALESCE(
    a.is_active
    OR a.local_date < CAST(FROM_UTC_TIMESTAMP(a.last_verified_at_utc, COALESCE(p.time_zone, 'UTC')) AS DATE),
    FALSE
  ) AS is_followed
FROM departures AS a
LEFT JOIN marts.dim_product AS p
  ON p.supplier_key = a.supplier_key AND p.product_id = a.product_id
LEFT JOIN core.options AS o
  ON o.connection_id = a.connection_id
  AND o.product_id = a.product_id
  AND o.option_id = a.option_id
LEFT JOIN ops.coverage AS v
  ON v.connection_id = a.connection_id
  AND v.resource = 'availability'
  AND v.product_id = a.product_id
  AND v.option_id = a.option_id
  AND v.travel_month = SUBSTRING(CAST(a.local_date AS STRING), 1, 7)
LEFT JOIN ours
  ON ours.supplier_key = a.supplier_key
  AND ours.product_id = a.product_id
  AND ours.option_id = a.option_id
  AND ours.availability_id = a.availability_id
