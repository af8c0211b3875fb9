-- Which connections (one for each token) sell for the same supplier: the service's address and the supplier's id are the same. Their products and departures are the same ones, and count once in every mart. A connection whose supplier is not known yet stands alone.
-- One row: One connection of the pipeline.
-- Made of warehouse/marts/supplier_connections.sql by scripts/spark.py, for a session whose time zone is UTC.
SELECT
  c.connection_id,
  CASE
    WHEN c.supplier_id IS NULL
    THEN c.connection_id
    ELSE MIN(c.connection_id) OVER (PARTITION BY c.base_url, c.supplier_id)
  END AS supplier_key,
  CASE
    WHEN c.supplier_id IS NULL
    THEN 1
    ELSE COUNT(*) OVER (PARTITION BY c.base_url, c.supplier_id)
  END AS connections,
  COALESCE(c.channel, c.connection_id) AS channel_name,
  c.role,
  c.supplier_id,
  s.name AS supplier_name,
  c.business_time_zone,
  c.is_active
FROM core.connections AS c
LEFT JOIN core.suppliers AS s
  ON s.connection_id = c.connection_id AND s.supplier_id = c.supplier_id
