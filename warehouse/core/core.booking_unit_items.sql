-- name: core.booking_unit_items
-- grain: One ticket of one booking.
-- description: The tickets of a booking. Their status is as reported; the booking's status is the authoritative one.
-- key: connection_id, booking_uuid, unit_item_uuid
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.booking_unit_items (
  connection_id      text not null,
  unit_item_uuid     text not null,
  booking_uuid       text not null,
  unit_id            text,
  unit_type          text,
  status             text,
  supplier_reference text,
  reseller_reference text,
  utc_redeemed_at    timestamptz,
  pax_count          bigint,
  currency           text,
  currency_precision integer,
  retail_minor       bigint,
  retail_amount      numeric(18,4),
  net_minor          bigint,
  net_amount         numeric(18,4),
  first_seen_at_utc  timestamptz,
  last_seen_at_utc   timestamptz,
  is_deleted         boolean,
  deleted_at_utc     timestamptz,
  row_hash           bigint,
  stale_columns      text
);
comment on table core.booking_unit_items is 'The tickets of a booking. Their status is as reported; the booking''s status is the authoritative one. One row: one ticket of one booking.';
comment on column core.booking_unit_items.connection_id is 'The connection it was seen through.';
comment on column core.booking_unit_items.unit_item_uuid is 'OCTO unit item uuid.';
comment on column core.booking_unit_items.booking_uuid is 'OCTO booking uuid.';
comment on column core.booking_unit_items.unit_id is 'OCTO unit id.';
comment on column core.booking_unit_items.unit_type is 'ADULT, CHILD, …; null where the service leaves the unit out.';
comment on column core.booking_unit_items.status is 'Status of the ticket as reported.';
comment on column core.booking_unit_items.supplier_reference is 'The supplier''s reference.';
comment on column core.booking_unit_items.reseller_reference is 'The reseller''s reference.';
comment on column core.booking_unit_items.utc_redeemed_at is 'When it was used.';
comment on column core.booking_unit_items.pax_count is 'People it admits; null where not told.';
comment on column core.booking_unit_items.currency is 'ISO 4217 code.';
comment on column core.booking_unit_items.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.booking_unit_items.retail_minor is 'The retail price in minor units.';
comment on column core.booking_unit_items.retail_amount is 'The retail price, exact.';
comment on column core.booking_unit_items.net_minor is 'The net price in minor units.';
comment on column core.booking_unit_items.net_amount is 'The net price, exact.';
comment on column core.booking_unit_items.first_seen_at_utc is 'When this row was first stored.';
comment on column core.booking_unit_items.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.booking_unit_items.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.booking_unit_items.deleted_at_utc is 'When the deletion was proven.';
comment on column core.booking_unit_items.row_hash is 'Hash of the row''s content as received.';
comment on column core.booking_unit_items.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
