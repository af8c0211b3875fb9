-- name: mart_totals
-- description: Joining names multiplies or loses no booking, and aggregates add up to the facts they are made of, per currency.
with facts as materialized (
  select
    currency, is_sold, is_cancelled, travel_date, lead_days, pax_count, original_amount, retail_amount, net_amount,
    tax_amount
  from marts.fct_bookings
),
curve as materialized (
  select days_out, guests_on_books, final_guests from marts.agg_pickup_curve
),
daily as materialized (
  select
    currency, sum(bookings) as bookings, sum(sold) as sold, sum(cancelled) as cancelled, sum(guests) as guests,
    sum(original_amount) as original_amount, sum(retail_amount) as retail_amount, sum(net_amount) as net_amount,
    sum(tax_amount) as tax_amount, sum(margin_amount) as margin_amount
  from marts.agg_bookings_daily
  group by currency
),
booked as materialized (
  select
    currency, count(*) as bookings, count(*) filter (where is_sold) as sold,
    count(*) filter (where is_cancelled) as cancelled, sum(pax_count) filter (where is_sold) as guests,
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
    ('bookings', cast(d.bookings as numeric(38, 4))), ('sold', d.sold), ('cancelled', d.cancelled), ('guests', d.guests),
    ('original_amount', d.original_amount), ('retail_amount', d.retail_amount), ('net_amount', d.net_amount),
    ('tax_amount', d.tax_amount), ('margin_amount', d.margin_amount)
  ) as m(measure, amount)
  union all
  select b.currency, m.measure, null, m.amount
  from booked b
  cross join lateral (values
    ('bookings', cast(b.bookings as numeric(38, 4))), ('sold', b.sold), ('cancelled', b.cancelled), ('guests', b.guests),
    ('original_amount', b.original_amount), ('retail_amount', b.retail_amount), ('net_amount', b.net_amount),
    ('tax_amount', b.tax_amount), ('margin_amount', b.margin_amount)
  ) as m(measure, amount)
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
  select 'agg_bookings_daily: ' || measure, currency, coalesce(sum(here), 0), coalesce(sum(there), 0)
  from pairs
  group by measure, currency
  union all
  select 'agg_pickup_curve: final_guests', null,
    (select coalesce(sum(final_guests), 0) from curve where days_out = 0),
    (select coalesce(sum(pax_count), 0) from facts where is_sold and travel_date is not null)
  union all
  select 'agg_pickup_curve: guests_on_books', null,
    (select coalesce(sum(guests_on_books), 0) from curve),
    (select coalesce(sum(b.pax_count), 0)
      from facts b
      join (select distinct days_out from curve) d on d.days_out <= b.lead_days
      where b.is_sold and b.travel_date is not null)
)
select what, currency, here, there from totals where here <> there
