-- name: booking_parts
-- description: The extras and taxes of one booking.
-- parameter: connection: text: none: Its connection_id.
-- parameter: booking: text: none: Its uuid.
select
  'extra' as part,
  coalesce(min(e.title), min(e.internal_name), nullif(x.extra_id, ''), 'without a name') as part_name,
  case when x.unit_item_uuid = '' then 'the booking' else 'one ticket' end as bought_with,
  x.unit_item_uuid,
  x.extra_id as part_id,
  x.quantity,
  x.currency,
  x.retail_amount,
  x.net_amount
from core.booking_extra_items x
join core.bookings b on b.connection_id = x.connection_id and b.booking_uuid = x.booking_uuid
left join core.extras e
  on e.connection_id = b.connection_id and e.product_id = b.product_id and e.option_id = b.option_id
  and e.extra_id = x.extra_id
where x.connection_id = cast($connection as text) and x.booking_uuid = cast($booking as text)
group by x.unit_item_uuid, x.extra_id, x.quantity, x.currency, x.retail_amount, x.net_amount
union all
select 'tax', t.name, 'the booking', '', t.name, null, t.currency, t.retail_amount, t.net_amount
from core.booking_taxes t
where t.connection_id = cast($connection as text) and t.booking_uuid = cast($booking as text)
order by 1, 2, 4, 5
