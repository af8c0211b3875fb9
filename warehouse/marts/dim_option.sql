-- name: dim_option
-- grain: One option of one product.
-- description: The variants of products with their names. Where several connections of a supplier sell one, its names are those of the first that offers it.
-- column: option_key: One column to join options on.
-- column: product_key: One column to join products on.
-- column: connection_id: The connection whose names and settings are shown.
-- column: product_name: Title, else internal name, else id.
-- column: option_name: Title, else internal name, else id.
-- column: option_code: The supplier's reference.
-- column: is_retired: Whether the service no longer has it, for any connection of the pipeline.
with seen as (
  select o.*, coalesce(c.supplier_key, o.connection_id) as supplier_key, coalesce(c.is_active, false) as is_active
  from core.options o
  left join marts.supplier_connections c on c.connection_id = o.connection_id
)
select distinct on (o.supplier_key, o.product_id, o.option_id)
  o.supplier_key || '|' || o.product_id || '|' || o.option_id as option_key,
  o.supplier_key || '|' || o.product_id as product_key,
  o.connection_id,
  o.product_id,
  coalesce(p.product_name, o.product_id) as product_name,
  o.option_id,
  coalesce(o.title, o.internal_name, o.option_id) as option_name,
  o.reference as option_code,
  o.is_default,
  o.is_deleted as is_retired
from seen o
left join marts.dim_product p on p.supplier_key = o.supplier_key and p.product_id = o.product_id
order by o.supplier_key, o.product_id, o.option_id, o.is_active desc, o.is_deleted, o.connection_id collate "C"
