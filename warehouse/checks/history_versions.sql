-- name: history_versions
-- description: Versions are half-open, without gap or overlap but for the time a row was gone, and the last one says what the row says.
with bookings as (
  select
    connection_id, booking_uuid as id, version_no, valid_from_utc, valid_to_utc, is_current, changed_fields,
    lead(version_no) over same as next_no, lead(valid_from_utc) over same as next_from,
    lead(changed_fields) over same as next_fields
  from core.booking_history
  window same as (partition by connection_id, booking_uuid order by version_no)
),
departures as (
  select
    connection_id, product_id || '|' || option_id || '|' || availability_id as id, version_no, valid_from_utc,
    valid_to_utc, is_current, changed_fields,
    lead(version_no) over same as next_no, lead(valid_from_utc) over same as next_from,
    lead(changed_fields) over same as next_fields
  from core.availability_history
  -- What differs most comes first: a third less time for the sorting.
  window same as (partition by availability_id, option_id, product_id, connection_id order by version_no)
),
prices as (
  -- Without numbers or a word why: one that is no longer told may come back, so a gap is no fault.
  select
    connection_id, product_id || '|' || option_id || '|' || unit_id || '|' || currency as id, valid_from_utc, valid_to_utc,
    is_current,
    lead(valid_from_utc) over (
      partition by connection_id, product_id, option_id, unit_id, currency order by valid_from_utc
    ) as next_from
  from core.unit_prices
),
versions as (
  select 'booking_history' as table_name, * from bookings union all select 'availability_history', * from departures
)
select table_name, connection_id, id, 'not half-open' as what
from versions
where is_current <> (valid_to_utc is null) or valid_to_utc < valid_from_utc or (is_current and next_no is not null)
union all
select table_name, connection_id, id, 'not numbered one by one'
from versions
where next_no <> version_no + 1 or (version_no = 1) <> (changed_fields = '')
union all
select table_name, connection_id, id, 'gap or overlap'
from versions
where next_from < valid_to_utc
  or (next_from > valid_to_utc and ',' || next_fields || ',' not like '%,is_deleted,%')
union all
select 'unit_prices', connection_id, id, 'not half-open'
from prices
where is_current <> (valid_to_utc is null) or valid_to_utc < valid_from_utc or (is_current and next_from is not null)
union all
select 'unit_prices', connection_id, id, 'overlap'
from prices
where next_from < valid_to_utc
union all
select 'booking_history', b.connection_id, b.booking_uuid, 'is not what the row says'
from core.bookings b
left join core.booking_history h
  on h.connection_id = b.connection_id and h.booking_uuid = b.booking_uuid and h.is_current
where b.is_deleted <> (h.is_current is null)
  or (not b.is_deleted and (
    b.status is distinct from h.status or b.local_date is distinct from h.local_date
    or b.product_id is distinct from h.product_id or b.option_id is distinct from h.option_id
    or b.retail_amount is distinct from h.retail_amount or b.net_amount is distinct from h.net_amount
    or b.currency is distinct from h.currency or b.pax_count is distinct from h.pax_count
  ))
union all
select 'availability_history', h.connection_id, h.product_id || '|' || h.option_id || '|' || h.availability_id,
  'is not what the row says'
from core.availability_history h
left join core.availability a
  on a.connection_id = h.connection_id and a.product_id = h.product_id and a.option_id = h.option_id
  and a.availability_id = h.availability_id
where h.is_current and (
  coalesce(a.is_deleted, true) or a.local_date is distinct from h.local_date or a.status is distinct from h.status
  or a.is_available is distinct from h.is_available or a.vacancies is distinct from h.vacancies
  or a.capacity is distinct from h.capacity
)
