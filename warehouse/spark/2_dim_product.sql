-- Products with every name they go by, and whether they are still sold. Where several connections of a supplier sell one, its names are those of the first that offers it.
-- One row: One product of one supplier, however many connections sell it.
-- Made of warehouse/marts/dim_product.sql by scripts/spark.py, for a session whose time zone is UTC.
SELECT
  product_key,
  connection_id,
  product_id,
  product_name,
  title,
  internal_name,
  product_code,
  supplier_id,
  supplier_name,
  time_zone,
  availability_type,
  default_currency,
  pricing_per,
  is_retired,
  retired_at_utc,
  supplier_key,
  sold_through
FROM (
  WITH seen AS (
    SELECT
      p.*,
      COALESCE(c.supplier_key, p.connection_id) AS supplier_key,
      c.supplier_id,
      c.supplier_name,
      COALESCE(c.is_active, FALSE) AS is_active
    FROM core.products AS p
    LEFT JOIN marts.supplier_connections AS c
      ON c.connection_id = p.connection_id
  ), offered AS (
    SELECT
      supplier_key,
      product_id,
      ARRAY_JOIN(SORT_ARRAY(COLLECT_LIST(connection_id)), ',') AS sold_through
    FROM seen
    WHERE
      is_active AND NOT is_deleted
    GROUP BY
      supplier_key,
      product_id
  )
  SELECT
    p.supplier_key || '|' || p.product_id AS product_key,
    p.connection_id AS connection_id,
    p.product_id AS product_id,
    COALESCE(p.title, p.internal_name, p.product_id) AS product_name,
    p.title AS title,
    p.internal_name AS internal_name,
    p.reference AS product_code,
    p.supplier_id AS supplier_id,
    p.supplier_name AS supplier_name,
    p.time_zone AS time_zone,
    p.availability_type AS availability_type,
    p.default_currency AS default_currency,
    p.pricing_per AS pricing_per,
    p.is_deleted AS is_retired,
    p.deleted_at_utc AS retired_at_utc,
    p.supplier_key AS supplier_key,
    COALESCE(o.sold_through, '') AS sold_through,
    ROW_NUMBER() OVER (
      PARTITION BY p.supplier_key, p.product_id
      ORDER BY p.supplier_key NULLS LAST, p.product_id NULLS LAST, p.is_active DESC, p.is_deleted NULLS LAST, p.deleted_at_utc DESC, p.connection_id NULLS LAST
    ) AS _row_number
  FROM seen AS p
  LEFT JOIN offered AS o
    ON o.supplier_key = p.supplier_key AND o.product_id = p.product_id
) AS _t
WHERE
  _row_number = 1
