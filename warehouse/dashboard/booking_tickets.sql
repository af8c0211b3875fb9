-- name: booking_tickets
-- description: The tickets (unit items) of one booking.
-- parameter: connection: text: none: Its connection_id.
-- parameter: booking: text: none: Its uuid.
select
  i.unit_item_uuid,
  coalesce(u.title, u.internal_name, i.unit_id) as unit_name,
  coalesce(i.unit_type, u.unit_type) as unit_type,
  i.status,
  i.supplier_reference,
  i.reseller_reference,
  i.utc_redeemed_at,
  b.time_zone,
  coalesce(i.pax_count, u.pax_count) as pax_count,
  i.currency,
  i.retail_amount,
  i.net_amount,
  i.is_deleted
from core.booking_unit_items i
join core.bookings b on b.connection_id = i.connection_id and b.booking_uuid = i.booking_uuid
left join core.units u
  on u.connection_id = b.connection_id and u.product_id = b.product_id and u.option_id = b.option_id
  and u.unit_id = i.unit_id
where i.connection_id = cast($connection as text) and i.booking_uuid = cast($booking as text)
order by i.is_deleted, unit_type, unit_name, i.unit_item_uuid
