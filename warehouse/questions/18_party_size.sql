-- name: 18_party_size
-- question: How many guests come with one booking, by channel?
-- description: Guests and sold bookings whose number of guests is known, and the one divided by the other.
-- parameter: first: date: today-90d: First travel date.
-- parameter: last: date: today+90d: Last travel date.
select
  channel_name,
  count(pax_count) as bookings,
  cast(sum(pax_count) as bigint) as guests,
  cast(sum(pax_count) as double precision) / nullif(count(pax_count), 0) as party_size,
  count(*) - count(pax_count) as bookings_without_guests,
  min(verified_at_utc) as verified_at_utc
from marts.fct_bookings
where is_sold and travel_date between cast($first as date) and cast($last as date)
group by channel_name
order by channel_name
