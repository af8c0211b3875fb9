-- name: ops.schema_drift
-- grain: One finding of one connection.
-- description: What services send that no table expects, or send no more: new fields and values, fields that are missing, ignored capabilities, lists and ids that contradict each other.
-- key: connection_id, resource, kind, name
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.schema_drift (
  connection_id     text not null,
  resource          text not null,
  kind              text not null,
  name              text not null,
  seen_count        bigint,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  accepted_at_utc   timestamptz
);
comment on table ops.schema_drift is 'What services send that no table expects, or send no more: new fields and values, fields that are missing, ignored capabilities, lists and ids that contradict each other. One row: one finding of one connection.';
comment on column ops.schema_drift.connection_id is 'The connection.';
comment on column ops.schema_drift.resource is 'Noun.';
comment on column ops.schema_drift.kind is 'field, missing, value, capability, meaning, count, contradiction or hidden.';
comment on column ops.schema_drift.name is 'The field''s path, field=value, capability or remark.';
comment on column ops.schema_drift.seen_count is 'How many answers or rows showed it.';
comment on column ops.schema_drift.first_seen_at_utc is 'First seen.';
comment on column ops.schema_drift.last_seen_at_utc is 'Last seen.';
comment on column ops.schema_drift.accepted_at_utc is 'Of what is missing: when `octo-sync drift --accept` let it through. Null: the former values are kept.';
