-- name: raw.records
-- grain: One payload of one supplier, product or booking.
-- description: Payloads as received, one row per changed payload: personal data, only in the private file.
-- key: connection_id, resource, key, fetched_at_utc
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists raw.records (
  connection_id  text not null,
  resource       text not null,
  key            text not null,
  payload        text,
  payload_hash   text,
  fetched_at_utc timestamptz not null,
  source         text
);
comment on table raw.records is 'Payloads as received, one row per changed payload: personal data, only in the private file. One row: one payload of one supplier, product or booking.';
comment on column raw.records.connection_id is 'The connection.';
comment on column raw.records.resource is 'supplier, product or booking.';
comment on column raw.records.key is 'Its id; for a product with the language.';
comment on column raw.records.payload is 'JSON as received.';
comment on column raw.records.payload_hash is 'Hash of its bytes.';
comment on column raw.records.fetched_at_utc is 'When it was received.';
comment on column raw.records.source is 'notification, schedule, confirm, repair or user.';
