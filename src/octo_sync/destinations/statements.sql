-- What is asked of warehouses beside landings, each statement named and described; in the words that both engines share, but
-- for those of comparisons and of files, which DuckDB alone is asked.

-- name: covered
-- The last landing of the subjects $1, $2, $3.
select connection_id, resource, key, request_seq, answer_hash, window_start, window_end, row_count from ops.coverage
where (connection_id, resource, key) in (select unnest($1::varchar[]), unnest($2::varchar[]), unnest($3::varchar[]))

-- name: known_bookings
-- What live bookings of the connection $1 were landed from, which travel on the days $2 to $3 or were made on $4 to $5. Ranges and
-- no function of the column, so that an index finds them.
select payload_digest, booking_uuid, local_date, utc_created_at::date from core.bookings
where connection_id = $1 and payload_digest is not null and not is_deleted
  and (local_date between $2 and $3 or utc_created_at >= $4::date and utc_created_at < $5::date)

-- name: prune_payloads
-- Those from before $1, but for the newest of each key.
delete from {private}raw.records r where fetched_at_utc < $1 and exists (select 1 from {private}raw.records n
  where n.connection_id = r.connection_id and n.resource = r.resource and n.key = r.key
  and n.fetched_at_utc > r.fetched_at_utc)

-- name: payloads_of_bookings
-- Every payload of the bookings $1.
select connection_id, key, payload_hash, payload, fetched_at_utc, source from {records}
where resource = 'booking' and key in (select unnest($1::varchar[])) order by 1, 2, 5

-- name: repeats
-- How many contacts still hold the text $1, or payloads the text $2.
select (select count(*) from {contacts} where {there})
  + (select count(*) from {records} where position(lower($2) in lower(payload)) > 0)

-- name: addressed
-- The bookings with references or a reason of cancellation that hold one of the signs $1 to $4, and these texts.
select connection_id, booking_uuid, said from (
  select connection_id, booking_uuid, concat_ws(' ', supplier_reference, reseller_reference, cancellation_reason) as said
  from core.bookings union all
  select connection_id, booking_uuid, concat_ws(' ', supplier_reference, reseller_reference) from core.booking_unit_items) t
where position($1 in said) > 0 or position($2 in said) > 0 or position($3 in said) > 0 or position($4 in said) > 0

-- name: change_contacts
-- Give contacts the values of `k`. One with `erased_at_utc` is gone for good. $1 is now.
update {contacts} as t set {values}, row_hash = 0, is_deleted = k.erased_at_utc is not null or t.is_deleted,
  deleted_at_utc = case when k.erased_at_utc is not null then $1::timestamptz else t.deleted_at_utc end
from ({given}) k where {same} returning 1

-- name: add_contacts
-- Those of them that are not there.
insert into {contacts} ({columns}, first_seen_at_utc, last_seen_at_utc, is_deleted, deleted_at_utc, row_hash)
select {columns}, $1::timestamptz, $1::timestamptz, k.erased_at_utc is not null, k.erased_at_utc, 0 from ({given}) k
where not exists (select 1 from {contacts} t where {same}) returning 1

-- name: named_bookings
-- The bookings of any connection that have one of the uuids `k`.
select connection_id, booking_uuid from core.bookings join ({given}) k on booking_uuid = k.uuid
union select connection_id, booking_uuid from {contacts} join ({given}) k on booking_uuid = k.uuid
union select connection_id, key from {records} join ({given}) k on key = k.uuid where resource = 'booking'

-- name: scrub_bookings
update core.bookings as t set contact_key = case when k.loses_key then null else t.contact_key end,
  cancellation_reason = k.cancellation_reason, supplier_reference = k.supplier_reference,
  reseller_reference = k.reseller_reference, payload_digest = null
from ({given}) k where {same} returning 1

-- name: scrub_items
update core.booking_unit_items as t set supplier_reference = k.supplier_reference, reseller_reference = k.reseller_reference
from ({given}) k where {same} returning 1

-- name: look_anew
-- Trust no answer that feeds the private file to be landed already.
update ops.coverage set answer_hash = null where answer_hash is not null and (resource <> 'availability'
  or exists (select 1 from personal.raw.records r where r.resource = 'availability'))

-- name: duckdb_tables
-- Every table and view of a read copy, marts first, with its columns and what both mean.
select c.schema_name, c.table_name, case when v.view_name is null then 'table' else 'view' end,
  coalesce(t.comment, v.comment, ''), c.column_name, c.data_type, coalesce(c.comment, '')
from duckdb_columns() c
left join duckdb_tables() t on t.database_oid = c.database_oid and t.table_oid = c.table_oid
left join duckdb_views() v on v.database_oid = c.database_oid and v.view_oid = c.table_oid
where c.database_name = 'octo' and not c.internal
order by list_position(['marts', 'core', 'ops'], c.schema_name) nulls last, 1, 2, c.column_index

-- name: duckdb_columns
-- Names and types of the columns of each table of the file $1, in order.
select schema_name || '.' || table_name, column_name, data_type from duckdb_columns()
where database_name = $1 order by table_oid, column_index

-- name: windows_asked
-- The windows of bookings that complete answers speak for.
select c.connection_id, {by_booking}, c.window_start, c.window_end from ops.coverage c
where c.resource = 'bookings' and c.is_complete and c.window_start is not null

-- name: bookings_in
-- The live bookings of a copy that lie in one of the windows.
select distinct t.connection_id, t.booking_uuid from here.core.bookings t
join ({windows}) w on w.connection_id = t.connection_id
  and case when w.by_booking then {booked_on} else t.local_date end between w.first and w.last
