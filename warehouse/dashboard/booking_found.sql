-- name: booking_found
-- description: Bookings that go by this key, uuid, id, reference or code of a ticket, whatever its capitals, blanks and hyphens; fifty at most of found_count, those that travel today or tomorrow at the venue first, sold and held ones before others. Test bookings and deleted ones too.
-- parameter: now: instant: now: What time it is.
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
),
looked_up as (
  -- As in marts.fct_bookings, of these bookings alone.
  select
    i.connection_id,
    i.booking_uuid,
    case when count(*) = count(coalesce(i.pax_count, u.pax_count))
      then cast(sum(coalesce(i.pax_count, u.pax_count)) as bigint) end as pax_count
  from found n
  join core.bookings b on b.connection_id = n.connection_id and b.booking_uuid = n.booking_uuid
  join core.booking_unit_items i on i.connection_id = b.connection_id and i.booking_uuid = b.booking_uuid
  left join core.units u
    on u.connection_id = b.connection_id and u.product_id = b.product_id and u.option_id = b.option_id
    and u.unit_id = i.unit_id
  where b.pax_count is null and not i.is_deleted
  group by i.connection_id, i.booking_uuid
)
select
  b.connection_id,
  b.booking_uuid,
  b.connection_id || '|' || b.booking_uuid as booking_key,
  b.supplier_reference,
  b.reseller_reference,
  coalesce(c.channel_name, b.connection_id) as channel_name,
  coalesce(p.product_name, b.product_id) as product_name,
  coalesce(o.title, o.internal_name, b.option_id) as option_name,
  b.local_date as travel_date,
  b.local_start_at,
  case p.availability_type when 'OPENING_HOURS' then true when 'START_TIME' then false end as is_all_day,
  coalesce(b.pax_count, l.pax_count) as pax_count,
  b.status,
  count(*) over () as found_count
from found n
join core.bookings b on b.connection_id = n.connection_id and b.booking_uuid = n.booking_uuid
left join looked_up l on l.connection_id = n.connection_id and l.booking_uuid = n.booking_uuid
left join marts.supplier_connections c on c.connection_id = b.connection_id
left join marts.dim_product p
  on p.supplier_key = coalesce(c.supplier_key, b.connection_id) and p.product_id = b.product_id
left join core.options o
  on o.connection_id = b.connection_id and o.product_id = b.product_id and o.option_id = b.option_id
order by
  case
    when b.local_date - cast(cast($now as timestamptz) at time zone coalesce(b.time_zone, p.time_zone, 'UTC') as date)
      between 0 and 1 then 0
    else 1
  end,
  case
    when b.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW', 'PENDING') then 0
    when b.status = 'ON_HOLD' and coalesce(b.utc_expires_at > cast($now as timestamptz), true) then 0
    else 1
  end,
  b.local_date desc nulls last, b.connection_id, b.booking_uuid
limit 50
