-- name: filling_pace
-- grain: One open departure of the next 30 days with known capacity.
-- description: How full departures are beside what was usual so many days ahead: the median of the option's departures of the last eight weeks, each as this copy saw it then. Days ahead are those of 1, 2, 3, 5, 7, 10, 14, 21 and 30 that are no more than the departure has left, so that it is held against a later moment rather than an earlier one. Once for all connections of a supplier.
-- column: departure_key: One column to join departures on.
-- column: product_key: One column to join products on.
-- column: option_key: One column to join options on.
-- column: connection_id: The connection whose answers these are, as in fct_departures.
-- column: product_name: Title, else internal name, else id.
-- column: option_name: Title, else internal name, else id.
-- column: local_start_at: Start, wall clock at the venue.
-- column: is_all_day: Whether it spans the whole day: the time in local_start_at means nothing then.
-- column: travel_date: Day of travel at the venue.
-- column: days_ahead: Days from the last verification to travel, both at the venue.
-- column: compared_days_ahead: How many days ahead the departures were that it is held against.
-- column: capacity: Places in all.
-- column: taken: Places taken: everyone's sales.
-- column: fill_rate: taken / capacity, 0 to 1.
-- column: usual_fill_rate: The median of those departures then; null where this copy knew fewer than five.
-- column: compared_departures: How many departures that is.
-- column: verified_at_utc: When its month was last verified, changed or not.
with days as (
  select
    d.*,
    cast(c.last_verified_at_utc at time zone coalesce(d.time_zone, 'UTC') as date) as today
  from marts.fct_departures d
  join marts.dim_channel c on c.connection_id = d.connection_id
  where d.is_followed
),
checkpoints as (
  select days_ahead, coalesce(lead(days_ahead) over (order by days_ahead), 31) as next_days_ahead
  from (values (1), (2), (3), (5), (7), (10), (14), (21), (30)) as v(days_ahead)
),
ahead as (
  select
    d.departure_key, d.product_key, d.option_key, d.connection_id, d.product_name, d.option_name, d.local_start_at,
    d.travel_date, d.travel_date - d.today as days_ahead, c.days_ahead as compared_days_ahead, d.capacity, d.taken,
    d.fill_rate, d.is_all_day, d.verified_at_utc
  from days d
  join checkpoints c on d.travel_date - d.today >= c.days_ahead and d.travel_date - d.today < c.next_days_ahead
  where d.fill_rate is not null
),
past as (
  select
    d.option_key, d.connection_id, d.product_id, d.option_id, d.availability_id, c.days_ahead,
    coalesce(d.utc_start_at, cast(d.travel_date as timestamp) at time zone coalesce(d.time_zone, 'UTC'))
      - c.days_ahead * interval '1 day' as at_utc
  from days d
  cross join checkpoints c
  where d.travel_date between d.today - 56 and d.today - 1
),
known as (
  select p.option_key, p.days_ahead, h.status, h.vacancies, h.capacity
  from past p
  join core.availability_history h
    on h.connection_id = p.connection_id and h.product_id = p.product_id and h.option_id = p.option_id
    and h.availability_id = p.availability_id and h.valid_from_utc <= p.at_utc
    and (h.valid_to_utc is null or h.valid_to_utc > p.at_utc)
  union all
  -- One that never changed has no version.
  select p.option_key, p.days_ahead, a.status, a.vacancies, a.capacity
  from past p
  join core.availability a
    on a.connection_id = p.connection_id and a.product_id = p.product_id and a.option_id = p.option_id
    and a.availability_id = p.availability_id and a.first_seen_at_utc <= p.at_utc
  left join core.availability_history h
    on h.connection_id = a.connection_id and h.product_id = a.product_id and h.option_id = a.option_id
    and h.availability_id = a.availability_id and h.version_no = 1
  where h.version_no is null
),
usual as (
  select
    option_key,
    days_ahead,
    count(*) as departures,
    percentile_cont(0.5) within group (
      order by cast(capacity - vacancies as double precision) / capacity
    ) as fill_rate
  from known
  -- As in fct_departures: what is closed has nothing vacant, and that says nothing.
  where status is distinct from 'CLOSED' and capacity between 1 and 1000000000
    and vacancies between -1000000000 and capacity
  group by option_key, days_ahead
)
select
  a.departure_key,
  a.product_key,
  a.option_key,
  a.connection_id,
  a.product_name,
  a.option_name,
  a.local_start_at,
  a.is_all_day,
  a.travel_date,
  a.days_ahead,
  a.compared_days_ahead,
  a.capacity,
  a.taken,
  a.fill_rate,
  case when u.departures >= 5 then u.fill_rate end as usual_fill_rate,
  coalesce(u.departures, 0) as compared_departures,
  a.verified_at_utc
from ahead a
left join usual u on u.option_key = a.option_key and u.days_ahead = a.compared_days_ahead
