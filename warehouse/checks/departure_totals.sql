-- name: departure_totals
-- description: Departures that several connections sell count once, and days of occupancy add up to the departures they are made of.
with offered as materialized (
  select
    count(*) as departures,
    coalesce(sum(a.capacity) filter (where is_measured), 0) as capacity,
    coalesce(sum(case when is_measured then a.capacity - a.vacancies end), 0) as taken
  from (
    select
      counted.*,
      status is distinct from 'CLOSED' and capacity between 1 and 1000000000
        and vacancies between -1000000000 and capacity as is_measured
    from (
      select a.is_deleted, a.status, a.capacity, a.vacancies
      from core.availability a
      where a.connection_id not in (select connection_id from marts.supplier_connections where connections > 1)
      union all
      select a.is_deleted, a.status, a.capacity, a.vacancies
      from marts.shared_departures s
      join core.availability a
        on a.connection_id = s.connection_id and a.product_id = s.product_id and a.option_id = s.option_id
        and a.availability_id = s.availability_id
    ) as counted
    where not is_deleted
  ) as a
),
totals as (
  select 'shared_departures: departures' as what,
    (select cast(count(*) as numeric(38, 4)) from marts.shared_departures) as here,
    (select count(*) from (
      select distinct c.supplier_key, a.product_id, a.option_id, a.availability_id
      from core.availability a
      join marts.supplier_connections c on c.connection_id = a.connection_id and c.connections > 1
    ) as departures) as there
  union all
  select 'fct_departures: departures', (select count(*) from marts.fct_departures), departures from offered
  union all
  select 'agg_occupancy_daily: departures',
    (select coalesce(sum(departures), 0) from marts.agg_occupancy_daily), departures from offered
  union all
  select 'agg_occupancy_daily: taken', (select coalesce(sum(taken), 0) from marts.agg_occupancy_daily), taken
  from offered
  union all
  select 'agg_occupancy_daily: capacity', (select coalesce(sum(capacity), 0) from marts.agg_occupancy_daily), capacity
  from offered
)
select what, here, there from totals where here <> there
