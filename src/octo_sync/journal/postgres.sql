-- What is asked of PostgreSQL alone, each statement named and described.

-- name: session
-- What a session begins with; {patience} is milliseconds. The last two lines are what `INDEXED BY` is for SQLite. Every statement
-- of the journal finds few rows by an index; with the usual settings a notification about one product read all 50,000 subjects as
-- soon as the table had statistics (4 → 48 ms).
SET search_path TO journal;
SET TIME ZONE 'UTC';
SET synchronous_commit TO {commit};
SET default_transaction_isolation TO 'read committed';
SET lock_timeout TO {patience};
SET idle_in_transaction_session_timeout TO 30000; SET idle_session_timeout TO 0;
SET tcp_keepalives_idle TO 10; SET tcp_keepalives_interval TO 5; SET tcp_keepalives_count TO 3;
SET enable_hashjoin TO off; SET enable_mergejoin TO off; SET enable_seqscan TO off; SET enable_bitmapscan TO off;
SET enable_sort TO off; SET jit TO off

-- name: has_tables
-- Asked of the catalogue itself: `to_regclass` answers from a cache that has not heard of what was made while a transaction waited
-- for another writer.
SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = 'journal' AND tablename = 'schema_version')

-- name: size
SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_catalog.pg_class
WHERE relnamespace = 'journal'::regnamespace AND relkind = 'r'

-- name: holders
-- How many sessions share an advisory lock.
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND mode = 'ShareLock' AND classid = {ours}
AND objid = {lease} AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
