-- name: dim_option
-- grain: One option of one product.
-- description: The variants of products with their names.
-- column: option_key: One column to join options on.
-- column: product_key: One column to join products on.
-- column: product_name: Title, else internal name, else id.
-- column: option_name: Title, else internal name, else id.
-- column: option_code: The supplier's reference.
-- column: is_retired: Whether the service no longer has it.
select
  o.connection_id || '|' || o.product_id || '|' || o.option_id as option_key,
  o.connection_id || '|' || o.product_id as product_key,
  o.connection_id,
  o.product_id,
  coalesce(p.title, p.internal_name, o.product_id) as product_name,
  o.option_id,
  coalesce(o.title, o.internal_name, o.option_id) as option_name,
  o.reference as option_code,
  o.is_default,
  o.is_deleted as is_retired
from core.options o
left join core.products p on p.connection_id = o.connection_id and p.product_id = o.product_id
