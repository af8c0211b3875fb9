-- name: mart_totals
-- description: Joining names multiplies or loses no row, and aggregates add up to the facts they are made of, per currency.
with facts as materialized (
  select
    currency, is_sold, is_cancelled, travel_date, lead_days, pax_count, original_amount, retail_amount, net_amount,
    tax_amount
  from marts.fct_bookings
),
curve as materialized (
  select days_out, pax_on_books, final_pax from marts.agg_pickup_curve
),
daily as materialized (
  select
    currency, sum(bookings) as bookings, sum(sold) as sold, sum(cancelled) as cancelled, sum(pax) as pax,
    sum(original_amount) as original_amount, sum(retail_amount) as retail_amount, sum(net_amount) as net_amount,
    sum(tax_amount) as tax_amount, sum(margin_amount) as margin_amount
  from marts.agg_bookings_daily
  group by currency
),
booked as materialized (
  select
    currency, count(*) as bookings, count(*) filter (where is_sold) as sold,
    count(*) filter (where is_cancelled) as cancelled, sum(pax_count) filter (where is_sold) as pax,
    sum(original_amount) filter (where is_sold) as original_amount,
    sum(retail_amount) filter (where is_sold) as retail_amount, sum(net_amount) filter (where is_sold) as net_amount,
    sum(tax_amount) filter (where is_sold) as tax_amount, sum(retail_amount - net_amount) filter (where is_sold) as margin_amount
  from facts
  group by currency
),
pairs as (
  select d.currency, m.measure, m.amount as here, cast(null as numeric(38, 4)) as there
  from daily d
  cross join lateral (values
    ('bookings', cast(d.bookings as numeric(38, 4))), ('sold', d.sold), ('cancelled', d.cancelled), ('pax', d.pax),
    ('original_amount', d.original_amount), ('retail_amount', d.retail_amount), ('net_amount', d.net_amount),
    ('tax_amount', d.tax_amount), ('margin_amount', d.margin_amount)
  ) as m(measure, amount)
  union all
  select b.currency, m.measure, null, m.amount
  from booked b
  cross join lateral (values
    ('bookings', cast(b.bookings as numeric(38, 4))), ('sold', b.sold), ('cancelled', b.cancelled), ('pax', b.pax),
    ('original_amount', b.original_amount), ('retail_amount', b.retail_amount), ('net_amount', b.net_amount),
    ('tax_amount', b.tax_amount), ('margin_amount', b.margin_amount)
  ) as m(measure, amount)
),
-- A departure that several connections of a supplier sell is counted through one of them.
offered as materialized (
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
      left join marts.supplier_connections c on c.connection_id = a.connection_id
      where coalesce(c.connections, 1) = 1
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
  select 'fct_bookings: bookings' as what, cast(null as text) as currency,
    (select cast(count(*) as numeric(38, 4)) from facts) as here,
    (select cast(count(*) as numeric(38, 4)) from core.bookings where not is_deleted and not is_test) as there
  union all
  select 'fct_guests: tickets', null,
    (select count(*) from marts.fct_guests),
    (select count(*) from core.booking_unit_items i
      join core.bookings b on b.connection_id = i.connection_id and b.booking_uuid = i.booking_uuid
      where not i.is_deleted and not b.is_deleted and not b.is_test)
  union all
  select 'shared_departures: departures', null, (select count(*) from marts.shared_departures),
    (select count(*) from (
      select distinct c.supplier_key, a.product_id, a.option_id, a.availability_id
      from core.availability a
      join marts.supplier_connections c on c.connection_id = a.connection_id and c.connections > 1
    ) as departures)
  union all
  select 'fct_departures: departures', null, (select count(*) from marts.fct_departures), departures from offered
  union all
  select 'agg_occupancy_daily: departures', null,
    (select coalesce(sum(departures), 0) from marts.agg_occupancy_daily), departures from offered
  union all
  select 'agg_occupancy_daily: taken', null, (select coalesce(sum(taken), 0) from marts.agg_occupancy_daily), taken
  from offered
  union all
  select 'agg_occupancy_daily: capacity', null, (select coalesce(sum(capacity), 0) from marts.agg_occupancy_daily), capacity
  from offered
  union all
  select 'agg_bookings_daily: ' || measure, currency, coalesce(sum(here), 0), coalesce(sum(there), 0)
  from pairs
  group by measure, currency
  union all
  select 'agg_pickup_curve: final_pax', null,
    (select coalesce(sum(final_pax), 0) from curve where days_out = 0),
    (select coalesce(sum(pax_count), 0) from facts where is_sold and travel_date is not null)
  union all
  select 'agg_pickup_curve: pax_on_books', null,
    (select coalesce(sum(pax_on_books), 0) from curve),
    (select coalesce(sum(b.pax_count), 0)
      from facts b
      join (select distinct days_out from curve) d on d.days_out <= b.lead_days
      where b.is_sold and b.travel_date is not null)
)
select what, currency, here, there from totals where here <> there
