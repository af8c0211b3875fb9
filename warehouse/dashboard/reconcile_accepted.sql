-- name: reconcile_accepted
-- description: How many differences of each reconciliation were accepted.
select d.recon_name, count(*) as accepted
from ops.recon_results d
left join marts.recon_open o
  on o.recon_name = d.recon_name and o.recon_key = d.recon_key and o.bucket = d.bucket and o.field = d.field
where d.resolved_at_utc is null and o.recon_name is null
group by d.recon_name
order by d.recon_name
