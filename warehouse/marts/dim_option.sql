-- name: dim_option
-- grain: One option of one product.
-- description: The variants of products with their names.
-- column: option_key: One column to join options on.
-- column: product_key: One column to join products on.
-- column: option_name: Title, else internal name.
-- column: is_retired: Whether the service no longer has it.
select
  o.connection_id || '|' || o.product_id || '|' || o.option_id as option_key,
  o.connection_id || '|' || o.product_id as product_key,
  o.connection_id,
  o.product_id,
  o.option_id,
  coalesce(o.title, o.internal_name) as option_name,
  o.is_default,
  o.is_deleted as is_retired
from core.options o
