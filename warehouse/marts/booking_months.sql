-- name: booking_months
-- grain: One connection and month of travel whose bookings were asked for.
-- description: Whether a month's bookings are known completely. Empty where lists are by day of booking: none of them speaks for a month of travel.
-- column: travel_month: First day of the month of travel.
-- column: verified_at_utc: When the month's bookings were last read.
-- column: is_complete: Whether the month lies completely in what is known, and its last answer was stored completely and spoke for it to its last day; of a month that is over also whether it was asked for after that day.
with channels as (
  -- One that left hears no more of the time: the supplier's others say which day it is.
  select *, max(as_of_date) over (partition by supplier_key) as this_day from marts.dim_channel
),
lists as (
  select *, cast(travel_month + interval '1 month' as date) - 1 as last_day
  from marts.booking_lists
  where travel_month is not null
)
select
  v.connection_id,
  v.travel_month,
  v.verified_at_utc,
  coalesce(
    v.is_complete and c.bookings_from <= v.travel_month and v.window_end >= v.last_day
      and (
        c.this_day <= v.last_day
        or cast(v.verified_at_utc at time zone coalesce(c.business_time_zone, 'UTC') as date) > v.last_day
      ),
    false
  ) as is_complete
from lists v
join channels c on c.connection_id = v.connection_id
