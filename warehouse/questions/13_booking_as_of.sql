-- name: 13_booking_as_of
-- question: What did a booking look like at a given moment?
-- description: A booking as this copy held it then. No row: it was not known yet, or was proven gone by then.
-- parameter: booking: text: : OCTO booking uuid, or the supplier's or reseller's reference.
-- parameter: at: instant: now: The moment.
select
  connection_id,
  booking_uuid,
  supplier_reference,
  version_no,
  status,
  travel_date,
  product_name,
  option_name,
  currency,
  retail_amount,
  net_amount,
  pax_count,
  event_at_utc,
  valid_to_utc,
  changed_fields,
  source
from marts.fct_booking_events
where $booking in (booking_uuid, supplier_reference, reseller_reference)
  and event_at_utc <= cast($at as timestamptz)
  and (valid_to_utc is null or valid_to_utc > cast($at as timestamptz))
  and not is_gone
order by connection_id, booking_uuid
