-- name: departure_bookings
-- description: All bookings of one departure with their tickets by unit type, the guests of these where they are more or fewer, codes and extras, the sold ones first; each once, through however many connections it is seen.
-- parameter: key: text: none: Its departure_key; of bookings without one the slot_key of today.
-- parameter: day: date: today: Its day of travel.
with seen as (
  select
    b.*,
    row_number() over (
      partition by b.supplier_key, b.booking_uuid order by b.verified_at_utc desc nulls last, b.connection_id collate "C"
    ) as place
  from marts.fct_bookings b
  where b.travel_date = cast($day as date)
    and coalesce(
      b.departure_key,
      coalesce(b.option_key, b.product_key, b.booking_key) || '|' || coalesce(cast(b.local_start_at as text), '')
    ) = cast($key as text)
),
types as (
  select
    g.booking_key,
    coalesce(upper(substr(g.unit_type, 1, 1)) || lower(substr(g.unit_type, 2)), g.unit_name, 'other') as unit_type,
    count(*) as tickets,
    case when count(*) = count(g.pax_count) then cast(sum(g.pax_count) as bigint) end as guests
  from seen b
  join marts.fct_guests g on g.connection_id = b.connection_id and g.booking_uuid = b.booking_uuid
  where b.place = 1 and g.travel_date = cast($day as date)
  group by 1, 2
),
tickets as (
  select
    booking_key,
    string_agg(
      unit_type || ' ' || tickets || case
        when guests is null then ' (guests unknown)'
        when guests = tickets then ''
        else ' (' || guests || case when guests = 1 then ' guest)' else ' guests)' end
      end, ', '
      order by unit_type collate "C"
    ) as tickets
  from types
  group by booking_key
),
codes as (
  select
    b.booking_key,
    string_agg(
      coalesce(i.supplier_reference, i.reseller_reference), ', '
      order by coalesce(i.supplier_reference, i.reseller_reference) collate "C"
    ) as codes
  from seen b
  join core.booking_unit_items i on i.connection_id = b.connection_id and i.booking_uuid = b.booking_uuid
  where b.place = 1 and not i.is_deleted
  group by b.booking_key
),
names as (
  select connection_id, product_id, option_id, extra_id, min(coalesce(title, internal_name)) as extra_name
  from core.extras
  group by connection_id, product_id, option_id, extra_id
),
bought as (
  select
    b.booking_key,
    coalesce(n.extra_name, nullif(x.extra_id, ''), 'without a name') as extra_name,
    case when count(*) = count(x.quantity) then cast(cast(sum(x.quantity) as bigint) as text) else '?' end as quantity
  from seen b
  join core.booking_extra_items x on x.connection_id = b.connection_id and x.booking_uuid = b.booking_uuid
  left join names n
    on n.connection_id = b.connection_id and n.product_id = b.product_id and n.option_id = b.option_id
    and n.extra_id = x.extra_id
  where b.place = 1
  group by 1, 2
),
extras as (
  select booking_key, string_agg(extra_name || ' ' || quantity, ', ' order by extra_name collate "C") as extras
  from bought
  group by booking_key
)
select
  b.booking_key,
  b.booking_uuid,
  b.supplier_reference,
  b.reseller_reference,
  b.channel_name,
  b.product_name,
  b.option_name,
  b.local_start_at,
  b.is_all_day,
  b.time_zone,
  b.status,
  b.is_sold,
  b.pax_count,
  t.tickets,
  c.codes,
  x.extras,
  case when b.status = 'ON_HOLD' then b.utc_expires_at end as lapses_at_utc,
  b.utc_redeemed_at,
  b.currency,
  b.retail_amount
from seen b
left join tickets t on t.booking_key = b.booking_key
left join codes c on c.booking_key = b.booking_key
left join extras x on x.booking_key = b.booking_key
where b.place = 1
order by b.is_sold desc, b.status, b.supplier_reference, b.booking_key
