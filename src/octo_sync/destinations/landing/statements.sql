-- What a landing asks of DuckDB, each statement named and described. Names in braces are put in by whoever asks: relations that
-- are given, and conditions about them.

-- name: found_again
-- Rows that answered for themselves are missed no longer; those that no list had missed are told.
delete from ops.absences a using ({there}) n
where a.connection_id = n.connection_id and a.table_name = n.table_name and a.key = n.key
returning a.connection_id, a.table_name, a.key, a.misses

-- name: hidden
-- Confirmed bookings that answered for themselves, each with the list that speaks for it, and that lacked it.
create or replace temp table hidden as select t.connection_id, t.booking_uuid, c.key from ({unlisted}) n
join core.bookings t on t.connection_id = n.connection_id and to_json([t.booking_uuid])::varchar = n.key and t.status = 'CONFIRMED'
join ops.coverage c on c.connection_id = t.connection_id and c.resource = 'bookings' and {speaks_for}

-- name: lists_that_hide
-- Where such a booking is confirmed still, on days of the same list, that list did not show all; its bytes are read next time.
update ops.coverage c set is_complete = false, answer_hash = null from hidden h, core.bookings t
where c.connection_id = h.connection_id and c.resource = 'bookings' and c.key = h.key
  and t.connection_id = h.connection_id and t.booking_uuid = h.booking_uuid and t.status = 'CONFIRMED' and not t.is_deleted
  and {speaks_for}

-- name: refused
-- Live rows that were not found by their own ids, each with the list that speaks for it. $4 is the kind of such an id. Where
-- lists of this service were seen to show what it does not find by id, they alone decide.
create or replace temp table refused as
select n.connection_id, n.key, n.request_seq, coalesce(c.resource, $4) as resource, coalesce(c.key, n.key) as subject_key,
  a.key is null and not (c.key is not null and exists (select 1 from ops.schema_drift d where d.connection_id = n.connection_id
  and d.resource = '{noun}' and d.kind = 'contradiction')) as is_new
from ({gone}) n
join {table} t on t.connection_id = n.connection_id and t.{id} = json_extract_string(n.key, '$[0]') and not t.is_deleted
left join ops.absences a on a.connection_id = n.connection_id and a.table_name = '{table}' and a.key = n.key
left join ops.coverage c on c.connection_id = t.connection_id and c.resource = '{noun}' and {speaks_for}
qualify row_number() over (partition by n.connection_id, n.key order by n.request_seq desc, c.request_seq desc nulls last) = 1

-- name: refused_again
update ops.absences a set misses = misses + 1, request_seq = r.request_seq from refused r
where a.connection_id = r.connection_id and a.table_name = '{table}' and a.key = r.key and r.request_seq > a.request_seq

-- name: refused_first
insert into ops.absences
select connection_id, '{table}', key, resource, subject_key, 1, request_seq, landing_now() from refused where is_new

-- name: read_their_lists
-- An equal list says what these rows are about, so its bytes must be read.
update ops.coverage c set answer_hash = null from refused r
where r.is_new and c.connection_id = r.connection_id and c.resource = r.resource and c.key = r.subject_key

-- name: missed
-- Live rows in the scope of complete answers that none of them had.
create or replace temp table missed as
select t.connection_id, {key} as key, {ask} as resource, {subject_key} as subject_key, {misses} as misses,
  max(p.request_seq) as request_seq
from {table} t join ({scope}) p on {within} where {going} group by all

-- name: newer
-- Its own document, asked for later than this answer, knows better (R6).
exists (select 1 from warehouse.ops.coverage c where c.connection_id = t.connection_id and c.resource = '{kind}' and c.key = {key}
  and (c.request_seq > p.request_seq {final}))

-- name: final
-- What changes no more is asked for by its own id once a month only.
or {final} and c.row_count > 0 and c.verified_at_utc > landing_now() - interval '30 days'

-- name: missed_again
-- A miss counts once per request (R7).
update warehouse.ops.absences a set misses = a.misses + m.misses, request_seq = m.request_seq, resource = m.resource,
  subject_key = m.subject_key
from missed m
where a.table_name = '{table}' and a.connection_id = m.connection_id and a.key = m.key and m.request_seq > a.request_seq

-- name: missed_first
insert into warehouse.ops.absences
select connection_id, '{table}', key, resource, subject_key, misses, request_seq, landing_now() from missed m
where not exists (select 1 from warehouse.ops.absences a
  where a.table_name = '{table}' and a.connection_id = m.connection_id and a.key = m.key)

-- name: missed_outside
-- Neither shown nor missed this time: it lies outside the days that are asked for now, such as yesterday. No answer will ever
-- prove anything about it.
delete from warehouse.ops.absences a using ({scope}) p
where a.table_name = '{table}' and a.connection_id = p.connection_id and a.resource = p.resource
  and a.subject_key = p.subject_key and a.request_seq < p.request_seq

