-- name: booking_answers
-- description: The last answers of the service that spoke for one booking: its own, and the lists that had to show it; the latest first.
-- parameter: connection: text: none: Its connection_id.
-- parameter: booking: text: none: Its uuid.
select
  a.resource,
  a.window_start,
  a.window_end,
  a.verified_at_utc,
  a.source,
  a.is_complete,
  a.run_id
from core.bookings b
left join (
  select distinct connection_id from marts.booking_lists where booking_month is not null
) by_booking on by_booking.connection_id = b.connection_id
join ops.coverage a
  on a.connection_id = b.connection_id and (
    (a.resource in ('booking', 'open_dated') and a.key = '["' || b.booking_uuid || '"]')
    or (a.resource = 'bookings' and a.window_start <= case
        when by_booking.connection_id is null then b.local_date else cast(b.utc_created_at at time zone 'UTC' as date)
      end and a.window_end >= case
        when by_booking.connection_id is null then b.local_date else cast(b.utc_created_at at time zone 'UTC' as date)
      end)
  )
where b.connection_id = cast($connection as text) and b.booking_uuid = cast($booking as text)
order by a.verified_at_utc desc, a.resource
