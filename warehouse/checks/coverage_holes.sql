-- name: coverage_holes
-- description: Nothing stands in the copy for which no answer is on record.
select distinct 'availability' as resource, a.connection_id, a.product_id, a.option_id
from (select distinct connection_id, product_id, option_id from core.availability where not is_deleted) a
left join ops.coverage c
  on c.connection_id = a.connection_id and c.resource = 'availability' and c.product_id = a.product_id
  and c.option_id = a.option_id
where c.connection_id is null
union all
select distinct 'bookings', b.connection_id, null, null
from (select distinct connection_id from core.bookings where not is_deleted) b
left join ops.coverage c on c.connection_id = b.connection_id and c.resource in ('bookings', 'booking')
where c.connection_id is null
