-- name: fct_sellouts
-- grain: One departure, or one open day, that was ever seen sold out before it started.
-- description: When departures sold out, how many days ahead, and whether they opened again, as this copy saw it: a change counts from the answer that showed it first. What happened before the copy began, or while nobody asked, is not known. Once for all connections of a supplier.
-- column: departure_key: One column to join departures on.
-- column: product_key: One column to join products on.
-- column: option_key: One column to join options on.
-- column: connection_id: The connection whose answers these are, as in fct_departures.
-- column: product_name: Title, else internal name, else id.
-- column: option_name: Title, else internal name, else id.
-- column: availability_id: OCTO availability id; unique inside its option only.
-- column: local_start_at: Start, wall clock at the venue.
-- column: travel_date: Day of travel at the venue.
-- column: travel_month: First day of its month.
-- column: sold_out_at_utc: When it was first seen sold out.
-- column: days_ahead: Days from then to travel, both at the venue.
-- column: was_on_sale: Whether it was seen on sale before; else it may have been sold out for longer, and days_ahead is the least it can be.
-- column: times_sold_out: How many times it became sold out.
-- column: reopened_at_utc: When it was first seen on sale again, before its start; null = it was not.
-- column: status: AVAILABLE, LIMITED, FREESALE, SOLD_OUT, CLOSED or a newer one: what it is now.
-- column: is_sold_out: Whether it is sold out now.
-- column: is_gone: Whether the service no longer has it.
with said as (
  select connection_id, product_id, option_id, availability_id, version_no, valid_from_utc as seen_at_utc
  from core.availability_history
  where status = 'SOLD_OUT'
  union all
  -- One that never changed has no version.
  select connection_id, product_id, option_id, availability_id, null, first_seen_at_utc
  from core.availability
  where status = 'SOLD_OUT'
),
firsts as (
  select
    connection_id, product_id, option_id, availability_id,
    min(version_no) as first_version,
    coalesce(min(case when version_no is not null then seen_at_utc end), min(seen_at_utc)) as sold_out_at_utc
  from said
  group by connection_id, product_id, option_id, availability_id
),
ever as (
  select
    a.connection_id, a.product_id, a.option_id, a.availability_id, a.local_start_at, a.local_date, a.time_zone, a.status,
    a.is_deleted, f.first_version, f.sold_out_at_utc,
    case when not coalesce(a.is_all_day, false) then a.utc_start_at end as closes_at_utc
  from firsts f
  join core.availability a
    on a.connection_id = f.connection_id and a.product_id = f.product_id and a.option_id = f.option_id
    and a.availability_id = f.availability_id
  -- What services say of a departure that has left, or of a day that is over, is no sell-out.
  where case
    when a.utc_start_at is null or coalesce(a.is_all_day, false)
      then cast(f.sold_out_at_utc at time zone coalesce(a.time_zone, 'UTC') as date) <= a.local_date
    else f.sold_out_at_utc < a.utc_start_at end
),
versions as (
  select
    h.*,
    e.first_version,
    lag(h.status) over (
      partition by h.connection_id, h.product_id, h.option_id, h.availability_id order by h.version_no
    ) as previous_status
  from ever e
  join core.availability_history h
    on h.connection_id = e.connection_id and h.product_id = e.product_id and h.option_id = e.option_id
    and h.availability_id = e.availability_id
  where e.closes_at_utc is null or h.valid_from_utc < e.closes_at_utc
),
lives as (
  select
    connection_id, product_id, option_id, availability_id,
    count(case when version_no < first_version and status in ('AVAILABLE', 'LIMITED', 'FREESALE') then 1 end) > 0
      as was_on_sale,
    count(case when status = 'SOLD_OUT' and previous_status is distinct from 'SOLD_OUT' then 1 end) as times_sold_out,
    min(case when version_no > first_version and status in ('AVAILABLE', 'LIMITED', 'FREESALE') then valid_from_utc end)
      as reopened_at_utc
  from versions
  group by connection_id, product_id, option_id, availability_id
),
counted as (
  select e.*, c.supplier_key
  from ever e
  join marts.supplier_connections c on c.connection_id = e.connection_id
  where c.connections = 1
  union all
  select e.*, s.supplier_key
  from marts.shared_departures s
  join ever e
    on e.connection_id = s.connection_id and e.product_id = s.product_id and e.option_id = s.option_id
    and e.availability_id = s.availability_id
)
select
  e.supplier_key || '|' || e.product_id || '|' || e.option_id || '|' || e.availability_id as departure_key,
  e.supplier_key || '|' || e.product_id as product_key,
  e.supplier_key || '|' || e.product_id || '|' || e.option_id as option_key,
  e.connection_id,
  e.product_id,
  coalesce(p.product_name, e.product_id) as product_name,
  e.option_id,
  coalesce(o.title, o.internal_name, e.option_id) as option_name,
  e.availability_id,
  e.local_start_at,
  e.local_date as travel_date,
  e.local_date - (cast(extract(day from e.local_date) as integer) - 1) as travel_month,
  e.sold_out_at_utc,
  e.local_date - cast(
    e.sold_out_at_utc at time zone coalesce(e.time_zone, p.time_zone, 'UTC') as date
  ) as days_ahead,
  coalesce(l.was_on_sale, false) as was_on_sale,
  coalesce(l.times_sold_out, 1) as times_sold_out,
  l.reopened_at_utc,
  e.status,
  coalesce(e.status = 'SOLD_OUT', false) as is_sold_out,
  coalesce(e.is_deleted, false) as is_gone
from counted e
left join lives l
  on l.connection_id = e.connection_id and l.product_id = e.product_id and l.option_id = e.option_id
  and l.availability_id = e.availability_id
left join marts.dim_product p on p.supplier_key = e.supplier_key and p.product_id = e.product_id
left join core.options o
  on o.connection_id = e.connection_id and o.product_id = e.product_id and o.option_id = e.option_id
