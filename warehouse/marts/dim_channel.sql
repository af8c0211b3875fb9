-- name: dim_channel
-- grain: One connection of the pipeline.
-- description: Where bookings come from, and what is known through it: the connection, its channel, the supplier behind it.
-- column: supplier_key: One column to join suppliers on; equal for the connections that sell for one supplier.
-- column: channel_name: Sales channel, as named in the pipeline.
-- column: supplier_name: The supplier's name.
-- column: first_pulled_at_utc: When the first product landed.
-- column: last_verified_at_utc: When anything was last verified: what the copy calls now.
-- column: as_of_date: The day of that, in the business time zone: what the copy calls today.
-- column: bookings_from: Bookings that travel on this day or later are known, up to bookings_to; earlier ones only in part. It is after the last month up to today of which no answer was ever read. Null where lists are by day of booking: no day of travel is known completely.
-- column: bookings_to: Last travel date that was asked for; bookings beyond are not known. Null likewise.
-- column: booked_from: Bookings made on this day or later are known, as far as they travel up to bookings_to; earlier ones only in part.
with heard as (
  select connection_id, max(verified_at_utc) as last_verified_at_utc from ops.coverage group by connection_id
),
lists as (
  -- Their months and days are those of travel, or else of booking.
  select
    connection_id,
    coalesce(travel_month, booking_month) as month,
    coalesce(window_start, booked_start) as first_day,
    window_end,
    booking_month is not null as is_by_booking
  from marts.booking_lists
  where answers > 0
),
covered as (
  select connection_id, max(window_end) as last_day, max(case when is_by_booking then 1 else 0 end) = 1 as is_by_booking
  from lists
  group by connection_id
),
began as (
  select connection_id, min(first_seen_at_utc) as first_pulled_at_utc from core.products group by connection_id
),
pulled as (
  select
    c.connection_id,
    began.first_pulled_at_utc,
    cast(began.first_pulled_at_utc at time zone coalesce(c.business_time_zone, 'UTC') as date) as first_pulled_date,
    heard.last_verified_at_utc,
    cast(heard.last_verified_at_utc at time zone coalesce(c.business_time_zone, 'UTC') as date) as as_of_date,
    covered.last_day,
    covered.is_by_booking
  from core.connections c
  left join heard on heard.connection_id = c.connection_id
  left join covered on covered.connection_id = c.connection_id
  left join began on began.connection_id = c.connection_id
),
months as (
  select
    v.connection_id,
    v.month,
    -- Nobody says in which zone days of booking are counted, so the first one may be in part.
    v.first_day + case when v.is_by_booking then 1 else 0 end as first_day,
    -- The month after it was never answered, and is not one to come.
    v.month + interval '1 month' <= p.as_of_date
      and lead(v.month) over (partition by v.connection_id order by v.month) > v.month + interval '1 month' as is_before_hole
  from lists v
  join pulled p on p.connection_id = v.connection_id
),
holes as (
  select connection_id, max(month) as month_before from months where is_before_hole group by connection_id
),
known as (
  select
    m.connection_id,
    min(m.first_day) as first_day,
    max(h.month_before) is not null as is_after_hole,
    min(m.month) as first_month
  from months m
  left join holes h on h.connection_id = m.connection_id
  where h.month_before is null or m.month > h.month_before
  group by m.connection_id
),
told as (
  select
    p.*,
    -- A horizon moves on, but what was booked since the first pull has been there; not so beyond a hole.
    case
      when k.is_after_hole and p.first_pulled_date < k.first_month then k.first_day
      when k.first_day is not null then least(k.first_day, p.first_pulled_date)
    end as known_from
  from pulled p
  left join known k on k.connection_id = p.connection_id
)
select
  c.connection_id,
  c.channel_name,
  c.role,
  c.supplier_id,
  c.supplier_name,
  c.business_time_zone,
  c.is_active,
  p.first_pulled_at_utc,
  p.last_verified_at_utc,
  p.as_of_date,
  case when not p.is_by_booking then p.known_from end as bookings_from,
  p.last_day as bookings_to,
  p.known_from as booked_from,
  c.supplier_key
from marts.supplier_connections c
join told p on p.connection_id = c.connection_id
