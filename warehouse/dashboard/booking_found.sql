-- name: booking_found
-- description: Bookings that go by this key, uuid, id or reference; fifty at most. Test bookings and deleted ones too.
-- parameter: find: text: none: A booking_key, uuid, booking id, or the supplier's or reseller's reference.
select
  b.connection_id,
  b.booking_uuid,
  b.connection_id || '|' || b.booking_uuid as booking_key,
  b.supplier_reference,
  b.reseller_reference,
  coalesce(c.channel_name, b.connection_id) as channel_name,
  coalesce(p.product_name, b.product_id) as product_name,
  b.local_date as travel_date,
  b.status
from core.bookings b
left join marts.supplier_connections c on c.connection_id = b.connection_id
left join marts.dim_product p
  on p.supplier_key = coalesce(c.supplier_key, b.connection_id) and p.product_id = b.product_id
where b.booking_uuid = cast($find as text) or b.connection_id || '|' || b.booking_uuid = cast($find as text)
  or b.booking_id = cast($find as text) or b.supplier_reference = cast($find as text)
  or b.reseller_reference = cast($find as text)
order by b.local_date desc nulls last, b.connection_id, b.booking_uuid
limit 50