where not t.is_deleted order by all

-- name: products_in
-- The live products of a copy.
select connection_id, product_id from here.core.products where not is_deleted

-- name: bookings_unlisted
-- Those that no list has to show and a service still keeps: of the connections $1, on the days $2 to $3, and with $4 those
-- without a day of travel.
select connection_id, booking_uuid from here.core.bookings
where not is_deleted and status not in ('CANCELLED', 'EXPIRED', 'REJECTED')
  and (local_date is null and $4 or connection_id in (select unnest($1::varchar[])) and local_date between $2 and $3)
order by all

-- name: booking_scope
-- A booking counts as asked for when the fresh pull has it, when a list of it had to show it, or when its own id was asked for.
create temp table booking_scope as
select connection_id, booking_uuid from fresh.core.bookings
union
select t.connection_id, t.booking_uuid from here.core.bookings t join fresh.ops.coverage c
  on c.connection_id = t.connection_id and c.resource = 'bookings' and c.is_complete and {speaks_for} where not t.is_deleted
union
select t.connection_id, t.booking_uuid from here.core.bookings t join fresh.ops.coverage c
  on c.connection_id = t.connection_id and c.resource = 'booking' and c.is_complete
  and c.key = to_json([t.booking_uuid])::varchar where not t.is_deleted

-- name: lacking
-- The capabilities that fresh answers lacked, by connection and noun.
select distinct connection_id, case resource when 'product' then 'products' when 'booking' then 'bookings' else resource end,
  unnest(string_split(missing_capabilities, ','))
from fresh.ops.coverage

-- name: fresh_totals
-- Bookings and money at the service, over all statuses.
select currency, count(*), sum(retail_amount), max(currency_precision) from fresh.core.bookings t
where not is_deleted and currency is not null group by 1 order by 1

-- name: found
-- The rows that are not the same, `h` here and `f` at the service; `is_kept`, because a value is kept that is not compared.
create or replace temp table found as
select {text} as key, h.{first} is null as not_here, f.{first} is null as not_there,
  list_filter([{named}]::varchar[], lambda x: x is not null) as names,
  h.{first} is not null and f.{first} is not null and ({kept}) as is_kept
from {here} h full join {fresh} f on {same} where h.{first} is null or f.{first} is null or {differs}

-- name: accept_missing
-- What is kept at a path is let go.
update ops.schema_drift set accepted_at_utc = timestamptz '{now}'
where connection_id = {connection} and kind = 'missing' and resource = {noun}
  and (name = {path} or starts_with(name, {below}))

-- name: keeps_values
-- Live rows that keep values of a field, of what is still asked for.
select 1 from {owner} t where t.connection_id = {connection} and not t.is_deleted
  and string_to_array(t.stale_columns, ',') && {marks} and {asked}

-- name: booking_asked
-- Whether a row `t` is of a booking that is still asked for.
exists (select 1 from core.bookings b, (select date '{since}' as window_start, date '9999-12-31' as window_end) w
  where b.connection_id = t.connection_id and b.booking_uuid = t.booking_uuid and not b.is_deleted
  and (b.local_date is null or {speaks_for}))

-- name: list_lacks
-- Lists that were without a capability, of what is still asked for.
select 1 from ops.coverage c where c.connection_id = {connection} and c.resource = {noun}
  and string_to_array(c.missing_capabilities, ',') && {path} and (c.window_end is null or c.window_end >= date '{since}')
  and (c.option_id is null or exists (select 1 from core.options o where o.connection_id = c.connection_id
    and o.product_id = c.product_id and o.option_id = c.option_id and not o.is_deleted))

-- name: open_bookings
-- The live bookings in the states $1 that travel on $2 or later, with the moment each was verified last: by its own look, by a
-- list that had to show it, or, open-dated, by the one that did. One whose own id was not found the last time is left to its list.
select b.connection_id, b.booking_uuid, b.status, b.local_date, b.utc_expires_at,
  greatest(b.verified_at_utc, o.verified_at_utc, max(w.verified_at_utc), max(d.verified_at_utc))
from core.bookings b
left join ops.coverage o on o.connection_id = b.connection_id and o.resource = 'booking'
  and o.key = '["' || b.booking_uuid || '"]'
left join ops.coverage w on w.connection_id = b.connection_id and w.resource = 'bookings' and {speaks_for}
left join ops.coverage d on d.connection_id = b.connection_id and d.resource = 'open_dated'
  and d.key = '["' || b.booking_uuid || '"]' and b.local_date is null
where b.status = any($1) and not b.is_deleted and (b.local_date is null or b.local_date >= $2)
  and not coalesce(o.row_count = 0 and o.is_complete and o.verified_at_utc >= b.verified_at_utc, false)
group by b.connection_id, b.booking_uuid, b.status, b.local_date, b.utc_expires_at, b.verified_at_utc, o.verified_at_utc

-- name: unshown_bookings
-- The live bookings without a day of travel that are in no answer on record, neither a list's nor their own, or there with their
-- uuid in another case, too.
select b.connection_id, b.booking_uuid from core.bookings b
left join ops.coverage c on c.connection_id = b.connection_id and c.resource in ('booking', 'open_dated') and c.is_complete
  and c.row_count > 0 and c.key = '["' || b.booking_uuid || '"]'
where b.local_date is null and not b.is_deleted and not b.is_test and (c.key is null or (b.connection_id, lower(b.booking_uuid)) in
  (select connection_id, lower(booking_uuid) from core.bookings where local_date is null and not is_deleted
  group by 1, 2 having count(*) > 1)) order by 1, 2
