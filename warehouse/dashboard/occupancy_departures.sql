-- name: occupancy_departures
-- description: Departures of a time that are closed, sold out, or open and at least 90 % or less than 20 % full, by time of start. One that has left today is not weak.
-- parameter: first: date: today: First travel date.
-- parameter: last: date: today+41d: Last travel date.
-- parameter: product: text: : One product alone (product_key); null: all.
-- parameter: most: integer: 200: Rows at most of each list: full (sold out or nearly), weak and closed ones.
with verified as (
  select max(last_verified_at_utc) as moment from marts.dim_channel
),
found as (
  select
    departure_key as slot_key,
    travel_date,
    local_start_at,
    product_name,
    option_name,
    case when is_closed then 'closed' when is_sold_out then 'sold out' when fill_rate >= 0.9 then 'nearly' else 'weak' end
      as state,
    taken,
    capacity,
    fill_rate,
    our_pax
  from marts.fct_departures
  cross join verified
  where is_followed
    and travel_date between cast($first as date) and cast($last as date)
    and (cast($product as text) is null or product_key = cast($product as text))
    and (is_closed or is_sold_out or fill_rate >= 0.9 or (fill_rate < 0.2 and not (
      utc_start_at <= moment and travel_date = cast(moment at time zone coalesce(time_zone, 'UTC') as date)
      and cast(local_start_at as time) <> time '00:00'
    )))
),
listed as (
  select *, case when state in ('sold out', 'nearly') then 'full' else state end as list
  from found
),
placed as (
  select
    *,
    count(case when state = 'closed' then 1 end) over () as closed,
    count(case when state = 'sold out' then 1 end) over () as sold_out,
    count(case when state = 'nearly' then 1 end) over () as nearly,
    count(case when state = 'weak' then 1 end) over () as weak,
    row_number() over (partition by list order by local_start_at, product_name, option_name, slot_key) as place
  from listed
)
select *
from placed
where place <= cast($most as bigint)
order by place, slot_key
