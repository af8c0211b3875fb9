-- name: sync_connections
-- description: The connections, and when anything of each was last verified.
select
  connection_id,
  supplier_key,
  channel_name,
  supplier_name,
  is_active,
  business_time_zone,
  last_verified_at_utc,
  as_of_date,
  bookings_from,
  bookings_to,
  booked_from
from marts.dim_channel
order by channel_name, connection_id