-- name: shown_again
-- Rows that are in an answer again are missed no longer.
delete from warehouse.ops.absences a where table_name = '{table}' and exists
  (select 1 from ({shown}) t where t.connection_id = a.connection_id and {key} = a.key)
returning connection_id, resource

-- name: drift_again
-- $1 to $4 are the key of a finding, $5 how often it was seen.
update ops.schema_drift set seen_count = seen_count + $5, last_seen_at_utc = landing_now()
where connection_id = $1 and resource = $2 and kind = $3 and name = $4

-- name: listed_by_travel
-- What was taken for a list by day of booking is one by day of travel.
delete from ops.schema_drift where resource = 'bookings' and kind = 'meaning' and connection_id in (select unnest($1::varchar[]))

-- name: doubtful
-- Bookings of which a list has to decide: it must not take them for landed.
update core.bookings t set payload_digest = null, row_hash = null from ({doubtful}) d
where t.connection_id = d.connection_id and t.booking_uuid = d.booking_uuid

-- name: doubtful_own
-- Nor may an equal answer to their own id be left unread, when no list shows them.
update ops.coverage c set answer_hash = null from ({doubtful}) d
where c.connection_id = d.connection_id and c.resource = 'booking' and c.key = to_json([d.booking_uuid])::varchar

-- name: latest_payloads
-- The hash of the last payload of each of the keys $1: only hashes are compared.
select connection_id, resource, key, arg_max(payload_hash, fetched_at_utc) from personal.raw.records
where key in (select unnest($1::varchar[])) group by all

-- name: payloads
insert into personal.raw.records
select connection_id, resource, key, payload, payload_hash, fetched_at::timestamptz, source from changed_payloads

-- name: digests
-- Rows that stayed as they were may come from other bytes now: contacts are not in them, and texts are left alone.
update core.bookings t set payload_digest = s.payload_digest, contact_key = s.contact_key from staged_bookings s
where t.connection_id = s.connection_id and t.booking_uuid = s.uuid and t.row_hash is not null
  and (t.payload_digest is distinct from s.payload_digest or t.contact_key is distinct from s.contact_key)

-- name: forget_products
-- A product that came by one road makes the last answer of the other road old news.
update ops.coverage c set answer_hash = null
from (select distinct connection_id, resource from staged_products) s
where c.connection_id = s.connection_id and c.answer_hash is not null
  and (c.resource = 'products' and s.resource = 'product' or c.resource = 'product' and s.resource = 'products')

-- name: forget_own
-- A booking that a list brought: its own last answer is.
update ops.coverage c set answer_hash = null from staged_bookings s
where s.resource = 'bookings' and c.connection_id = s.connection_id and c.resource = 'booking' and c.answer_hash is not null
  and c.key = to_json([s.uuid])::varchar

-- name: forget_lists
-- A booking that came by its own id and changed: the lists that show it, or showed it, are.
update ops.coverage c set answer_hash = null
from (select s.connection_id, t.local_date, left(s.availability."localDateTimeStart", 10)::date as new_date,
    coalesce(t.utc_created_at, s."utcCreatedAt"::timestamptz)::date as created_date, o.travel_month as shown_in
  from staged_bookings s
  left join core.bookings t on t.connection_id = s.connection_id and t.booking_uuid = s.uuid
  left join ops.coverage o on o.connection_id = s.connection_id and o.resource = 'open_dated'
    and o.key = to_json([s.uuid])::varchar
  where s.resource = 'booking'
    and (t.payload_digest is null or t.payload_digest is distinct from s.payload_digest or t.is_deleted)) b
where c.connection_id = b.connection_id and c.resource = 'bookings' and c.answer_hash is not null
  and (b.local_date between c.window_start and c.window_end or b.new_date between c.window_start and c.window_end
    or b.created_date between c.window_start and c.window_end or b.shown_in = c.travel_month)

-- name: open_dated_equal
-- Of equal lists: what they verified, they verify again. $1 is the run.
update ops.coverage o set verified_at_utc = n.verified_at_utc, source = n.source, request_seq = n.request_seq, run_id = $1
from listing n where n.is_equal and {former} and o.request_seq < n.request_seq

-- name: open_dated_gone
-- Of other lists: what they showed before, they may show no more.
update ops.coverage o set travel_month = null from listing n where not n.is_equal and {former}

-- name: shown_bookings
-- The bookings that the lists showed, each by the list that showed it last.
create or replace temp table shown_bookings as
select n.*, t.local_date, to_json([t.booking_uuid])::varchar as key from ({shown}) s
join listing n using (connection_id, subject_key)
join core.bookings t on t.connection_id = s.connection_id and t.booking_uuid = s.booking_uuid
where not t.is_deleted
qualify row_number() over (partition by t.connection_id, t.booking_uuid order by n.request_seq desc) = 1

