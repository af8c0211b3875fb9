-- name: sync_quarantine
-- description: What was left alone, with the reason, newest first, and how much there is of it.
select
  connection_id,
  resource,
  key,
  path,
  reason,
  seen_count,
  first_at_utc,
  last_at_utc,
  count(*) over () as found
from ops.quarantine
order by last_at_utc desc, connection_id, resource, key, path
limit 100
