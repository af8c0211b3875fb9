-- name: today
-- description: Each departure of today and tomorrow at its venue, what all sellers took of it, and our tickets by unit type with their guests where these are more or fewer, those on hold apart, extras and references, in the order in which they leave; bookings whose departure is not known stand by what is known of product, option and start.
-- parameter: now: instant: now: What time it is.
-- parameter: product: text: : One product alone (product_key); null: all.
with slots as (
  select
    d.*,
    -- Until when it was sold.
    case when d.utc_cutoff_at <= cast($now as timestamptz)
      then d.utc_cutoff_at at time zone coalesce(d.time_zone, 'UTC') end as sold_until,
    d.travel_date - cast(cast($now as timestamptz) at time zone coalesce(d.time_zone, 'UTC') as date) as days_ahead
  from marts.fct_departures d
  where d.is_followed
    and d.travel_date between cast(cast($now as timestamptz) as date) - 1 and cast(cast($now as timestamptz) as date) + 2
    and (cast($product as text) is null or d.product_key = cast($product as text))
),
seen as (
  -- A booking that several connections see is one.
  select
    b.*,
    b.travel_date - cast(cast($now as timestamptz) at time zone coalesce(b.time_zone, 'UTC') as date) as days_ahead,
    coalesce(
      b.departure_key,
      coalesce(b.option_key, b.product_key, b.booking_key) || '|' || coalesce(cast(b.local_start_at as text), '')
    ) as slot_key,
    row_number() over (
      partition by b.supplier_key, b.booking_uuid order by b.verified_at_utc desc nulls last, b.connection_id collate "C"
    ) as place
  from marts.fct_bookings b
  where b.travel_date between cast(cast($now as timestamptz) as date) - 1 and cast(cast($now as timestamptz) as date) + 2
    and (cast($product as text) is null or b.product_key = cast($product as text))
),
booked as (
  select *
  from seen
  where place = 1 and days_ahead between 0 and 1 and (
    is_sold or status = 'PENDING'
    or (status = 'ON_HOLD' and coalesce(utc_expires_at > cast($now as timestamptz), true))
  )
),
sums as (
  select
    slot_key,
    min(days_ahead) as days_ahead,
    min(product_name) as product_name,
    min(option_name) as option_name,
    min(travel_date) as travel_date,
    min(local_start_at) as local_start_at,
    min(case is_all_day when true then 1 when false then 0 end) = 1 as is_all_day,
    min(utc_start_at) as utc_start_at,
    min(time_zone) as time_zone,
    count(*) filter (where is_sold) as bookings,
    string_agg(
      case when is_sold then coalesce(supplier_reference, reseller_reference, booking_uuid) end, ', '
      order by coalesce(supplier_reference, reseller_reference, booking_uuid) collate "C"
    ) as booking_references,
    string_agg(
      case when not is_sold then coalesce(supplier_reference, reseller_reference, booking_uuid) end, ', '
      order by coalesce(supplier_reference, reseller_reference, booking_uuid) collate "C"
    ) as held_references,
    case when count(*) filter (where is_sold) = count(pax_count) filter (where is_sold)
      then coalesce(sum(pax_count) filter (where is_sold), 0) end as sold,
    case when count(*) filter (where not is_sold) = count(pax_count) filter (where not is_sold)
      then coalesce(sum(pax_count) filter (where not is_sold), 0) end as on_hold
  from booked
  group by slot_key
),
types as (
  select
    b.slot_key,
    b.is_sold,
    coalesce(upper(substr(g.unit_type, 1, 1)) || lower(substr(g.unit_type, 2)), g.unit_name, 'other') as unit_type,
    count(*) as tickets,
    case when count(*) = count(g.pax_count) then cast(sum(g.pax_count) as bigint) end as guests
  from booked b
  join marts.fct_guests g on g.connection_id = b.connection_id and g.booking_uuid = b.booking_uuid
  where g.travel_date between cast(cast($now as timestamptz) as date) - 1 and cast(cast($now as timestamptz) as date) + 2
  group by 1, 2, 3
),
named as (
  select
    slot_key,
    is_sold,
    unit_type,
    unit_type || ' ' || tickets || case
      when guests is null then ' (guests unknown)'
      when guests = tickets then ''
      else ' (' || guests || case when guests = 1 then ' guest)' else ' guests)' end
    end as said
  from types
),
guests as (
  select
    slot_key,
    string_agg(case when is_sold then said end, ', ' order by unit_type collate "C") as guests,
    string_agg(case when not is_sold then said end, ', ' order by unit_type collate "C") as held_guests
  from named
  group by slot_key
),
names as (
  select connection_id, product_id, option_id, extra_id, min(coalesce(title, internal_name)) as extra_name
  from core.extras
  group by connection_id, product_id, option_id, extra_id
),
bought as (
  select
    b.slot_key,
    coalesce(n.extra_name, nullif(x.extra_id, ''), 'without a name') as extra_name,
    case when count(*) = count(x.quantity) then cast(cast(sum(x.quantity) as bigint) as text) else '?' end as quantity
  from booked b
  join core.booking_extra_items x on x.connection_id = b.connection_id and x.booking_uuid = b.booking_uuid
  left join names n
    on n.connection_id = b.connection_id and n.product_id = b.product_id and n.option_id = b.option_id
    and n.extra_id = x.extra_id
  where b.is_sold
  group by 1, 2
),
extras as (
  select slot_key, string_agg(extra_name || ' ' || quantity, ', ' order by extra_name collate "C") as extras
  from bought
  group by slot_key
)
select
  coalesce(d.departure_key, s.slot_key) as slot_key,
  coalesce(d.days_ahead, s.days_ahead) as days_ahead,
  coalesce(d.travel_date, s.travel_date) as travel_date,
  coalesce(d.local_start_at, s.local_start_at) as local_start_at,
  coalesce(d.utc_start_at, s.utc_start_at) as utc_start_at,
  coalesce(d.time_zone, s.time_zone) as time_zone,
  coalesce(d.product_name, s.product_name) as product_name,
  coalesce(d.option_name, s.option_name) as option_name,
  d.departure_key is not null as is_known,
  d.status,
  d.vacancies,
  d.capacity,
  d.taken,
  d.local_end_at,
  coalesce(d.is_all_day, s.is_all_day) as is_all_day,
  d.sold_until,
  coalesce(s.bookings, 0) as bookings,
  case when s.slot_key is null then 0 else cast(s.sold as bigint) end as sold,
  case when s.slot_key is null then 0 else cast(s.on_hold as bigint) end as on_hold,
  g.guests,
  g.held_guests,
  x.extras,
  s.booking_references,
  s.held_references
from (select * from slots where days_ahead between 0 and 1) as d
full join sums s on s.slot_key = d.departure_key
left join guests g on g.slot_key = s.slot_key
left join extras x on x.slot_key = s.slot_key
order by 2, 5 nulls first, 4, 7, 8, 1
