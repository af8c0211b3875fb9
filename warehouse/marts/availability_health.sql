-- name: availability_health
-- grain: One product that is offered through a connection of the pipeline, from the copy's today on.
-- description: What is wrong with the days ahead: sold out, closed, hardly booked, or not loaded. Today is the venue's day at the copy's last verification.
-- column: product_key: One column to join products on.
-- column: connection_id: The connection whose names the product has in dim_product; sold_through there are all.
-- column: product_name: Title, else internal name, else id.
-- column: as_of_date: Today at the venue when the copy was last verified.
-- column: days: Days with departures from then on.
-- column: sold_out_days: Days on which everything that is not closed is sold out.
-- column: closed_days: Days on which everything is closed.
-- column: weak_days: Days with known capacity that are less than 20 % full and not sold out.
-- column: next_sold_out_day: The first sold-out day.
-- column: last_day_loaded: The last day with a departure.
-- column: covered_to: The last day that was asked for; null when nothing was.
-- column: verified_at_utc: When the month verified longest ago was verified.
-- column: is_covered: Whether every option that is offered was answered for every month from then on that was asked for, completely, through each connection that offers it, and the last answers spoke for every one of these days.
with today as (
  select
    p.product_key,
    cast(max(c.last_verified_at_utc) at time zone coalesce(p.time_zone, 'UTC') as date) as as_of_date
  from marts.dim_product p
  join marts.dim_channel c on c.supplier_key = p.supplier_key
  where p.sold_through <> '' and c.is_active
  group by p.product_key, p.time_zone
),
loaded as (
  select c.supplier_key || '|' || v.product_id as product_key, max(v.window_end) as covered_to
  from ops.coverage v
  join marts.supplier_connections c on c.connection_id = v.connection_id and c.is_active
  where v.resource = 'availability'
  group by c.supplier_key, v.product_id
),
asked as (
  -- A month without a departure, too, and an option without an answer.
  select
    t.product_key,
    min(case when v.is_complete then 1 else 0 end) as is_complete
  from today t
  join marts.coverage v
    on v.product_key = t.product_key and v.resource = 'availability' and v.is_active
    and v.travel_month >= date_trunc('month', cast(t.as_of_date as timestamp))
  group by t.product_key
),
ahead as (
  select
    o.*,
    o.closed_departures = o.departures as is_closed,
    o.sold_out_departures > 0 and o.sold_out_departures + o.closed_departures = o.departures as is_sold_out
  from marts.agg_occupancy_daily o
  join today t on t.product_key = o.product_key and o.travel_date >= t.as_of_date
)
select
  p.product_key,
  p.connection_id,
  p.product_id,
  p.product_name,
  t.as_of_date,
  count(a.travel_date) as days,
  count(*) filter (where a.is_sold_out) as sold_out_days,
  count(*) filter (where a.is_closed) as closed_days,
  count(*) filter (where a.fill_rate < 0.2 and not a.is_sold_out) as weak_days,
  min(a.travel_date) filter (where a.is_sold_out) as next_sold_out_day,
  max(a.travel_date) as last_day_loaded,
  l.covered_to,
  min(a.verified_at_utc) as verified_at_utc,
  coalesce(min(case when a.is_covered then 1 else 0 end) = 1 and asked.is_complete = 1, false) as is_covered
from marts.dim_product p
join today t on t.product_key = p.product_key
left join loaded l on l.product_key = p.product_key
left join asked on asked.product_key = p.product_key
left join ahead a on a.product_key = p.product_key
group by p.product_key, p.connection_id, p.product_id, p.product_name, t.as_of_date, l.covered_to, asked.is_complete
