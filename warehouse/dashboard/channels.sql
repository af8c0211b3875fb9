-- name: channels
-- description: Connections to choose from, what the copy calls today for each, and their order in time, which nothing changes.
select
  connection_id, channel_name, is_active, as_of_date, last_verified_at_utc, bookings_from, bookings_to, booked_from,
  row_number() over (order by first_pulled_at_utc nulls last, connection_id) as place
from marts.dim_channel
order by channel_name, connection_id
