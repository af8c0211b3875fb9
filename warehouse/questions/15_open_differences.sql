-- name: 15_open_differences
-- question: Which differences with other systems are open, and for how long?
-- description: Open results of octo-sync reconcile by age; none until a reconciliation ran. Amounts are per currency.
select
  recon_name,
  age_class,
  bucket,
  field,
  currency,
  count(*) as differences,
  sum(delta_amount) as delta_amount,
  min(first_seen_at_utc) as oldest_at_utc,
  max(last_seen_at_utc) as last_seen_at_utc
from marts.recon_open
group by recon_name, age_class, bucket, field, currency
order by recon_name, oldest_at_utc, bucket, field, currency
