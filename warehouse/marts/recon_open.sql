-- name: recon_open
-- grain: One open difference: key, bucket and field of one reconciliation.
-- description: What comparisons with other systems found and nobody has settled or accepted; empty until octo-sync reconcile ran.
-- column: reason: The likely reason, in a sentence.
-- column: is_new: Whether the last comparison of its reconciliation was the first to find it.
-- column: age_days: Days from when it was first found to when it was last found.
-- column: age_class: 0-1, 2-7, 8-30 or >30 days.
with open_differences as (
  select
    *,
    cast(last_seen_at_utc at time zone 'UTC' as date) as last_seen_date,
    cast(last_seen_at_utc at time zone 'UTC' as date) - cast(first_seen_at_utc at time zone 'UTC' as date) as age_days
  from ops.recon_results
  where resolved_at_utc is null
),

last_runs as (
  select recon_name, max(ended_at_utc) as ended_at_utc
  from ops.recon_runs
  where verdict <> 'failed'
  group by recon_name
)

select
  d.recon_name,
  d.recon_key,
  d.bucket,
  d.match_rule,
  d.field,
  d.connection_id,
  d.booking_uuid,
  d.here_value,
  d.there_value,
  d.delta_amount,
  d.currency,
  d.reason,
  d.code,
  d.day,
  d.first_seen_at_utc,
  d.last_seen_at_utc,
  coalesce(d.first_seen_at_utc >= r.ended_at_utc, false) as is_new,
  d.age_days,
  case
    when d.age_days <= 1 then '0-1' when d.age_days <= 7 then '2-7' when d.age_days <= 30 then '8-30' else '>30'
  end as age_class
from open_differences d
left join last_runs r on r.recon_name = d.recon_name
-- An acceptance holds up to its last day, or for good.
where d.accepted_note is null or d.accepted_until < d.last_seen_date
