-- name: booking_found
-- description: Bookings that go by this key, uuid, id, reference or code of a ticket, whatever its capitals, blanks and hyphens; fifty at most. Test bookings and deleted ones too.
-- parameter: find: text: none: A booking_key, uuid, booking id, the supplier's or reseller's reference, or that of a ticket.
with found as (
  select connection_id, booking_uuid
  from core.bookings
  where booking_uuid = lower(cast($find as text)) or connection_id || '|' || booking_uuid = cast($find as text)
    -- A reference of nothing but hyphens is none. What links ask for is a key: nothing else has to be looked at.
    or cast($find as text) not like '%|%-%-%-%-%' and nullif(replace(replace(lower(cast($find as text)), ' ', ''), '-', ''), '') in (
      replace(replace(lower(booking_id), ' ', ''), '-', ''),
      replace(replace(lower(supplier_reference), ' ', ''), '-', ''),
      replace(replace(lower(reseller_reference), ' ', ''), '-', '')
    )
  union
  select connection_id, booking_uuid
  from core.booking_unit_items
  where cast($find as text) not like '%|%-%-%-%-%' and nullif(replace(replace(lower(cast($find as text)), ' ', ''), '-', ''), '') in (
    replace(replace(lower(supplier_reference), ' ', ''), '-', ''),
    replace(replace(lower(reseller_reference), ' ', ''), '-', '')
  )
)
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
from found f
join core.bookings b on b.connection_id = f.connection_id and b.booking_uuid = f.booking_uuid
left join marts.supplier_connections c on c.connection_id = b.connection_id
left join marts.dim_product p
  on p.supplier_key = coalesce(c.supplier_key, b.connection_id) and p.product_id = b.product_id
order by b.local_date desc nulls last, b.connection_id, b.booking_uuid
limit 50
