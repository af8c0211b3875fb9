-- name: dim_channel
-- grain: One connection of the pipeline.
-- description: Where bookings come from: the connection, its channel and the supplier behind it.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: supplier_name: The supplier's name.
select
  c.connection_id,
  coalesce(c.channel, c.connection_id) as channel_name,
  c.role,
  c.supplier_id,
  s.name as supplier_name,
  c.business_time_zone,
  c.is_active
from core.connections c
left join core.suppliers s
  on s.connection_id = c.connection_id and s.supplier_id = c.supplier_id
