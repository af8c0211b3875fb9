-- name: reconcile_accepted
-- description: The differences of each reconciliation that a person accepted and that are still found, those accepted for good last.
select
  d.recon_name, d.recon_key, d.bucket, d.field, d.here_value, d.there_value, d.delta_amount, d.currency, d.day, d.accepted_note,
  d.accepted_by, d.accepted_until
from ops.recon_results d
left join marts.recon_open o
  on o.recon_name = d.recon_name and o.recon_key = d.recon_key and o.bucket = d.bucket and o.field = d.field
where d.resolved_at_utc is null and o.recon_name is null
order by d.recon_name, d.accepted_until nulls last, d.recon_key, d.bucket, d.field
