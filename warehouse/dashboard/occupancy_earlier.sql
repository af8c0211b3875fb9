-- name: occupancy_earlier
-- description: How full each product and travel date is now, and how full the same departures were seven days before the last verification, as this copy saw them then; fewer departures then are those that it did not know yet.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+41d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: below: integer: 20: A departure that is less than so many percent full is weak; one that has left is not, but on days that are over.
with verified as (
  select max(last_verified_at_utc) as moment from marts.dim_channel
),
found as (
  select
    d.connection_id, d.product_key, d.product_id, d.option_id, d.availability_id, d.travel_date, d.status, d.vacancies, d.capacity,
    moment - interval '7 days' as at_utc,
    d.travel_date < cast(moment at time zone coalesce(d.time_zone, 'UTC') as date) or d.utc_start_at > moment
      or d.utc_start_at is null or d.is_all_day as may_be_weak
  from marts.fct_departures d
  cross join verified
  where d.is_followed
    and d.travel_date between cast($first as date) and cast($last as date)
    and (cast($product as text) is null or d.product_key = cast($product as text))
),
states as (
  select true as is_now, product_key, travel_date, may_be_weak, status, vacancies, capacity
  from found
  union all
  select false, f.product_key, f.travel_date, f.may_be_weak, h.status, h.vacancies, h.capacity
  from found f
  join core.availability_history h
    on h.connection_id = f.connection_id and h.product_id = f.product_id and h.option_id = f.option_id
    and h.availability_id = f.availability_id and h.valid_from_utc <= f.at_utc
    and (h.valid_to_utc is null or h.valid_to_utc > f.at_utc)
  union all
  -- One that never changed has no version.
  select false, f.product_key, f.travel_date, f.may_be_weak, a.status, a.vacancies, a.capacity
  from found f
  join core.availability a
    on a.connection_id = f.connection_id and a.product_id = f.product_id and a.option_id = f.option_id
    and a.availability_id = f.availability_id and a.first_seen_at_utc <= f.at_utc
  left join core.availability_history h
    on h.connection_id = a.connection_id and h.product_id = a.product_id and h.option_id = a.option_id
    and h.availability_id = a.availability_id and h.version_no = 1
  where h.version_no is null
),
measured as (
  -- As in fct_departures: what is closed has nothing vacant, and that says nothing.
  select
    *,
    status is distinct from 'CLOSED' and capacity between 1 and 1000000000 and vacancies between -1000000000 and capacity
      as is_measured
  from states
),
known as (
  select *, case when is_measured then capacity - vacancies end as taken, case when is_measured then capacity end as places
  from measured
)
select
  product_key,
  travel_date,
  is_now,
  count(*) as departures,
  count(case when status = 'SOLD_OUT' then 1 end) as sold_out,
  count(case when status = 'CLOSED' then 1 end) as closed,
  count(case when may_be_weak and status is distinct from 'SOLD_OUT' and taken * 100 < places * cast($below as bigint) then 1 end)
    as weak,
  cast(sum(taken) as bigint) as taken,
  cast(sum(places) as bigint) as capacity
from known
group by product_key, travel_date, is_now
order by product_key, travel_date, is_now
