-- name: ops.absences
-- grain: One row of one table.
-- description: Rows that complete answers no longer had; two misses by different requests prove a deletion.
-- key: connection_id, table_name, key
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.absences (
  connection_id       text not null,
  table_name          text not null,
  key                 text not null,
  resource            text,
  subject_key         text,
  misses              integer,
  request_seq         bigint,
  first_missed_at_utc timestamptz
);
comment on table ops.absences is 'Rows that complete answers no longer had; two misses by different requests prove a deletion. One row: one row of one table.';
comment on column ops.absences.connection_id is 'The connection.';
comment on column ops.absences.table_name is 'The table, with schema.';
comment on column ops.absences.key is 'JSON array of the row''s key, without the connection.';
comment on column ops.absences.resource is 'Kind of the subject that is asked again.';
comment on column ops.absences.subject_key is 'Key of the subject that is asked again.';
comment on column ops.absences.misses is 'How many different requests did not show it.';
comment on column ops.absences.request_seq is 'The last of them.';
comment on column ops.absences.first_missed_at_utc is 'When it was first missed.';
