-- name: shared_departures
-- grain: One departure of a supplier with several connections.
-- description: Through which of a supplier's connections each departure is counted. A connection of the pipeline goes before one that left, a departure that is offered before one that is gone, the larger capacity before the smaller, then what was verified last. Empty where each supplier has one connection.
-- materialize: table
-- column: supplier_key: One column to join suppliers on.
-- column: connection_id: The connection whose answer is counted.
-- column: availability_id: OCTO availability id; unique inside its option only.
-- column: least_capacity: The smallest capacity that any connection of the pipeline sees; null where none tells one.
with seen as (
  select
    c.supplier_key,
    a.connection_id,
    a.product_id,
    a.option_id,
    a.availability_id,
    min(case when c.is_active and not a.is_deleted then a.capacity end)
      over (partition by c.supplier_key, a.product_id, a.option_id, a.availability_id) as least_capacity,
    row_number() over (
      partition by c.supplier_key, a.product_id, a.option_id, a.availability_id
      order by
        c.is_active desc, a.is_deleted, a.capacity desc nulls last, v.verified_at_utc desc nulls last, a.connection_id collate "C"
    ) as place
  from core.availability a
  join marts.supplier_connections c on c.connection_id = a.connection_id and c.connections > 1
  left join ops.coverage v
    on v.connection_id = a.connection_id and v.resource = 'availability' and v.product_id = a.product_id
    and v.option_id = a.option_id and v.travel_month = substr(cast(a.local_date as text), 1, 7)
)
select supplier_key, product_id, option_id, availability_id, connection_id, least_capacity
from seen
where place = 1
