-- When departures sold out, how many days ahead, and whether they opened again, as this copy saw it: a change counts from the answer that showed it first. What happened before the copy began, or while nobody asked, is not known. Once for all connections of a supplier.
-- One row: One departure, or one open day, that was ever seen sold out before it started.
-- Made of warehouse/marts/fct_sellouts.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH said AS (
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    version_no,
    valid_from_utc AS seen_at_utc
  FROM core.availability_history
  WHERE
    status = 'SOLD_OUT'
  UNION ALL
  /* One that never changed has no version. */
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    NULL,
    first_seen_at_utc
  FROM core.availability
  WHERE
    status = 'SOLD_OUT'
), firsts AS (
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    MIN(version_no) AS first_version,
    COALESCE(MIN(CASE WHEN NOT version_no IS NULL THEN seen_at_utc END), MIN(seen_at_utc)) AS sold_out_at_utc
  FROM said
  GROUP BY
    connection_id,
    product_id,
    option_id,
    availability_id
), ever AS (
  SELECT
    a.connection_id,
    a.product_id,
    a.option_id,
    a.availability_id,
    a.local_start_at,
    a.local_date,
    a.time_zone,
    a.status,
    a.is_deleted,
    f.first_version,
    f.sold_out_at_utc,
    CASE WHEN NOT COALESCE(a.is_all_day, FALSE) THEN a.utc_start_at END AS closes_at_utc
  FROM firsts AS f
  JOIN core.availability AS a
    ON a.connection_id = f.connection_id
    AND a.product_id = f.product_id
    AND a.option_id = f.option_id
    AND a.availability_id = f.availability_id
  /* What services say of a departure that has left, or of a day that is over, is no sell-out. */
  WHERE
    CASE
      WHEN a.utc_start_at IS NULL OR COALESCE(a.is_all_day, FALSE)
      THEN CAST(FROM_UTC_TIMESTAMP(f.sold_out_at_utc, COALESCE(a.time_zone, 'UTC')) AS DATE) <= a.local_date
      ELSE f.sold_out_at_utc < a.utc_start_at
    END
), versions AS (
  SELECT
    h.*,
    e.first_version,
    LAG(h.status) OVER (
      PARTITION BY h.connection_id, h.product_id, h.option_id, h.availability_id
      ORDER BY h.version_no NULLS LAST
    ) AS previous_status
  FROM ever AS e
  JOIN core.availability_history AS h
    ON h.connection_id = e.connection_id
    AND h.product_id = e.product_id
    AND h.option_id = e.option_id
    AND h.availability_id = e.availability_id
  WHERE
    e.closes_at_utc IS NULL OR h.valid_from_utc < e.closes_at_utc
), lives AS (
  SELECT
    connection_id,
    product_id,
    option_id,
    availability_id,
    COUNT(
      CASE
        WHEN version_no < first_version AND status IN ('AVAILABLE', 'LIMITED', 'FREESALE')
        THEN 1
      END
    ) > 0 AS was_on_sale,
    COUNT(
      CASE
        WHEN status = 'SOLD_OUT' AND previous_status IS DISTINCT FROM 'SOLD_OUT'
        THEN 1
      END
    ) AS times_sold_out,
    MIN(
      CASE
        WHEN version_no > first_version AND status IN ('AVAILABLE', 'LIMITED', 'FREESALE')
        THEN valid_from_utc
      END
    ) AS reopened_at_utc
  FROM versions
  GROUP BY
    connection_id,
    product_id,
    option_id,
    availability_id
), counted AS (
  SELECT
    e.*,
    c.supplier_key
  FROM ever AS e
  JOIN marts.supplier_connections AS c
    ON c.connection_id = e.connection_id
  WHERE
    c.connections = 1
  UNION ALL
  SELECT
    e.*,
    s.supplier_key
  FROM marts.shared_departures AS s
  JOIN ever AS e
    ON e.connection_id = s.connection_id
    AND e.product_id = s.product_id
    AND e.option_id = s.option_id
    AND e.availability_id = s.availability_id
)
SELECT
  e.supplier_key || '|' || e.product_id || '|' || e.option_id || '|' || e.availability_id AS departure_key,
  e.supplier_key || '|' || e.product_id AS product_key,
  e.supplier_key || '|' || e.product_id || '|' || e.option_id AS option_key,
  e.connection_id,
  e.product_id,
  COALESCE(p.product_name, e.product_id) AS product_name,
  e.option_id,
  COALESCE(o.title, o.internal_name, e.option_id) AS option_name,
  e.availability_id,
  e.local_start_at,
  e.local_date AS travel_date,
  e.local_date - (
    CAST(EXTRACT(DAY FROM e.local_date) AS INT) - 1
  ) AS travel_month,
  e.sold_out_at_utc,
  DATEDIFF(
    e.local_date,
    CAST(FROM_UTC_TIMESTAMP(e.sold_out_at_utc, COALESCE(e.time_zone, p.time_zone, 'UTC')) AS DATE)
  ) AS days_ahead,
  COALESCE(l.was_on_sale, FALSE) AS was_on_sale,
  COALESCE(l.times_sold_out, 1) AS times_sold_out,
  l.reopened_at_utc,
  e.status,
  COALESCE(e.status = 'SOLD_OUT', FALSE) AS is_sold_out,
  COALESCE(e.is_deleted, FALSE) AS is_gone
FROM counted AS e
LEFT JOIN lives AS l
  ON l.connection_id = e.connection_id
  AND l.product_id = e.product_id
  AND l.option_id = e.option_id
  AND l.availability_id = e.availability_id
LEFT JOIN marts.dim_product AS p
  ON p.supplier_key = e.supplier_key AND p.product_id = e.product_id
LEFT JOIN core.options AS o
  ON o.connection_id = e.connection_id
  AND o.product_id = e.product_id
  AND o.option_id = e.option_id
