-- name: standing
-- description: What the copy is worth: its own now, what it spans, when the part verified longest ago was verified, what is open. One row.
with channels as (
  select
    count(*) as connections,
    max(as_of_date) as as_of_date,
    max(last_verified_at_utc) as last_verified_at_utc,
    count(case when last_verified_at_utc is null then 1 end) as never_verified,
    -- What is known of all of them. One that lists by day of booking knows no day of travel completely.
    case when count(bookings_from) = count(booked_from) then max(bookings_from) end as bookings_from,
    max(booked_from) as booked_from,
    min(bookings_to) as bookings_to,
    min(booked_from) as begins,
    min(business_time_zone) as time_zone,
    count(distinct business_time_zone) as time_zones
  from marts.dim_channel
  where is_active
),
slots as (
  select max(first_day) as availability_from, min(last_day) as availability_to
  from (
    select c.supplier_key, min(v.window_start) as first_day, max(v.window_end) as last_day
    from ops.coverage v
    join marts.dim_channel c on c.connection_id = v.connection_id and c.is_active
    where v.resource = 'availability'
    group by c.supplier_key
  ) as suppliers
),
fresh as (
  select
    min(case when f.resource in ('supplier', 'products', 'availability', 'bookings', 'open_dated', 'unlisted') then f.oldest_verified_at end)
      as oldest_verified_at_utc,
    cast(sum(f.open_subjects) as bigint) as open_subjects,
    cast(sum(f.incomplete_subjects) as bigint) as incomplete_subjects,
    -- A booking or product that is missed is so in its list too.
    cast(sum(case when f.resource not in ('booking', 'product') then f.missed_rows else 0 end) as bigint) as missed_rows,
    min(case when f.is_complete then 1 else 0 end) = 1 as is_complete
  from marts.sync_freshness f
  join marts.dim_channel c on c.connection_id = f.connection_id and c.is_active
),
products as (
  select count(*) as products from marts.dim_product where sold_through <> ''
),
tests as (
  select count(*) as test_bookings from core.bookings where is_test and not is_deleted
)
select *
from channels
cross join slots
cross join fresh
cross join products
cross join tests
