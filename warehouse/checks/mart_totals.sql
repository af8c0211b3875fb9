-- name: mart_totals
-- description: Joining names multiplies or loses no row, and aggregates add up to the facts they are made of, per currency.
with totals as (
  select 'fct_bookings: bookings' as what, cast(null as text) as currency,
    (select cast(count(*) as numeric(38, 4)) from marts.fct_bookings) as here,
    (select cast(count(*) as numeric(38, 4)) from core.bookings where not is_deleted and not is_test) as there
  union all
  select 'fct_guests: tickets', null,
    (select count(*) from marts.fct_guests),
    (select count(*) from core.booking_unit_items i
      join core.bookings b on b.connection_id = i.connection_id and b.booking_uuid = i.booking_uuid
      where not i.is_deleted and not b.is_deleted and not b.is_test)
  union all
  select 'fct_departures: departures', null,
    (select count(*) from marts.fct_departures),
    (select count(*) from core.availability where not is_deleted)
  union all
  select 'agg_occupancy_daily: departures', null,
    (select coalesce(sum(departures), 0) from marts.agg_occupancy_daily),
    (select count(*) from core.availability where not is_deleted)
  union all
  select 'agg_occupancy_daily: taken', null,
    (select coalesce(sum(taken), 0) from marts.agg_occupancy_daily),
    (select coalesce(sum(capacity - vacancies), 0) from core.availability
      where not is_deleted and status is distinct from 'CLOSED' and capacity > 0 and vacancies <= capacity)
  union all
  select 'agg_bookings_daily: bookings', coalesce(d.currency, b.currency), coalesce(d.bookings, 0), coalesce(b.bookings, 0)
  from (select currency, sum(bookings) as bookings from marts.agg_bookings_daily group by currency) d
  full join (select coalesce(currency, '?') as currency, count(*) as bookings from marts.fct_bookings
    group by coalesce(currency, '?')) b on b.currency = coalesce(d.currency, '?')
  union all
  select 'agg_bookings_daily: retail_amount', coalesce(d.currency, b.currency), coalesce(d.retail_amount, 0),
    coalesce(b.retail_amount, 0)
  from (select currency, sum(retail_amount) as retail_amount from marts.agg_bookings_daily group by currency) d
  full join (select coalesce(currency, '?') as currency, sum(retail_amount) as retail_amount from marts.fct_bookings
    where is_sold group by coalesce(currency, '?')) b on b.currency = coalesce(d.currency, '?')
)
select what, currency, here, there from totals where here <> there
