-- A warehouse the size of a busy operator's, made by SQL alone, for benchmarks/warehouse.py. Runs on both engines.
-- 50 products × 2 options × 500 days × 20 departures = 1,000,000; 40,000 bookings with 3 tickets each.
insert into core.connections (connection_id, role, channel, base_url, supplier_id, business_time_zone, capabilities, is_active)
values ('main', 'reseller', 'Direct', 'https://example.com', 's', 'Europe/Lisbon', 'pricing', true);

insert into core.suppliers (connection_id, supplier_id, name, is_deleted) values ('main', 's', 'Example', false);

insert into core.products
  (connection_id, product_id, internal_name, title, time_zone, default_currency, first_seen_at_utc, is_deleted)
select 'main', 'p' || i, 'Product ' || i, 'Tour ' || i, 'Europe/Lisbon', 'EUR', timestamptz '2026-06-01 00:00:00+00', false
from generate_series(1, 50) as g(i);

insert into core.options (connection_id, product_id, option_id, internal_name, title, is_deleted)
select 'main', 'p' || i, 'o' || o, 'Option ' || o, 'Option ' || o, false
from generate_series(1, 50) as g(i) cross join generate_series(1, 2) as h(o);

insert into core.units (connection_id, product_id, option_id, unit_id, unit_type, title, pax_count, is_deleted)
select 'main', 'p' || i, 'o' || o, 'u' || u, case u when 1 then 'ADULT' else 'CHILD' end, 'Unit ' || u, 1, false
from generate_series(1, 50) as g(i) cross join generate_series(1, 2) as h(o) cross join generate_series(1, 2) as k(u);

-- Five prices of each unit.
insert into core.unit_prices
  (connection_id, product_id, option_id, unit_id, currency, currency_precision, original_minor, original_amount,
  retail_minor, retail_amount, net_minor, net_amount, valid_from_utc, valid_to_utc, is_current)
select connection_id, product_id, option_id, unit_id, 'EUR', 2, v, v * 0.01, v, v * 0.01, v, v * 0.01,
  timestamptz '2026-06-01 00:00:00+00' + v * interval '30 days',
  case when v < 5 then timestamptz '2026-07-01 00:00:00+00' + v * interval '30 days' end, v = 5
from core.units cross join generate_series(1, 5) as g(v);

insert into core.availability
  (connection_id, product_id, option_id, availability_id, local_start_at, local_date, time_zone, utc_start_at, status,
  is_available, vacancies, capacity, is_deleted)
select 'main', 'p' || i, 'o' || (1 + s % 2), '2026-' || d || '-' || s,
  timestamp '2026-08-01 08:00:00' + d * interval '1 day' + s * interval '15 minutes',
  date '2026-08-01' + cast(d as integer), 'Europe/Lisbon',
  timestamptz '2026-08-01 07:00:00+00' + d * interval '1 day' + s * interval '15 minutes',
  case when (i * 7 + d * 13 + s) % 29 = 0 then 'CLOSED' when (i + d + s) % 11 = 0 then 'SOLD_OUT' else 'AVAILABLE' end,
  true, case when (i + d + s) % 11 = 0 then 0 else (i * 31 + d * 17 + s * 7) % 21 end, 20, false
from generate_series(0, 499) as g(d) cross join generate_series(1, 50) as h(i) cross join generate_series(0, 39) as k(s);

-- Every tenth departure changed once, some 800 of them a day.
insert into core.availability_history
  (connection_id, product_id, option_id, availability_id, version_no, valid_from_utc, valid_to_utc, is_current,
  changed_fields, source, local_date, status, is_available, vacancies, capacity)
select connection_id, product_id, option_id, availability_id, v,
  case when v = 1 then timestamptz '2026-06-01 00:00:00+00'
    else timestamptz '2026-11-20 00:00:00+00' - (local_date - date '2026-08-01') % 120 * interval '1 day' end,
  case when v = 1
    then timestamptz '2026-11-20 00:00:00+00' - (local_date - date '2026-08-01') % 120 * interval '1 day' end,
  v = 2, case when v = 1 then '' else 'vacancies' end, 'schedule', local_date, status, is_available,
  case when v = 1 then vacancies + 1 else vacancies end, capacity
