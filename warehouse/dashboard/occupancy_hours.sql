-- name: occupancy_hours
-- description: How full departures are by weekday and hour of their start at the venue, all products together, or one; tickets for a whole day have no hour.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+41d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
with starts as (
  select
    d.*,
    case when p.availability_type is distinct from 'OPENING_HOURS'
      then cast(extract(hour from d.local_start_at) as integer) end as start_hour
  from marts.fct_departures d
  left join marts.dim_product p on p.product_key = d.product_key
  where d.is_followed and d.travel_date between cast($first as date) and cast($last as date)
    and (cast($product as text) is null or d.product_key = cast($product as text))
)
select
  d.weekday,
  d.weekday_name,
  s.start_hour,
  count(*) as departures,
  cast(sum(case when s.taken is not null then s.capacity end) as bigint) as capacity,
  cast(sum(s.taken) as bigint) as taken,
  cast(sum(s.taken) as double precision)
    / nullif(cast(sum(case when s.taken is not null then s.capacity end) as double precision), 0) as fill_rate,
  count(case when s.is_sold_out then 1 end) as sold_out_departures,
  count(case when s.is_closed then 1 end) as closed_departures
from starts s
join marts.dim_date d on d.date_key = s.travel_date
group by d.weekday, d.weekday_name, s.start_hour
order by d.weekday, s.start_hour nulls first
