-- name: bookings_by_channel
-- description: Bookings made per day and channel that were ever sold, days without one included; made counts what was never sold too.
-- parameter: first: date: today-55d: First booking date.
-- parameter: last: date: today: Last booking date.
with counted as (
  select
    booking_date,
    connection_id,
    count(*) as made,
    count(case when was_sold then 1 end) as bookings,
    count(case when is_sold then 1 end) as sold,
    count(case when is_sold and pax_count is null then 1 end) as sold_without_guests,
    count(case when status in ('ON_HOLD', 'PENDING') then 1 end) as still_open,
    count(case when was_sold and is_cancelled then 1 end) as cancelled,
    sum(case when is_sold then pax_count end) as guests
  from marts.fct_bookings
  where booking_date between cast($first as date) and cast($last as date)
  group by booking_date, connection_id
)
select
  d.date_key as booking_date,
  c.connection_id,
  c.channel_name,
  c.is_active,
  coalesce(n.made, 0) as made,
  coalesce(n.bookings, 0) as bookings,
  coalesce(n.sold, 0) as sold,
  coalesce(n.sold_without_guests, 0) as sold_without_guests,
  coalesce(n.still_open, 0) as still_open,
  coalesce(n.cancelled, 0) as cancelled,
  cast(case when n.sold > 0 then n.guests else 0 end as bigint) as guests,
  coalesce(e.is_complete, false) as is_complete
from marts.dim_date d
cross join marts.dim_channel c
left join counted n on n.booking_date = d.date_key and n.connection_id = c.connection_id
left join marts.booking_coverage e on e.booking_date = d.date_key and e.connection_id = c.connection_id
where d.date_key between cast($first as date) and cast($last as date)
order by d.date_key, c.channel_name, c.connection_id
