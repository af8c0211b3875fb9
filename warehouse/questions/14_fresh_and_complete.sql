-- name: 14_fresh_and_complete
-- question: Is the data fresh and complete, per connection?
-- yes: is_fresh, is_complete
-- description: For each connection and kind of data: whether the part verified longest ago was verified lately enough, how many parts were not stored completely, and how many rows are missed: no longer in an answer, and not yet proven gone, or held back because they are too many.
-- parameter: at: instant: now: The moment of asking.
-- parameter: hours: number: 26: Fresh is what was verified within so many hours.
select
  f.connection_id,
  f.resource,
  coalesce(cast($at as timestamptz) - f.oldest_verified_at <= cast($hours as double precision) * interval '1 hour', false) as is_fresh,
  f.is_complete,
  cast(floor(extract(epoch from (cast($at as timestamptz) - f.oldest_verified_at)) / 60) as bigint) as minutes_behind,
  f.incomplete_subjects,
  f.missed_rows,
  f.open_subjects,
  f.subjects,
  c.channel_name,
  f.oldest_verified_at,
  f.last_verified_at,
  c.bookings_from,
  c.bookings_to,
  c.booked_from
from marts.sync_freshness f
join marts.dim_channel c on c.connection_id = f.connection_id
order by f.connection_id, f.resource
