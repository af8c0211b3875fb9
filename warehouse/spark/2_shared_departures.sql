-- Through which of a supplier's connections each departure is counted. A connection of the pipeline goes before one that left, a departure that is offered before one that is gone, the larger capacity before the smaller, then what was verified last. Empty where each supplier has one connection.
-- One row: One departure of a supplier with several connections.
-- Made of warehouse/marts/shared_departures.sql by scripts/spark.py, for a session whose time zone is UTC.
WITH seen AS (
  SELECT
    c.supplier_key,
    a.connection_id,
    a.product_id,
    a.option_id,
    a.availability_id,
    MIN(CASE WHEN c.is_active AND NOT a.is_deleted THEN a.capacity END) OVER (PARTITION BY c.supplier_key, a.product_id, a.option_id, a.availability_id) AS least_capacity,
    ROW_NUMBER() OVER (
      PARTITION BY c.supplier_key, a.product_id, a.option_id, a.availability_id
      ORDER BY c.is_active DESC, a.is_deleted NULLS LAST, a.capacity DESC, v.verified_at_utc DESC, a.connection_id NULLS LAST
    ) AS place
  FROM core.availability AS a
  JOIN marts.supplier_connections AS c
    ON c.connection_id = a.connection_id AND c.connections > 1
  LEFT JOIN ops.coverage AS v
    ON v.connection_id = a.connection_id
    AND v.resource = 'availability'
    AND v.product_id = a.product_id
    AND v.option_id = a.option_id
    AND v.travel_month = SUBSTRING(CAST(a.local_date AS STRING), 1, 7)
)
SELECT
  supplier_key,
  product_id,
  option_id,
  availability_id,
  connection_id,
  least_capacity
FROM seen
WHERE
  place = 1
