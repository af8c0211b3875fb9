-- name: local_dates
-- description: A travel date is the day on which the travel starts at the venue.
select 'availability' as table_name, connection_id, availability_id as id, local_date, local_start_at, time_zone
from core.availability
where not is_deleted and local_date <> cast(local_start_at as date)
union all
select 'bookings', connection_id, booking_uuid, local_date, local_start_at, time_zone
from core.bookings
where not is_deleted and local_date <> cast(local_start_at as date)
