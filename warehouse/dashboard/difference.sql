-- name: difference
-- description: All that comparisons found of one key of a reconciliation: what is open first.
-- parameter: recon: text: none: The reconciliation.
-- parameter: key: text: none: Its recon_key.
select
  r.*,
  b.supplier_reference,
  b.reseller_reference,
  -- Only one side counts it as sold, so its whole price is the difference.
  coalesce(r.delta_amount, case when r.field = 'status' and b.currency = r.currency then
    case r.code when 'cancelled_here' then b.retail_amount when 'cancelled_there' then -b.retail_amount end end) as amount,
  case when b.booking_uuid is null or b.status = 'CANCELLED'
    then max(r.both_rows) over (partition by r.recon_key) end as kept_rows,
  case when r.resolved_at_utc is not null then 'no longer found' when o.recon_key is not null then 'open' else 'accepted' end
    as state
from ops.recon_results r
left join marts.recon_open o
  on o.recon_name = r.recon_name and o.recon_key = r.recon_key and o.bucket = r.bucket and o.field = r.field
left join core.bookings b on b.connection_id = r.connection_id and b.booking_uuid = r.booking_uuid
where r.recon_name = cast($recon as text)
  and r.recon_key = cast($key as text)
order by case when o.recon_key is not null then 0 else 1 end, r.last_seen_at_utc desc, r.bucket, r.field
