-- name: shared_bookings
-- description: How many bookings several connections of one supplier see: each of them has a row, and a sum of all channels counts every row.
select count(*) as bookings
from (
  select c.supplier_key, b.booking_uuid
  from core.bookings b
  join marts.supplier_connections c on c.connection_id = b.connection_id and c.connections > 1
  where not b.is_deleted and not b.is_test
  group by c.supplier_key, b.booking_uuid
  having count(*) > 1
) as shared
