-- name: availability_capacity
-- description: No departure has more places left than it has in all, or more taken than it has.
select connection_id, product_id, option_id, availability_id, vacancies, capacity
from core.availability
where not is_deleted and (capacity < 0 or vacancies < 0 or (vacancies > capacity and status <> 'SOLD_OUT'))
