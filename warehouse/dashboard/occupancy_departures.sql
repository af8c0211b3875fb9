-- name: occupancy_departures
-- description: Departures of a time that are closed, sold out, or open and at least 90 % or less full than a limit, by time of start; of a single day also the others. One that has left is not weak; on days that are over it is.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+41d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: below: integer: 20: A departure that is less than so many percent full is weak.
-- parameter: most: integer: 200: Rows at most of each list: full (sold out or nearly), weak, closed and other ones.
with verified as (
  select max(last_verified_at_utc) as moment from marts.dim_channel
),
found as (
  select
    d.departure_key as slot_key,
    d.travel_date,
    d.local_start_at,
    d.is_all_day,
    d.product_name,
    d.option_name,
    case
      when d.is_closed then 'closed' when d.is_sold_out then 'sold out' when d.fill_rate >= 0.9 then 'nearly'
      when d.fill_rate * 100 < cast($below as bigint) and (
        d.travel_date < cast(moment at time zone coalesce(d.time_zone, 'UTC') as date)
        or d.utc_start_at > moment or d.utc_start_at is null or d.is_all_day
      ) then 'weak' else 'other'
    end as state,
    d.status,
    case when d.travel_date >= cast(moment at time zone coalesce(d.time_zone, 'UTC') as date)
      and d.utc_cutoff_at <= moment then d.utc_cutoff_at at time zone coalesce(d.time_zone, 'UTC') end as sold_until,
    d.taken,
    d.capacity,
    d.fill_rate,
    d.our_guests
  from marts.fct_departures d
  cross join verified
  where d.is_followed
    and d.travel_date between cast($first as date) and cast($last as date)
    and (cast($product as text) is null or d.product_key = cast($product as text))
),
listed as (
  select *, case when state in ('sold out', 'nearly') then 'full' else state end as list
  from found
  where state <> 'other' or cast($first as date) = cast($last as date)
),
placed as (
  select
    *,
    count(case when state = 'closed' then 1 end) over () as closed,
    count(case when state = 'sold out' then 1 end) over () as sold_out,
    count(case when state = 'nearly' then 1 end) over () as nearly,
    count(case when state = 'weak' then 1 end) over () as weak,
    count(*) over () as departures,
    row_number() over (partition by list order by local_start_at, product_name, option_name, slot_key) as place
  from listed
)
select *
from placed
where place <= cast($most as bigint)
order by place, slot_key
