-- name: booking_differences
-- description: What comparisons with other systems found of one booking: the open differences first, then those that a person accepted or that are no longer found.
-- parameter: connection: text: none: Its connection_id.
-- parameter: booking: text: none: Its uuid.
select
  r.recon_name,
  r.recon_key,
  r.bucket,
  r.field,
  r.here_value,
  r.there_value,
  r.delta_amount,
  -- As in the select differences.
  coalesce(r.delta_amount, case when r.field = 'status' and b.currency = r.currency then
    case r.code when 'cancelled_here' then b.retail_amount when 'cancelled_there' then -b.retail_amount end end) as amount,
  r.currency,
  r.reason,
  r.first_seen_at_utc,
  r.last_seen_at_utc,
  case when b.is_cancelled then max(r.both_rows) over (partition by r.recon_name, r.recon_key) end as kept_rows,
  case when r.resolved_at_utc is not null then 'no longer found' when o.recon_key is not null then 'open' else 'accepted' end
    as state
from ops.recon_results r
left join marts.recon_open o
  on o.recon_name = r.recon_name and o.recon_key = r.recon_key and o.bucket = r.bucket and o.field = r.field
left join marts.fct_bookings b
  on b.connection_id = cast($connection as text) and b.booking_uuid = cast($booking as text)
where coalesce(r.connection_id, cast($connection as text)) = cast($connection as text)
  and r.booking_uuid = cast($booking as text)
order by case when o.recon_key is not null then 0 else 1 end, r.recon_name, r.bucket, r.field, r.recon_key
