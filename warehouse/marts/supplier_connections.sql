-- name: supplier_connections
-- grain: One connection of the pipeline.
-- description: Which connections (one for each token) sell for the same supplier: the service's address and the supplier's id are the same. Their products and departures are the same ones, and count once in every mart. A connection whose supplier is not known yet stands alone.
-- column: supplier_key: One column to join suppliers on: the supplier's first connection by name.
-- column: connections: How many connections have this supplier_key.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: supplier_name: The supplier's name.
select
  c.connection_id,
  case when c.supplier_id is null then c.connection_id
    else min(c.connection_id collate "C") over (partition by c.base_url, c.supplier_id) end as supplier_key,
  case when c.supplier_id is null then 1 else count(*) over (partition by c.base_url, c.supplier_id) end as connections,
  coalesce(c.channel, c.connection_id) as channel_name,
  c.role,
  c.supplier_id,
  s.name as supplier_name,
  c.business_time_zone,
  c.is_active
from core.connections c
left join core.suppliers s on s.connection_id = c.connection_id and s.supplier_id = c.supplier_id
