-- name: sync_runs
-- description: The last runs that landed something, newest first.
select run_id, command, pipeline, status, started_at_utc, ended_at_utc, requests, subjects, unchanged, rows_written, error
from ops.runs
order by started_at_utc desc, run_id desc
limit 20
