-- name: channels
-- description: Connections to choose from, and what the copy calls today for each.
select connection_id, channel_name, is_active, as_of_date, last_verified_at_utc, bookings_from, bookings_to, booked_from
from marts.dim_channel
order by channel_name, connection_id
