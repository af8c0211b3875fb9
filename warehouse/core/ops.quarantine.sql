-- name: ops.quarantine
-- grain: One subject or one field of one record.
-- description: Subjects that keep failing and records that do not fit, with the reason; everything else went on.
-- key: connection_id, resource, key, path
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.quarantine (
  connection_id text not null,
  resource      text not null,
  key           text not null,
  path          text not null,
  reason        text,
  seen_count    bigint,
  first_at_utc  timestamptz,
  last_at_utc   timestamptz
);
comment on table ops.quarantine is 'Subjects that keep failing and records that do not fit, with the reason; everything else went on. One row: one subject or one field of one record.';
comment on column ops.quarantine.connection_id is 'The connection.';
comment on column ops.quarantine.resource is 'Kind of the subject or record.';
comment on column ops.quarantine.key is 'Its key.';
comment on column ops.quarantine.path is 'Where in the record; '''' for a whole subject.';
comment on column ops.quarantine.reason is 'Why, in a sentence; never a value.';
comment on column ops.quarantine.seen_count is 'How often.';
comment on column ops.quarantine.first_at_utc is 'First seen.';
comment on column ops.quarantine.last_at_utc is 'Last seen.';
