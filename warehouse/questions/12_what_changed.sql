-- name: 12_what_changed
-- question: What changed since yesterday?
-- description: Versions of bookings that the copy saw since then, new ones included, the latest first.
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
where e.event_at_utc >= cast($since as timestamptz)
order by e.event_at_utc desc, e.booking_uuid, e.version_no
