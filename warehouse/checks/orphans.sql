-- name: orphans
-- description: Every detail, price and version has the row it belongs to.
select 'booking_unit_items' as table_name, i.connection_id, i.unit_item_uuid as id
from core.booking_unit_items i
left join core.bookings b on b.connection_id = i.connection_id and b.booking_uuid = i.booking_uuid
where b.booking_uuid is null
union all
select 'booking_extra_items', e.connection_id, e.booking_uuid
from core.booking_extra_items e
left join core.bookings b on b.connection_id = e.connection_id and b.booking_uuid = e.booking_uuid
where b.booking_uuid is null
union all
select 'booking_taxes', t.connection_id, t.booking_uuid
from core.booking_taxes t
left join core.bookings b on b.connection_id = t.connection_id and b.booking_uuid = t.booking_uuid
where b.booking_uuid is null
union all
select 'availability_prices', v.connection_id, v.availability_id
from core.availability_prices v
left join core.availability a
  on a.connection_id = v.connection_id and a.product_id = v.product_id and a.option_id = v.option_id
  and a.availability_id = v.availability_id
where a.availability_id is null
union all
select 'options', o.connection_id, o.option_id
from core.options o
left join core.products p on p.connection_id = o.connection_id and p.product_id = o.product_id
where p.product_id is null
union all
select 'product_content', t.connection_id, t.product_id
from core.product_content t
left join core.products p on p.connection_id = t.connection_id and p.product_id = t.product_id
where p.product_id is null
union all
select 'units', u.connection_id, u.unit_id
from core.units u
left join core.options o
  on o.connection_id = u.connection_id and o.product_id = u.product_id and o.option_id = u.option_id
where o.option_id is null
union all
select 'extras', e.connection_id, e.extra_id
from core.extras e
left join core.options o
  on o.connection_id = e.connection_id and o.product_id = e.product_id and o.option_id = e.option_id
where o.option_id is null
union all
select 'unit_prices', r.connection_id, r.product_id || '|' || r.option_id || '|' || r.unit_id
from core.unit_prices r
left join core.units u
  on u.connection_id = r.connection_id and u.product_id = r.product_id and u.option_id = r.option_id
  and u.unit_id = r.unit_id
left join core.options o
  on o.connection_id = r.connection_id and o.product_id = r.product_id and o.option_id = r.option_id
where case r.unit_id when '' then o.option_id else u.unit_id end is null
union all
select 'booking_history', h.connection_id, h.booking_uuid
from core.booking_history h
left join core.bookings b on b.connection_id = h.connection_id and b.booking_uuid = h.booking_uuid
where b.booking_uuid is null
union all
select 'availability_history', h.connection_id, h.availability_id
from core.availability_history h
left join core.availability a
  on a.connection_id = h.connection_id and a.product_id = h.product_id and a.option_id = h.option_id
  and a.availability_id = h.availability_id
where a.availability_id is null
