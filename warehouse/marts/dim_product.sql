-- name: dim_product
-- grain: One product of one supplier, however many connections sell it.
-- description: Products with every name they go by, and whether they are still sold. Where several connections of a supplier sell one, its names are those of the first that offers it.
-- column: product_key: One column to join products on.
-- column: supplier_key: One column to join suppliers on.
-- column: connection_id: The connection whose names and settings are shown.
-- column: sold_through: The pipeline's connections that offer it, comma-separated; '' = none.
-- column: product_name: Title, else internal name, else id.
-- column: product_code: The supplier's reference.
-- column: supplier_name: The supplier's name.
-- column: time_zone: IANA time zone of the venue.
-- column: is_retired: Whether the service no longer has it, for any connection of the pipeline.
-- column: retired_at_utc: When that was proven; null while it is offered.
with seen as (
  select
    p.*,
    coalesce(c.supplier_key, p.connection_id) as supplier_key,
    c.supplier_id,
    c.supplier_name,
    coalesce(c.is_active, false) as is_active
  from core.products p
  left join marts.supplier_connections c on c.connection_id = p.connection_id
),
offered as (
  select supplier_key, product_id, string_agg(connection_id, ',' order by connection_id collate "C") as sold_through
  from seen
  where is_active and not is_deleted
  group by supplier_key, product_id
)
select distinct on (p.supplier_key, p.product_id)
  p.supplier_key || '|' || p.product_id as product_key,
  p.connection_id,
  p.product_id,
  coalesce(p.title, p.internal_name, p.product_id) as product_name,
  p.title,
  p.internal_name,
  p.reference as product_code,
  p.supplier_id,
  p.supplier_name,
  p.time_zone,
  p.availability_type,
  p.default_currency,
  p.pricing_per,
  p.is_deleted as is_retired,
  p.deleted_at_utc as retired_at_utc,
  p.supplier_key,
  coalesce(o.sold_through, '') as sold_through
from seen p
left join offered o on o.supplier_key = p.supplier_key and o.product_id = p.product_id
order by p.supplier_key, p.product_id, p.is_active desc, p.is_deleted, p.deleted_at_utc desc, p.connection_id collate "C"
