-- name: differences
-- description: Every difference that is still found, open or accepted: the largest of each currency in turn, then what has no amount, new before old.
select *
from (
  select
    d.recon_name,
    d.recon_key,
    d.bucket,
    d.field,
    d.connection_id,
    d.booking_uuid,
    d.here_value,
    d.there_value,
    d.delta_amount,
    d.currency,
    d.reason,
    d.day,
    d.accepted_note,
    d.accepted_by,
    d.accepted_until,
    d.first_seen_at_utc,
    d.last_seen_at_utc,
    case when o.recon_key is null then 'accepted' else 'open' end as state,
    coalesce(o.is_new, false) as is_new,
    cast(d.last_seen_at_utc at time zone 'UTC' as date) - cast(d.first_seen_at_utc at time zone 'UTC' as date) as age_days,
    b.retail_amount as retail_here,
    b.currency as currency_here,
    row_number() over (
      partition by d.recon_name, d.currency
      order by abs(d.delta_amount) desc nulls last, d.recon_key, d.bucket, d.field
    ) as turn
  from ops.recon_results d
  left join marts.recon_open o
    on o.recon_name = d.recon_name and o.recon_key = d.recon_key and o.bucket = d.bucket and o.field = d.field
  left join marts.fct_bookings b on b.connection_id = d.connection_id and b.booking_uuid = d.booking_uuid
  where d.resolved_at_utc is null
) as placed
order by
  recon_name,
  case when delta_amount is null or delta_amount = 0 then 1 else 0 end,
  case when delta_amount is null or delta_amount = 0 then 0 else turn end,
  case when is_new then 0 else 1 end,
  first_seen_at_utc,
  currency,
  recon_key,
  bucket,
  field
