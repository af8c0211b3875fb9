-- name: 12_what_changed
-- question: What changed since a given moment?
-- description: Versions of bookings that the copy saw since then, new ones included, the latest first. Older bookings that were only read for the first time, and not cancelled since, are left out.
-- parameter: since: instant: now-24h: Changes seen since then.
select
  e.event_at_utc,
  e.supplier_reference,
  e.status,
  e.previous_status,
  e.changed_fields,
  e.product_name,
  e.channel_name,
  e.booking_uuid,
  e.version_no,
  e.source
from marts.fct_booking_events e
left join core.bookings b on b.connection_id = e.connection_id and b.booking_uuid = e.booking_uuid
left join marts.dim_channel c on c.connection_id = e.connection_id
where e.event_at_utc >= cast($since as timestamptz)
  and (e.version_no > 1 or e.is_gone or coalesce(
    greatest(b.utc_created_at, b.utc_cancelled_at) >= least(cast($since as timestamptz), c.first_pulled_at_utc), true
  ))
order by e.event_at_utc desc, e.booking_uuid, e.version_no
