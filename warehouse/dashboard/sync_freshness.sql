-- name: sync_freshness
-- description: How old the oldest and newest verification of each kind is, and what is open.
select
  connection_id,
  resource,
  subjects,
  oldest_verified_at,
  last_verified_at,
  minutes_behind,
  incomplete_subjects,
  missed_rows,
  open_subjects,
  failures_7d
from marts.sync_freshness
order by connection_id, resource