-- name: open_dated_forget
delete from ops.coverage o using shown_bookings n
where o.resource = 'open_dated' and o.connection_id = n.connection_id and o.key = n.key

-- name: open_dated_shown
-- Those without a day of travel; $1 is the run.
insert into ops.coverage (connection_id, resource, key, travel_month, verified_at_utc, source, row_count, is_complete,
  missing_capabilities, request_seq, run_id)
select connection_id, 'open_dated', key, travel_month, verified_at_utc, source, 1, true, missing_capabilities, request_seq, $1
from shown_bookings where local_date is null

-- name: still_missed
-- While rows are missed, an equal answer `n` must be looked at again: it may be the second proof.
exists (select 1 from ops.absences a where a.connection_id = n.connection_id and (a.resource = n.resource and
  a.subject_key = n.key or n.resource = 'products' and a.resource = 'product' or n.resource = 'bookings' and
  a.table_name = 'core.bookings'))

-- name: new_departures
-- The keys that are staged and not on their days, where they may be on others; one a row.
select distinct s.connection_id, s.product_id, s.option_id, s.id from staged_availability s
where not exists (select 1 from core.availability t where t.connection_id = s.connection_id and t.product_id = s.product_id
  and t.option_id = s.option_id and t.availability_id = s.id)

-- name: month_left
-- A month that a departure has left is no longer what its last answer said: an equal one is read again.
update ops.coverage t set answer_hash = null, row_count = greatest(0, t.row_count - m.live)
from (select c.connection_id, c.key, count(*) filter (not d.old_is_deleted) as live from {decided} d
  join ops.coverage c on c.resource = 'availability' and c.connection_id = d.connection_id and c.product_id = d.product_id
    and c.option_id = d.option_id and d.old_local_date between c.window_start and c.window_end
  where old_row is not null and date_trunc('month', old_local_date) <> date_trunc('month', local_date) group by all) m
where t.resource = 'availability' and t.connection_id = m.connection_id and t.key = m.key

-- name: buried
-- The keys to bury as columns. What was shown again since it was decided is not among them.
create or replace temp table buried as select n.connection_id, n.key, {parts} from ({absences}) n
join ops.absences a on a.table_name = '{table}' and a.connection_id = n.connection_id and a.key = n.key and a.misses >= n.misses

-- name: bury
update {table} t set is_deleted = true, deleted_at_utc = landing_now() from buried b where {same} and not t.is_deleted{future}

-- name: buried_absences
delete from ops.absences a using buried b
where a.table_name = '{table}' and a.connection_id = b.connection_id and a.key = b.key

-- name: absences_of_deleted
-- What hung on a buried row needs no proof of its own any more.
delete from ops.absences a where a.table_name = '{table}' and exists (select 1 from {table} t
  where t.connection_id = a.connection_id and t.is_deleted and {key} = a.key)

-- name: bury_details
delete from {table} t using buried b where {same} and exists (select 1 from {parent} p where {parent_key} and p.is_deleted)

-- name: bury_versions
update {table} t set is_current = false, valid_to_utc = greatest(landing_now(), t.valid_from_utc) from buried b
where {same} and t.is_current

-- name: departures_buried
-- Departures went with what they hang on, so their months' answers are no longer what is landed.
update ops.coverage t set answer_hash = null, row_count = least(t.row_count, n.live)
from (select t.connection_id, t.key, count(a.availability_id) as live from ops.coverage t join buried b on {same}
  left join core.availability a on a.connection_id = t.connection_id and a.product_id = t.product_id
    and a.option_id = t.option_id and a.local_date between t.window_start and t.window_end and not a.is_deleted
  where t.resource = 'availability' group by all) n
where t.resource = 'availability' and t.connection_id = n.connection_id and t.key = n.key

-- name: prune_versions
-- Former versions that ended before $1, on both engines. The newest one stays, also of a departure that is gone: should it come
-- back, its versions are counted on from there.
delete from core.availability_history h where valid_to_utc < $1 and exists (select 1 from core.availability_history n
  where n.connection_id = h.connection_id and n.product_id = h.product_id and n.option_id = h.option_id
  and n.availability_id = h.availability_id and n.version_no > h.version_no)

-- name: first_versions
-- Of every new row.
{into} select {keys}, 1, landing_now(), null, true, '', _source, {followed} from {work} where old_row is null

-- name: versioned
-- Rows that were there and are not what they were.
create or replace temp table versioned as
select {keys}, {followed}, {old}, old_is_deleted, old_deleted_at, old_seen, _source, concat_ws(',', {changed}) as changed_fields
from {work} where old_row is not null and ({differs})

-- name: end_versions
update {history} t set valid_to_utc = greatest(landing_now(), t.valid_from_utc), is_current = false
from versioned v where {same} and t.is_current{prune}

