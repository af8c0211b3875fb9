-- name: data_quality
-- grain: One rule and field of one departure, booking or product.
-- description: What the service says although it cannot be so. It is in the copy as it was said, and stops nothing. Test bookings are left out.
-- column: rule: more_vacancies_than_capacity, oversold (fewer than 0 places left), capacity_below_zero, no_ticket, stands_twice (an entry of a list, as a ticket or a price) or date_out_of_range (before 1970 or after 2199).
-- column: field: The column it is about; for stands_twice the lists of the record, comma-separated.
-- column: value: What stands there; null for stands_twice.
-- column: since: Since when the copy says so: for vacancies and capacity as far back as versions are kept, else since the row was last written, which is at the latest.
with departures as (
  select *
  from core.availability
  where not is_deleted and (
    vacancies > capacity or vacancies < 0 or capacity < 0 or repeated is not null
    or local_date not between date '1970-01-01' and date '2199-12-31'
    or utc_cutoff_at not between timestamptz '1970-01-01 00:00:00+00' and timestamptz '2199-12-31 23:59:59+00'
  )
),
counted as (
  select d.connection_id, d.product_id, d.option_id, d.availability_id, d.first_seen_at_utc, r.rule, r.field, r.value
  from departures d
  cross join lateral (values
    ('more_vacancies_than_capacity', 'vacancies', d.vacancies, d.vacancies > d.capacity),
    ('oversold', 'vacancies', d.vacancies, d.vacancies < 0),
    ('capacity_below_zero', 'capacity', d.capacity, d.capacity < 0)
  ) as r(rule, field, value, is_so)
  where r.is_so
),
found as (
  select
    c.connection_id, c.product_id, c.option_id, c.availability_id, cast(null as text) as booking_uuid, c.rule, c.field,
    cast(c.value as text) as value,
    -- Since the last version that was otherwise, or since it came back; what has no versions has never changed.
    coalesce(
      greatest(
        max(h.valid_to_utc) filter (where not coalesce(
          case c.rule
            when 'oversold' then h.vacancies < 0 when 'capacity_below_zero' then h.capacity < 0
            else h.vacancies > h.capacity end, false)),
        max(h.valid_from_utc) filter (where ',' || h.changed_fields || ',' like '%,is_deleted,%')
      ),
      min(h.valid_from_utc), c.first_seen_at_utc
    ) as since
  from counted c
  left join core.availability_history h
    on h.connection_id = c.connection_id and h.product_id = c.product_id and h.option_id = c.option_id
    and h.availability_id = c.availability_id
  group by
    c.connection_id, c.product_id, c.option_id, c.availability_id, c.rule, c.field, c.value, c.first_seen_at_utc
  union all
  select
    d.connection_id, d.product_id, d.option_id, d.availability_id, null, 'date_out_of_range', r.field,
    cast(r.day as text), d.last_seen_at_utc
  from departures d
  cross join lateral (values
    ('local_date', d.local_date), ('utc_cutoff_at', cast(d.utc_cutoff_at at time zone 'UTC' as date))
  ) as r(field, day)
  where r.day not between date '1970-01-01' and date '2199-12-31'
  union all
  select
    d.connection_id, d.product_id, d.option_id, d.availability_id, null, 'stands_twice', d.repeated, null,
    d.last_seen_at_utc
  from departures d
  where d.repeated is not null
  union all
  select
    b.connection_id, b.product_id, b.option_id, b.availability_id, b.booking_uuid, 'date_out_of_range', r.field,
    cast(r.day as text), b.last_seen_at_utc
  from core.bookings b
  cross join lateral (values
    ('local_date', b.local_date),
    ('utc_created_at', cast(b.utc_created_at at time zone 'UTC' as date)),
    ('utc_updated_at', cast(b.utc_updated_at at time zone 'UTC' as date)),
    ('utc_expires_at', cast(b.utc_expires_at at time zone 'UTC' as date)),
    ('utc_confirmed_at', cast(b.utc_confirmed_at at time zone 'UTC' as date)),
    ('utc_redeemed_at', cast(b.utc_redeemed_at at time zone 'UTC' as date)),
    ('utc_cancelled_at', cast(b.utc_cancelled_at at time zone 'UTC' as date))
  ) as r(field, day)
  where not b.is_deleted and not b.is_test and r.day not between date '1970-01-01' and date '2199-12-31'
  union all
  select
    b.connection_id, b.product_id, b.option_id, b.availability_id, b.booking_uuid, r.rule, r.field, r.value,
    b.last_seen_at_utc
  from core.bookings b
  cross join lateral (values
    ('no_ticket', 'unit_count', '0', b.unit_count = 0), ('stands_twice', b.repeated, null, b.repeated is not null)
  ) as r(rule, field, value, is_so)
  where not b.is_deleted and not b.is_test and r.is_so
  union all
  select connection_id, product_id, null, null, null, 'stands_twice', repeated, null, last_seen_at_utc
  from core.products
  where not is_deleted and repeated is not null
)
select
  f.connection_id,
  f.product_id,
  coalesce(p.title, p.internal_name, f.product_id) as product_name,
  f.option_id,
  f.availability_id,
  f.booking_uuid,
  f.rule,
  f.field,
  f.value,
  f.since
from found f
left join core.products p on p.connection_id = f.connection_id and p.product_id = f.product_id
