-- name: sync_drift
-- description: What services send that no table expects, newest first, and how much there is of it.
select
  connection_id,
  resource,
  kind,
  name,
  seen_count,
  first_seen_at_utc,
  last_seen_at_utc,
  count(*) over () as found
from ops.schema_drift
order by last_seen_at_utc desc, connection_id, resource, kind, name
limit 100
