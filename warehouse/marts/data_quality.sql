-- name: data_quality
-- grain: One rule and field of one departure, booking or product.
-- description: What the service says although it cannot be so. It is in the copy as it was said where a column can hold it, and stops nothing. Test bookings are left out.
-- column: product_name: Title, else internal name, else id.
-- column: availability_id: OCTO availability id, unique inside its option only; null where it is about a product.
-- column: rule: more_vacancies_than_capacity, oversold (fewer than 0 places left), capacity_below_zero, not_countable (beyond a billion), no_ticket, unknown_status (none of OCTO's: such a booking counts as sold in no mart), other_time_zone (the start has an offset that its venue has not, so its day may be another one), no_departure (sold and still to travel, on a day whose departures were all read since, and no connection of its supplier shows the one it names: it counts in no departure's our_bookings), stands_twice (an entry of a list, as a ticket or a price: the last one counts; extras and taxes, which have no id, are added up), unknown_time_zone or date_out_of_range (before 1970 or after 2199).
-- column: field: The column it is about, or the field of the record where no column can hold it.
-- column: value: What stands there; null where no column can hold it.
-- column: since: Since when the copy says so: for vacancies and capacity as far back as versions are kept; for the rest since the row was last written, and it may have said so before.
with departures as (
  select *
  from core.availability
  where not is_deleted and (
    vacancies > capacity or vacancies < 0 or capacity < 0 or vacancies > 1000000000 or capacity > 1000000000
    or oddities is not null or local_date not between date '1970-01-01' and date '2199-12-31'
    or utc_cutoff_at not between timestamptz '1970-01-01 00:00:00+00' and timestamptz '2199-12-31 23:59:59+00'
  )
),
bookings as (
  select * from core.bookings where not is_deleted and not is_test
),
counted as (
  select d.connection_id, d.product_id, d.option_id, d.availability_id, d.first_seen_at_utc, r.rule, r.field, r.value
  from departures d
  cross join lateral (values
    ('more_vacancies_than_capacity', 'vacancies', d.vacancies, d.vacancies > d.capacity),
    ('oversold', 'vacancies', d.vacancies, d.vacancies < 0),
    ('not_countable', 'vacancies', d.vacancies, d.vacancies not between -1000000000 and 1000000000),
    ('capacity_below_zero', 'capacity', d.capacity, d.capacity < 0),
    ('not_countable', 'capacity', d.capacity, d.capacity > 1000000000)
  ) as r(rule, field, value, is_so)
  where r.is_so
),
versions as (
  select
    c.rule, c.field, h.*,
    case
      when c.rule = 'oversold' then h.vacancies < 0
      when c.rule = 'capacity_below_zero' then h.capacity < 0
      when c.rule = 'more_vacancies_than_capacity' then h.vacancies > h.capacity
      when c.field = 'vacancies' then h.vacancies not between -1000000000 and 1000000000
      else h.capacity > 1000000000
    end as is_so
  from counted c
  join core.availability_history h
    on h.connection_id = c.connection_id and h.product_id = c.product_id and h.option_id = c.option_id
    and h.availability_id = c.availability_id
),
began as (
  select
    connection_id, product_id, option_id, availability_id, rule, field,
    -- When the last version ended that was otherwise, or when it came back.
    coalesce(
      greatest(
        max(case when not coalesce(is_so, false) then valid_to_utc end),
        max(case when ',' || changed_fields || ',' like '%,is_deleted,%' then valid_from_utc end)
      ),
      min(valid_from_utc)
    ) as since
  from versions
  group by connection_id, product_id, option_id, availability_id, rule, field
),
dated as (
  select d.connection_id, d.product_id, d.option_id, d.availability_id, null as booking_uuid, d.last_seen_at_utc, r.field, r.day
  from departures d
  cross join lateral (values
    ('local_date', d.local_date), ('utc_cutoff_at', cast(d.utc_cutoff_at at time zone 'UTC' as date))
  ) as r(field, day)
  union all
  select b.connection_id, b.product_id, b.option_id, b.availability_id, b.booking_uuid, b.last_seen_at_utc, r.field, r.day
  from bookings b
  cross join lateral (values
    ('local_date', b.local_date),
    ('utc_created_at', cast(b.utc_created_at at time zone 'UTC' as date)),
    ('utc_updated_at', cast(b.utc_updated_at at time zone 'UTC' as date)),
    ('utc_expires_at', cast(b.utc_expires_at at time zone 'UTC' as date)),
    ('utc_confirmed_at', cast(b.utc_confirmed_at at time zone 'UTC' as date)),
    ('utc_redeemed_at', cast(b.utc_redeemed_at at time zone 'UTC' as date)),
    ('utc_cancelled_at', cast(b.utc_cancelled_at at time zone 'UTC' as date))
  ) as r(field, day)
),
noted as (
  select connection_id, product_id, option_id, availability_id, null as booking_uuid, last_seen_at_utc, oddities
  from departures
  union all
  select connection_id, product_id, option_id, availability_id, booking_uuid, last_seen_at_utc, oddities from bookings
  union all
  select connection_id, product_id, null, null, null, last_seen_at_utc, oddities from core.products where not is_deleted
),
adrift as (
  select b.*, gone.deleted_at_utc as gone_at_utc
  from bookings b
  join marts.dim_channel c on c.connection_id = b.connection_id and c.is_active
  join ops.coverage v
    on v.connection_id = b.connection_id and v.resource = 'availability' and v.product_id = b.product_id
    and v.option_id = b.option_id and v.is_complete and b.local_date between v.window_start and v.window_end
    -- Before that the departure may have been new.
    and v.verified_at_utc >= b.last_seen_at_utc
  left join core.availability gone
    on gone.connection_id = b.connection_id and gone.product_id = b.product_id and gone.option_id = b.option_id
    and gone.availability_id = b.availability_id
  where b.status in ('CONFIRMED', 'REDEEMED', 'NOSHOW') and b.utc_start_at > c.last_verified_at_utc
    and b.availability_id is not null and not coalesce(b.is_freesale, false)
    and not exists (
      select 1
      from core.availability a
      join marts.supplier_connections s on s.connection_id = a.connection_id
      where s.supplier_key = c.supplier_key and a.product_id = b.product_id and a.option_id = b.option_id
        and a.availability_id = b.availability_id and not a.is_deleted
    )
),
zoned as (
  select
    connection_id, product_id, option_id, availability_id, null as booking_uuid, last_seen_at_utc, local_date, local_start_at,
    utc_start_at, time_zone
  from core.availability
  where not is_deleted
  union all
  select
    connection_id, product_id, option_id, availability_id, booking_uuid, last_seen_at_utc, local_date, local_start_at,
    utc_start_at, time_zone
  from bookings
),
found as (
  select
    c.connection_id, c.product_id, c.option_id, c.availability_id, cast(null as text) as booking_uuid, c.rule, c.field,
    cast(c.value as text) as value,
    -- What has no versions has never changed.
    coalesce(s.since, c.first_seen_at_utc) as since
  from counted c
  left join began s
    on s.connection_id = c.connection_id and s.product_id = c.product_id and s.option_id = c.option_id
    and s.availability_id = c.availability_id and s.rule = c.rule and s.field = c.field
  union all
  select
    connection_id, product_id, option_id, availability_id, booking_uuid, 'date_out_of_range', field, cast(day as text),
    last_seen_at_utc
  from dated
  where day not between date '1970-01-01' and date '2199-12-31'
  union all
  select
    connection_id, product_id, option_id, availability_id, booking_uuid, 'no_ticket', 'unit_count', '0', last_seen_at_utc
  from bookings
  where unit_count = 0
  union all
  select
    connection_id, product_id, option_id, availability_id, booking_uuid, 'unknown_status', 'status', status, last_seen_at_utc
  from bookings
  where status not in ('ON_HOLD', 'PENDING', 'CONFIRMED', 'REDEEMED', 'NOSHOW', 'CANCELLED', 'EXPIRED', 'REJECTED')
  union all
  select
    connection_id, product_id, option_id, availability_id, booking_uuid, 'other_time_zone', 'local_start_at',
    replace(cast(local_start_at as text), 'T', ' '), last_seen_at_utc -- Sail writes a T
  from zoned
  where local_date between date '1970-01-01' and date '2199-12-31'
    and date_trunc('minute', utc_start_at at time zone time_zone) <> date_trunc('minute', local_start_at)
  union all
  select
    connection_id, product_id, option_id, availability_id, booking_uuid, 'no_departure', 'availability_id', availability_id,
    greatest(last_seen_at_utc, gone_at_utc)
  from adrift
  union all
  select
    n.connection_id, n.product_id, n.option_id, n.availability_id, n.booking_uuid, split_part(o.note, ':', 1),
    split_part(o.note, ':', 2), null, n.last_seen_at_utc
  from noted n
  cross join lateral (select unnest(string_to_array(n.oddities, ',')) as note) o
  where n.oddities is not null
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
