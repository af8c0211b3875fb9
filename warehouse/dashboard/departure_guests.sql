-- name: departure_guests
-- description: The tickets of one departure by unit type, of sold bookings and of those on hold or pending, and the guests of these where they are more or fewer; each booking once, through however many connections it is seen.
-- parameter: key: text: none: Its departure_key; of bookings without one the slot_key of today.
-- parameter: day: date: today: Its day of travel.
-- parameter: now: instant: now: What time it is: a hold that has lapsed is none.
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
    b.is_sold,
    coalesce(upper(substr(g.unit_type, 1, 1)) || lower(substr(g.unit_type, 2)), g.unit_name, 'other') as unit_type,
    count(*) as tickets,
    case when count(*) = count(g.pax_count) then cast(sum(g.pax_count) as bigint) end as guests
  from seen b
  join marts.fct_guests g on g.connection_id = b.connection_id and g.booking_uuid = b.booking_uuid
  where b.place = 1 and g.travel_date = cast($day as date) and (
    b.is_sold or b.status = 'PENDING'
    or (b.status = 'ON_HOLD' and coalesce(b.utc_expires_at > cast($now as timestamptz), true))
  )
  group by 1, 2
)
select
  is_sold,
  string_agg(
    unit_type || ' ' || tickets || case
      when guests is null then ' (guests unknown)'
      when guests = tickets then ''
      else ' (' || guests || case when guests = 1 then ' guest)' else ' guests)' end
    end, ', '
    order by unit_type collate "C"
  ) as tickets
from types
group by is_sold
order by is_sold desc
