-- name: dim_product
-- grain: One product of one connection.
-- description: Products with every name they go by, and whether they are still sold.
-- column: product_key: One column to join products on.
-- column: product_name: Title, else internal name, else id.
-- column: product_code: The supplier's reference.
-- column: supplier_name: The supplier's name.
-- column: time_zone: IANA time zone of the venue.
-- column: is_retired: Whether the service no longer has it.
-- column: retired_at_utc: When that was proven; null while it is offered.
select
  p.connection_id || '|' || p.product_id as product_key,
  p.connection_id,
  p.product_id,
  coalesce(p.title, p.internal_name, p.product_id) as product_name,
  p.title,
  p.internal_name,
  p.reference as product_code,
  c.supplier_id,
  s.name as supplier_name,
  p.time_zone,
  p.availability_type,
  p.default_currency,
  p.pricing_per,
  p.is_deleted as is_retired,
  p.deleted_at_utc as retired_at_utc
from core.products p
left join core.connections c on c.connection_id = p.connection_id
left join core.suppliers s on s.connection_id = c.connection_id and s.supplier_id = c.supplier_id
