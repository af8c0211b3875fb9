-- name: today_days
-- description: Today and tomorrow at the venue of each product on sale, and whether its bookings and departures of that day are known completely: each active connection answered for the day, and all of the answer was stored.
-- parameter: now: instant: now: What time it is.
-- parameter: product: text: : One product alone (product_key); null: all.
with days as (
  select
    p.supplier_key,
    p.product_key,
    p.product_name,
    n.days_ahead,
    cast(cast($now as timestamptz) at time zone coalesce(p.time_zone, 'UTC') as date) + n.days_ahead as travel_date
  from marts.dim_product p
  cross join (select 0 as days_ahead union all select 1) as n
  where p.sold_through <> ''
    and (cast($product as text) is null or p.product_key = cast($product as text))
),
booked as (
  select
    d.product_key,
    d.days_ahead,
    min(case when v.connection_id is null then 0 else 1 end) as is_complete
  from days d
  join marts.dim_channel c on c.supplier_key = d.supplier_key and c.is_active
  left join marts.coverage v
    on v.connection_id = c.connection_id and v.resource = 'bookings' and v.is_complete
    and d.travel_date between v.window_start and v.window_end
  group by d.product_key, d.days_ahead
),
offered as (
  select
    d.product_key,
    d.days_ahead,
    min(case when v.is_complete and d.travel_date between v.window_start and v.window_end then 1 else 0 end) as is_complete
  from days d
  left join marts.coverage v
    on v.product_key = d.product_key and v.resource = 'availability' and v.is_active
    and v.travel_month = d.travel_date - (cast(extract(day from d.travel_date) as integer) - 1)
  group by d.product_key, d.days_ahead
)
select
  d.days_ahead,
  d.travel_date,
  d.product_key,
  d.product_name,
  b.is_complete = 1 as bookings_complete,
  o.is_complete = 1 as departures_complete
from days d
join booked b on b.product_key = d.product_key and b.days_ahead = d.days_ahead
join offered o on o.product_key = d.product_key and o.days_ahead = d.days_ahead
order by d.days_ahead, d.product_name, d.product_key
