-- name: recon_open
-- grain: One open difference: key, bucket and field of one reconciliation.
-- description: What comparisons with other systems found and nobody has settled; empty until octo-sync reconcile ran.
-- column: reason: The likely reason, in a sentence.
-- column: age_days: Days from when it was first found to when it was last found.
-- column: age_class: 0-1, 2-7, 8-30 or >30 days.
with open_differences as (
  select
    *,
    cast(last_seen_at_utc at time zone 'UTC' as date) - cast(first_seen_at_utc at time zone 'UTC' as date) as age_days
  from ops.recon_results
  where resolved_at_utc is null and bucket not in ('matched', 'matched_within_tolerance', 'accepted')
)
select
  recon_name,
  recon_key,
  bucket,
  match_rule,
  field,
  connection_id,
  booking_uuid,
  here_value,
  there_value,
  delta_amount,
  currency,
  reason,
  first_seen_at_utc,
  last_seen_at_utc,
  age_days,
  case when age_days <= 1 then '0-1' when age_days <= 7 then '2-7' when age_days <= 30 then '8-30' else '>30' end
    as age_class
from open_differences
