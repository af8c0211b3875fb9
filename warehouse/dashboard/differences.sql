-- name: differences
-- description: Every difference that is still found, open or accepted: the largest of each currency in turn, then what has no amount, new before old.
with found as (
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
    -- Only one side counts it as sold, so its whole price is the difference.
    coalesce(d.delta_amount, case when d.field = 'status' and b.currency = d.currency then
      case d.code when 'cancelled_here' then b.retail_amount when 'cancelled_there' then -b.retail_amount end end) as amount,
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
    -- One row of a key has both rows as JSON.
    case when b.booking_uuid is null or b.is_cancelled
      then max(d.both_rows) over (partition by d.recon_name, d.recon_key) end as kept_rows,
    b.supplier_reference,
    b.reseller_reference,
    b.channel_name,
    b.travel_date,
    b.booking_date
  from ops.recon_results d
  left join marts.recon_open o
    on o.recon_name = d.recon_name and o.recon_key = d.recon_key and o.bucket = d.bucket and o.field = d.field
  left join marts.fct_bookings b on b.connection_id = d.connection_id and b.booking_uuid = d.booking_uuid
  where d.resolved_at_utc is null
),
placed as (
  select
    *,
    row_number() over (
      partition by recon_name, currency order by abs(amount) desc nulls last, recon_key, bucket, field
    ) as turn
  from found
)
select *
from placed
order by
  recon_name,
  case when amount is null or amount = 0 then 1 else 0 end,
  case when amount is null or amount = 0 then 0 else turn end,
  case when is_new then 0 else 1 end,
  first_seen_at_utc,
  currency,
  recon_key,
  bucket,
  field
