-- name: fct_guests
-- grain: One ticket (unit item) of one booking.
-- description: Tickets with what their booking says of them. A ticket is sold when its booking is; its own status is as reported.
-- column: guest_key: One column for the ticket.
-- column: booking_key: One column to join bookings on.
-- column: product_key: One column to join products on.
-- column: option_key: One column to join options on.
-- column: departure_key: One column to join departures on; null for freesale.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: product_name: Title, else internal name, else id.
-- column: option_name: Title, else internal name, else id.
-- column: unit_name: Title, else internal name, else id of the unit.
-- column: unit_type: ADULT, CHILD and the like; looked up in the product where the service leaves the unit out.
-- column: status: Status of the ticket as reported; services leave it out or stale, the booking's decides.
-- column: booking_status: Status of the booking, the authoritative one.
-- column: is_sold: Whether its booking is CONFIRMED, REDEEMED or NOSHOW.
-- column: is_cancelled: Whether its booking is CANCELLED.
-- column: is_redeemed: Whether this ticket was used: by its own status or time, or by its booking's status where it has neither; never with NOSHOW.
-- column: booking_date: Day it was made, in the business time zone.
-- column: travel_date: Day of travel at the venue; null for an open-dated booking.
-- column: travel_month: First day of its month.
-- column: lead_days: Days from booking to travel, both at the venue.
-- column: local_start_at: Start of travel, wall clock at the venue.
-- column: pax_count: Guests it admits; null where neither ticket nor unit says.
-- column: margin_amount: Retail minus net, exact; null where the price is per booking.
-- column: verified_at_utc: When an answer last showed its booking as it is here.
select
  i.connection_id || '|' || i.booking_uuid || '|' || i.unit_item_uuid as guest_key,
  b.booking_key,
  b.product_key,
  b.option_key,
  b.departure_key,
  i.connection_id,
  i.booking_uuid,
  i.unit_item_uuid,
  b.channel_name,
  b.product_id,
  b.product_name,
  b.option_name,
  i.unit_id,
  coalesce(u.title, u.internal_name, i.unit_id) as unit_name,
  coalesce(i.unit_type, u.unit_type) as unit_type,
  i.status,
  b.status as booking_status,
  b.is_sold,
  b.is_cancelled,
  b.status is distinct from 'NOSHOW' and (
    coalesce(i.status = 'REDEEMED', false) or i.utc_redeemed_at is not null
    or (coalesce(b.status = 'REDEEMED', false) and i.status is null)
  ) as is_redeemed,
  b.booking_date,
  b.travel_date,
  b.travel_month,
  b.lead_days,
  b.local_start_at,
  i.utc_redeemed_at,
  coalesce(i.pax_count, u.pax_count) as pax_count,
  i.currency,
  i.retail_amount,
  i.net_amount,
  i.retail_amount - i.net_amount as margin_amount,
  b.verified_at_utc
from core.booking_unit_items i
join marts.fct_bookings b on b.connection_id = i.connection_id and b.booking_uuid = i.booking_uuid
left join core.units u
  on u.connection_id = b.connection_id and u.product_id = b.product_id and u.option_id = b.option_id
  and u.unit_id = i.unit_id
where not i.is_deleted
