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
  r.currency,
  r.reason,
  r.first_seen_at_utc,
  r.last_seen_at_utc,
  case when r.resolved_at_utc is not null then 'no longer found' when o.recon_key is not null then 'open' else 'accepted' end
    as state
from ops.recon_results r
left join marts.recon_open o
  on o.recon_name = r.recon_name and o.recon_key = r.recon_key and o.bucket = r.bucket and o.field = r.field
where coalesce(r.connection_id, cast($connection as text)) = cast($connection as text)
  and r.booking_uuid = cast($booking as text)
order by case when o.recon_key is not null then 0 else 1 end, r.recon_name, r.bucket, r.field, r.recon_key
