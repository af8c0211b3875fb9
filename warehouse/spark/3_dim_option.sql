-- The variants of products with their names. Where several connections of a supplier sell one, its names are those of the first that offers it.
-- One row: One option of one product.
-- Made of warehouse/marts/dim_option.sql by scripts/spark.py, for a session whose time zone is UTC.
SELECT
  option_key,
  product_key,
  connection_id,
  product_id,
  product_name,
  option_id,
  option_name,
  option_code,
  is_default,
  is_retired
FROM (
  WITH seen AS (
    SELECT
      o.*,
      COALESCE(c.supplier_key, o.connection_id) AS supplier_key,
      COALESCE(c.is_active, FALSE) AS is_active
    FROM core.options AS o
    LEFT JOIN marts.supplier_connections AS c
      ON c.connection_id = o.connection_id
  )
  SELECT
    o.supplier_key || '|' || o.product_id || '|' || o.option_id AS option_key,
    o.supplier_key || '|' || o.product_id AS product_key,
    o.connection_id AS connection_id,
    o.product_id AS product_id,
    COALESCE(p.product_name, o.product_id) AS product_name,
    o.option_id AS option_id,
    COALESCE(o.title, o.internal_name, o.option_id) AS option_name,
    o.reference AS option_code,
    o.is_default AS is_default,
    o.is_deleted AS is_retired,
    ROW_NUMBER() OVER (
      PARTITION BY o.supplier_key, o.product_id, o.option_id
      ORDER BY o.supplier_key NULLS LAST, o.product_id NULLS LAST, o.option_id NULLS LAST, o.is_active DESC, o.is_deleted NULLS LAST, o.connection_id NULLS LAST
    ) AS _row_number
  FROM seen AS o
  LEFT JOIN marts.dim_product AS p
    ON p.supplier_key = o.supplier_key AND p.product_id = o.product_id
) AS _t
WHERE
  _row_number = 1
