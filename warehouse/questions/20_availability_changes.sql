-- name: 20_availability_changes
-- question: Which departures changed lately?
-- description: Each change of status, places left or capacity with what it was before; departures that were proven gone have no status. Where several connections of a supplier sell a departure, as the connection saw it that fct_departures shows.
-- parameter: since: instant: now-24h: Changes seen since then.
with changes as (
  select v.connection_id, v.product_id, v.option_id, v.availability_id, v.valid_from_utc as changed_at_utc,
    v.changed_fields, f.status as status_before, v.status, f.vacancies as vacancies_before, v.vacancies,
    f.capacity as capacity_before, v.capacity
  from core.availability_history v
  join core.availability_history f
    on f.connection_id = v.connection_id and f.product_id = v.product_id and f.option_id = v.option_id
    and f.availability_id = v.availability_id and f.version_no = v.version_no - 1
  where v.valid_from_utc >= cast($since as timestamptz)
  union all
  select connection_id, product_id, option_id, availability_id, deleted_at_utc, 'is_deleted', status, null, vacancies,
    null, capacity, null
  from core.availability
  where is_deleted and deleted_at_utc >= cast($since as timestamptz)
)
select
  o.product_name,
  o.option_name,
  a.local_start_at,
  c.changed_at_utc,
  c.changed_fields,
  c.status_before,
  c.status,
  c.vacancies_before,
  c.vacancies,
  c.capacity_before,
  c.capacity,
  coalesce(a.is_all_day, false) as is_all_day
from changes c
join core.availability a
  on a.connection_id = c.connection_id and a.product_id = c.product_id and a.option_id = c.option_id
  and a.availability_id = c.availability_id
join marts.supplier_connections n on n.connection_id = c.connection_id
join marts.dim_option o on o.option_key = n.supplier_key || '|' || c.product_id || '|' || c.option_id
left join marts.shared_departures s
  on s.supplier_key = n.supplier_key and s.product_id = c.product_id and s.option_id = c.option_id
  and s.availability_id = c.availability_id
where coalesce(s.connection_id, c.connection_id) = c.connection_id
order by c.changed_at_utc desc, a.local_start_at, o.product_name, o.option_key, c.availability_id
