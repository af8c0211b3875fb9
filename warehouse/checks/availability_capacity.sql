-- name: availability_capacity
-- description: No departure has more places left than it has in all.
select connection_id, product_id, option_id, availability_id, vacancies, capacity
from core.availability
where not is_deleted and vacancies > capacity and status <> 'SOLD_OUT'
