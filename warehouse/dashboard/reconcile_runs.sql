-- name: reconcile_runs
-- description: The last runs of each reconciliation, newest first.
select *
from (
  select r.*, row_number() over (partition by r.recon_name order by r.ended_at_utc desc, r.run_id desc) as age
  from ops.recon_runs r
) as runs
where age <= 20
order by recon_name, age
