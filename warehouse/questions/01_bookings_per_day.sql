-- name: 01_bookings_per_day
-- question: How many bookings were made each day, and for how many guests?
-- description: One row for every day, by when bookings were made (not when they travel), in the business time zone; sold_without_guests counts sold bookings that do not say how many guests.
-- parameter: first: date: today-30d: First booking date.
-- parameter: last: date: today: Last booking date.
with active as (
  select count(*) as connections from marts.dim_channel where is_active
),
known as (
  -- All bookings of a day are known where each connection's are.
  select e.booking_date, count(*) as connections
  from marts.booking_coverage e
  join marts.dim_channel c on c.connection_id = e.connection_id and c.is_active
  where e.is_complete
  group by e.booking_date
)
select
  d.date_key as booking_date,
  d.weekday_name,
  cast(coalesce(sum(a.bookings), 0) as bigint) as bookings,
  cast(coalesce(sum(a.sold), 0) as bigint) as sold,
  cast(coalesce(sum(a.cancelled), 0) as bigint) as cancelled,
  cast(case when sum(a.sold) > 0 then sum(a.guests) else 0 end as bigint) as guests,
  cast(coalesce(sum(a.sold_without_guests), 0) as bigint) as sold_without_guests,
  -- Days without bookings have no row of a channel; one of a channel that is no longer active counts too.
  coalesce(k.connections = active.connections, false)
    and coalesce(min(case when a.booking_date is not null then case when a.is_complete then 1 else 0 end end), 1) = 1 as is_complete
from marts.dim_date d
cross join active
left join known k on k.booking_date = d.date_key
left join marts.agg_bookings_daily a on a.booking_date = d.date_key
where d.date_key between cast($first as date) and cast($last as date)
group by d.date_key, d.weekday_name, k.connections, active.connections
order by d.date_key