from core.availability cross join generate_series(1, 2) as g(v)
where product_id in ('p1', 'p2', 'p3', 'p4', 'p5');

insert into core.bookings
  (connection_id, booking_uuid, status, is_test, product_id, option_id, availability_id, local_start_at, local_date,
  time_zone, utc_created_at, utc_confirmed_at, utc_cancelled_at, currency, currency_precision, original_minor,
  original_amount, retail_minor, retail_amount, net_minor, net_amount, tax_minor, tax_amount, unit_count, pax_count,
  verified_at_utc, first_seen_at_utc, is_deleted)
select 'main', 'b' || n,
  case n % 10 when 0 then 'CANCELLED' when 1 then 'EXPIRED' when 2 then 'REDEEMED' else 'CONFIRMED' end,
  n % 50 = 0, 'p' || (1 + n % 50), 'o' || (1 + n % 2), '2026-' || (n % 301) || '-' || (n % 40),
  timestamp '2026-08-01 08:00:00' + n % 301 * interval '1 day' + n % 40 * interval '15 minutes',
  date '2026-08-01' + cast(n % 301 as integer), 'Europe/Lisbon',
  timestamptz '2026-07-04 10:00:00+00' + n % 140 * interval '1 day',
  timestamptz '2026-07-04 10:10:00+00' + n % 140 * interval '1 day',
  case when n % 10 = 0 then timestamptz '2026-07-06 10:00:00+00' + n % 140 * interval '1 day' end, 'EUR', 2,
  n % 9000, (n % 9000) * 0.01, n % 9000, (n % 9000) * 0.01, n % 7000, (n % 7000) * 0.01, 0, 0, 3, 3,
  timestamptz '2026-11-20 12:00:00+00', timestamptz '2026-06-01 00:00:00+00', false
from generate_series(0, 39999) as g(n);

-- Each booking changed once, some 290 of them a day.
insert into core.booking_history
  (connection_id, booking_uuid, version_no, valid_from_utc, valid_to_utc, is_current, changed_fields, source, status,
  local_date, product_id, option_id, retail_amount, net_amount, currency, pax_count)
select b.connection_id, b.booking_uuid, v,
  case when v = 1 then timestamptz '2026-06-01 00:00:00+00' else b.utc_confirmed_at end,
  case when v = 1 then b.utc_confirmed_at end, v = 2, case when v = 1 then '' else 'status' end, 'schedule',
  case when v = 1 then 'ON_HOLD' else b.status end, b.local_date, b.product_id, b.option_id, b.retail_amount,
  b.net_amount, b.currency, b.pax_count
from core.bookings b cross join generate_series(1, 2) as g(v);

insert into core.booking_unit_items
  (connection_id, booking_uuid, unit_item_uuid, unit_id, unit_type, status, pax_count, currency, currency_precision,
  retail_minor, retail_amount, net_minor, net_amount, is_deleted)
select 'main', 'b' || n, 'i' || n || '-' || k, 'u' || (1 + k % 2), case k % 2 when 0 then 'ADULT' else 'CHILD' end,
  'CONFIRMED', 1, 'EUR', 2, 100, 1.00, 80, 0.80, false
from generate_series(0, 39999) as g(n) cross join generate_series(1, 3) as h(k);

insert into ops.coverage
  (connection_id, resource, key, product_id, option_id, travel_month, window_start, window_end, verified_at_utc, source,
  row_count, is_complete, request_seq)
select 'main', 'availability', product_id || option_id || substr(cast(local_date as text), 1, 7), product_id, option_id,
  substr(cast(local_date as text), 1, 7), min(local_date), max(local_date), timestamptz '2026-11-20 12:00:00+00',
  'schedule', count(*), true, 1
from core.availability
group by product_id, option_id, substr(cast(local_date as text), 1, 7);

insert into ops.coverage
  (connection_id, resource, key, travel_month, window_start, window_end, verified_at_utc, source, row_count, is_complete,
  request_seq)
select 'main', 'bookings', substr(cast(local_date as text), 1, 7), substr(cast(local_date as text), 1, 7),
  min(local_date), max(local_date), timestamptz '2026-11-20 12:00:00+00', 'schedule', count(*), true, 1
from core.bookings
group by substr(cast(local_date as text), 1, 7);
