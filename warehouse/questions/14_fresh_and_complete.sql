-- name: 14_fresh_and_complete
-- question: Is the data fresh and complete, per connection?
-- description: For each connection and kind of data: when the part verified longest ago was verified, how many parts were not stored completely, and how many rows are missed: no longer in an answer, and not yet proven gone, or held back because they are too many.
-- parameter: at: instant: now: The moment of asking.
select
  f.connection_id,
  c.channel_name,
  f.resource,
  f.subjects,
  f.incomplete_subjects,
  f.missed_rows,
  f.open_subjects,
  f.is_complete,
  f.oldest_verified_at,
  f.last_verified_at,
  cast(floor(extract(epoch from (cast($at as timestamptz) - f.oldest_verified_at)) / 60) as bigint) as minutes_behind,
  c.bookings_from,
  c.bookings_to,
  c.booked_from
from marts.sync_freshness f
join marts.dim_channel c on c.connection_id = f.connection_id
order by f.connection_id, f.resource