-- name: next_versions
-- A clock that was put back must not make versions overlap.
{into} with changes as (select v.*, t.last_no, coalesce(t.ended{first}) as ended from versioned v
  left join (select {history_keys}, max(t.version_no) as last_no, max(t.valid_to_utc) as ended from {history} t
    semi join versioned v on {same}{prune} group by all) t on {same}) {former}
select {keys}, coalesce(last_no, {before_first}) + 1, greatest(landing_now(), ended), null, true, changed_fields, _source,
  {followed} from changes

-- name: former_versions
-- What a row was before its first change.
select {keys}, 1, old_seen, ended, false, '', '', {old} from changes where last_no is null union all

-- name: end_buried_versions
-- The version of every row of the table `followed` that is marked as deleted now.
update {history} t set valid_to_utc = greatest(landing_now(), t.valid_from_utc), is_current = false
from buried b where {buried} and t.is_current and exists (select 1 from {followed} p where {same} and p.is_deleted)

-- name: begin_anew
-- What a row was before it was last written is not known, so the version begins there.
{into} select {keys}, 1, last_seen_at_utc,
  case when is_deleted then greatest(deleted_at_utc, last_seen_at_utc) end, not is_deleted, '', '', {followed}
from warehouse.{table}

-- name: make_rows
-- Rows of a table that was lost, from their newest versions. They say that they are older.
insert into warehouse.{table} ({keys}, {followed}, first_seen_at_utc, last_seen_at_utc, is_deleted, deleted_at_utc, stale_columns)
select {keys}, {followed}, valid_from_utc, valid_from_utc, not is_current, valid_to_utc, '*' from {history}
qualify version_no = max(version_no) over (partition by {keys})

-- name: unlisted
-- The bookings of connection $1, known by their rows or by their payloads, that no list of days $2 to $3 shows.
with known as (
  select booking_uuid as uuid, case when {by_booking} then {booked_on} else local_date end as day from core.bookings t
  where connection_id = $1 and not is_deleted
  union all
  select key, try_cast(left(arg_max(payload, fetched_at_utc)->'availability'->>'localDateTimeStart', 10) as date)
  from {private}raw.records r where connection_id = $1 and resource = 'booking' and not exists
    (select 1 from core.bookings t where t.connection_id = $1 and t.booking_uuid = r.key) group by key)
select uuid from known where day is null or day not between $2 and $3 order by uuid

-- name: older_rows
-- Rows that were spared are older as a whole; without a hash, so that the same again is news.
update {table} t set stale_columns = '*', row_hash = null from spared s where {same}

-- name: older_details
-- The rows that own these details say that they are older.
update {owner} t set row_hash = null, stale_columns = concat_ws(',', t.stale_columns, {entry})
from (select distinct {keys} from {rows}) s
where {same} and not list_contains(string_split(coalesce(t.stale_columns, ''), ','), {entry})

-- name: stage
-- The spool $1 as a relation. DuckDB reserves memory by the longest line that it is told to expect.
create or replace temp table staged_{noun} as select * exclude (r), unnest(r)
from (select * exclude ({lists}), {beside}unnest(records) as r from read_json($1, format = 'newline_delimited', records = 'true',
  columns = {columns}, maximum_object_size = {longest}))

-- name: decide_rows
-- What becomes of a table's rows: `i` came, and those that are there are joined to them.
select {values}, i.row_hash, t.rowid as old_row, t.first_seen_at_utc as old_seen, {losing}, i.connection_id is null as gone
from (select *, (hash({hashed}) >> 1)::bigint as row_hash from ({incoming})) i {there}{prune} where {differs}

-- name: in_scope
-- Every row that the answers speak for, to be joined.
full join (select t.rowid, t.*{told} from {table} t semi join ({near}) p on {scope}) t on {same}

-- name: details_there
-- The details of rows that were there and changed, where the answers may say something about them.
(select t.rowid, t.* from {table} t semi join (from {owner} where old_row is not null) p on {same}
  semi join (select {keys} from staged_{noun} r{asked}) a on {asked_same}) t

-- name: decide_details
select {values}, t.rowid as old_row, {losing}, i.connection_id is null as gone
from (select i.* from {came}) i full join {there} on {same} where {differs}

-- name: decide_versions
select {values}, t.rowid as old_row, {losing}, i.connection_id is null as gone
from (select distinct on ({key}) * from ({incoming})) i
full join (select t.rowid, t.* from {table} t semi join ({near}) p on {scope} where t.is_current) t on {same}
where i.connection_id is null or t.connection_id is null or {differs}

-- name: counted
-- How many of the decided rows are new, how many go, and in how many a value would be lost.
select count(*) filter (old_row is null), count(*) filter (gone), count(*) filter (lost <> '') from {decided}
