-- name: sync_freshness
-- grain: One connection and resource.
-- description: How old the oldest and newest verification are.
-- column: resource: Kind of subject.
-- column: subjects: How many there are.
-- column: oldest_verified_at: When the one verified longest ago was verified.
-- column: last_verified_at: When one was last verified.
-- column: incomplete_subjects: Those whose answer did not land wholly.
select
  connection_id,
  resource,
  count(*) as subjects,
  min(verified_at_utc) as oldest_verified_at,
  max(verified_at_utc) as last_verified_at,
  sum(case when is_complete then 0 else 1 end) as incomplete_subjects
from ops.coverage
where window_end is null or window_end >= current_date
group by connection_id, resource
