-- name: core.suppliers
-- grain: One supplier of one connection.
-- description: The company whose products a connection sells. Its contact data is a company's, not a person's.
-- key: connection_id, supplier_id
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.suppliers (
  connection_id     text not null,
  supplier_id       text not null,
  name              text,
  endpoint          text,
  website           text,
  email             text,
  telephone         text,
  address           text,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint,
  stale_columns     text
);
comment on table core.suppliers is 'The company whose products a connection sells. Its contact data is a company''s, not a person''s. One row: one supplier of one connection.';
comment on column core.suppliers.connection_id is 'The connection it was seen through.';
comment on column core.suppliers.supplier_id is 'OCTO supplier id.';
comment on column core.suppliers.name is 'Name.';
comment on column core.suppliers.endpoint is 'Base URL the supplier states.';
comment on column core.suppliers.website is 'Web site.';
comment on column core.suppliers.email is 'Public e-mail address.';
comment on column core.suppliers.telephone is 'Public telephone number.';
comment on column core.suppliers.address is 'Postal address.';
comment on column core.suppliers.first_seen_at_utc is 'When this row was first stored.';
comment on column core.suppliers.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.suppliers.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.suppliers.deleted_at_utc is 'When the deletion was proven.';
comment on column core.suppliers.row_hash is 'Hash of the row''s content as received.';
comment on column core.suppliers.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
