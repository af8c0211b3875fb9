-- What is asked where a warehouse is in PostgreSQL, each statement named and described.

-- name: postgres_tables
-- Every table and view in the schemas $1, in their order, with its columns and what both mean.
select n.nspname::text, c.relname::text, case when c.relkind in ('v', 'm') then 'view' else 'table' end,
  coalesce(obj_description(c.oid, 'pg_class'), ''), a.attname::text, format_type(a.atttypid, a.atttypmod),
  coalesce(col_description(c.oid, a.attnum), '')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname = any($1) and c.relkind in ('r', 'p', 'v', 'm')
order by array_position($1, n.nspname::text), 2, a.attnum

-- name: postgres_columns
-- Types of the columns of each of our tables.
select n.nspname || '.' || c.relname, a.attname, format_type(a.atttypid, a.atttypmod) from pg_attribute a
join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped
  and n.nspname in ('core', 'landing', 'ops', 'private', 'raw')

-- name: postgres_bytes
-- Bytes of the tables in the schemas $1, with their indexes.
select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = any($1) and c.relkind in ('r', 'm')

-- name: marts
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = 'marts' and c.relkind in ('r', 'v', 'm') order by 1

-- name: mart_tables
-- The marts that are tables, as SQL names them.
select oid::regclass::text from pg_class where relkind = 'r' and relnamespace = to_regnamespace('marts')

-- name: users_of_schema
-- Views and the like outside the schema $1 that read one inside: dropping it would drop them.
select distinct un.nspname || '.' || u.relname from pg_depend d
join pg_rewrite r on r.oid = d.objid and d.classid = 'pg_rewrite'::regclass
join pg_class u on u.oid = r.ev_class join pg_namespace un on un.oid = u.relnamespace
join pg_class m on m.oid = d.refobjid and d.refclassid = 'pg_class'::regclass
join pg_namespace mn on mn.oid = m.relnamespace
where mn.nspname = $1 and un.nspname <> $1 order by 1

-- name: grants_on_schema
-- What others may do with the schema `marts`: right, who, and whether they may give it on.
select a.privilege_type, case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end,
  case when a.is_grantable then ' with grant option' else '' end
from pg_namespace n, aclexplode(n.nspacl) a where n.nspname = 'marts' and a.grantee <> n.nspowner

-- name: grants_on_marts
-- The same of each mart.
select c.relname, a.privilege_type, case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end,
  case when a.is_grantable then ' with grant option' else '' end
from pg_class c join pg_namespace n on n.oid = c.relnamespace, aclexplode(c.relacl) a
where n.nspname = 'marts' and c.relkind in ('r', 'v', 'm') and a.grantee <> c.relowner

-- name: grants_by_default
-- The same of what is made there, and by whom. What is given by default of what another role makes is not ours to give, and
-- nothing of what we make.
select quote_ident(pg_get_userbyid(d.defaclrole)), a.privilege_type,
  case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end,
  case when a.is_grantable then ' with grant option' else '' end, d.defaclrole = current_user::regrole
from pg_default_acl d join pg_namespace n on n.oid = d.defaclnamespace, aclexplode(d.defaclacl) a
where n.nspname = 'marts' and d.defaclobjtype = 'r' and a.grantee <> d.defaclrole
  and pg_has_role(current_user, d.defaclrole, 'member')

-- name: note_changes
-- What notes the rows that a statement changed, by the keys that its trigger names.
create function landing.note() returns trigger language plpgsql as $note$ begin
  execute format('insert into landing.changed select distinct %L, array[%s] from touched', tg_table_name, tg_argv[0]);
  return null; end $note$

-- name: thin_changes
-- Note once what is noted often: where nobody publishes, or checks fail, notes grow with each landing. Nothing is lost to a
-- publish that is being made: what it has taken is left to it, and what is noted anew it does not see.
with often as (select name, key from landing.changed group by name, key having count(*) > 1),
gone as (
  delete from landing.changed where ctid = any(array(
    select c.ctid from landing.changed c join often using (name, key) for update of c skip locked
  )) returning name, key
)
insert into landing.changed select distinct name, key from gone

-- name: options_landed_before
-- Those of the options $2, $3, $4 that a run before $1 landed something of.
select distinct connection_id, product_id, option_id from ops.coverage
where resource = 'availability' and run_id <> $1
  and (connection_id, product_id, option_id) in (select * from unnest($2::text[], $3::text[], $4::text[]))

-- name: newest_payloads
-- The condition for the newest payload `t` of each key.
(t.connection_id, t.resource, t.key) in (select * from unnest(%s::text[], %s::text[], %s::text[]))
and not exists (select 1 from raw.records n where n.connection_id = t.connection_id and n.resource = t.resource
  and n.key = t.key and n.fetched_at_utc > t.fetched_at_utc)

-- name: coverage_concerned
-- The condition for what was verified `t` of the answers' subjects, of the lists, and of every booking that is concerned.
t.connection_id = any(%s) and (t.resource in ('supplier', 'products', 'product', 'bookings', 'open_dated')
  or t.resource in ('availability', 'booking') and t.key = any(%s) or t.resource = 'booking' and t.request_seq > %s)

-- name: read_rows
-- On DuckDB: rows as the server has copied them. Everything is told, for what DuckDB finds out by itself it may take from inside a
-- text, such as line ends; and by itself it takes one buffer as large as the file.
insert into {target} select * from read_csv($1, columns = {columns}, auto_detect = false, header = false, delim = ',',
  quote = '"', escape = '"', nullstr = '', allow_quoted_nulls = false, new_line = '\n', parallel = false,
  max_line_size = {longest}, buffer_size = {longest})

-- name: differing
-- On DuckDB: the keys of rows that came, changed or went since they were brought, by their hashes: comparing whole rows costs
-- four times as much.
create or replace temp table differing as select {keys}, bool_or(was_there) as was_there
from (select {keys}, row, sum(side) as surplus, bool_or(side < 0) as was_there
  from (select {keys}, hash({columns}) as row, -1 as side from {before}
    union all select {keys}, hash({columns}), 1 from {now}) group by all)
group by {keys} having bool_or(surplus <> 0)

-- name: end_still
-- Ends landings of ours that wait for rows of a COPY for longer than a transaction may stand still: the server itself ends only
-- those that stand still between two statements.
select pg_terminate_backend(pid) from pg_stat_activity a
where datname = current_database() and usename = current_user and state = 'active' and wait_event = 'ClientRead'
  and query_start < now() - current_setting('idle_in_transaction_session_timeout')::interval
  and exists (select from pg_locks l where l.pid = a.pid and l.relation = 'landing.writer'::regclass and l.mode = 'RowExclusiveLock')

-- name: session
-- What a session begins with; {lock_timeout} and {stuck_after} are milliseconds. A machine that vanished must not hold its locks
-- until TCP gives up. Departures and their bookings share few options: merged by these, each is compared with hundreds of others.
set timezone = 'UTC';
set datestyle = 'ISO, YMD';
set client_min_messages = 'warning';
set standard_conforming_strings = on;
set lock_timeout = {lock_timeout};
set search_path = marts, core, ops, public;
set tcp_keepalives_idle = 30;
set tcp_keepalives_interval = 10;
set tcp_keepalives_count = 3;
set idle_in_transaction_session_timeout = {stuck_after};
set idle_session_timeout = 0;
set enable_mergejoin = off
