-- name: 29_occupancy_by_weekday_and_hour
-- question: On which weekdays and at which hours are departures full?
-- description: Places taken, by everyone, of open departures with known capacity, by weekday and hour at the venue; tickets for a whole day have no hour. Past departures are as last seen.
-- parameter: first: date: today-42d: First travel date.
-- parameter: last: date: today+41d: Last travel date.
with starts as (
  select
    d.*,
    case when p.availability_type is distinct from 'OPENING_HOURS'
      then cast(extract(hour from d.local_start_at) as integer) end as start_hour
  from marts.fct_departures d
  left join marts.dim_product p on p.product_key = d.product_key
  where d.is_followed and d.travel_date between cast($first as date) and cast($last as date)
)
select
  d.weekday,
  d.weekday_name,
  s.start_hour,
  cast(sum(s.taken) as double precision)
    / nullif(cast(sum(s.capacity) filter (where s.taken is not null) as double precision), 0) as fill_rate,
  cast(sum(s.taken) as bigint) as taken,
  cast(sum(s.capacity) filter (where s.taken is not null) as bigint) as capacity,
  count(*) as departures,
  count(s.taken) as measured_departures,
  count(*) filter (where s.is_sold_out) as sold_out_departures,
  count(*) filter (where s.is_closed) as closed_departures,
  min(s.verified_at_utc) as verified_at_utc,
  min(case when s.is_covered then 1 else 0 end) = 1 as is_covered
from starts s
join marts.dim_date d on d.date_key = s.travel_date
group by d.weekday, d.weekday_name, s.start_hour
order by d.weekday, s.start_hour nulls last
