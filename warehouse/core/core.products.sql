-- name: core.products
-- grain: One product of one connection.
-- description: What the supplier sells.
-- key: connection_id, product_id
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.products (
  connection_id         text not null,
  product_id            text not null,
  internal_name         text,
  title                 text,
  reference             text,
  locale                text,
  time_zone             text,
  availability_type     text,
  availability_required boolean,
  allow_freesale        boolean,
  instant_confirmation  boolean,
  instant_delivery      boolean,
  redemption_method     text,
  delivery_formats      text,
  delivery_methods      text,
  default_currency      text,
  available_currencies  text,
  pricing_per           text,
  oddities              text,
  first_seen_at_utc     timestamptz,
  last_seen_at_utc      timestamptz,
  is_deleted            boolean,
  deleted_at_utc        timestamptz,
  row_hash              bigint,
  stale_columns         text
);
comment on table core.products is 'What the supplier sells. One row: one product of one connection.';
comment on column core.products.connection_id is 'The connection it was seen through.';
comment on column core.products.product_id is 'OCTO product id.';
comment on column core.products.internal_name is 'The supplier''s own name for it.';
comment on column core.products.title is 'Name for travellers (capability content).';
comment on column core.products.reference is 'The supplier''s reference.';
comment on column core.products.locale is 'Language of the texts, BCP 47.';
comment on column core.products.time_zone is 'IANA time zone of the venue.';
comment on column core.products.availability_type is 'START_TIME or OPENING_HOURS.';
comment on column core.products.availability_required is 'Whether a booking needs a slot.';
comment on column core.products.allow_freesale is 'Whether it can be booked without a slot.';
comment on column core.products.instant_confirmation is 'Whether confirming is immediate.';
comment on column core.products.instant_delivery is 'Whether tickets come at once.';
comment on column core.products.redemption_method is 'DIGITAL, PRINT or MANIFEST.';
comment on column core.products.delivery_formats is 'JSON array of ticket formats.';
comment on column core.products.delivery_methods is 'JSON array of VOUCHER, TICKET.';
comment on column core.products.default_currency is 'ISO 4217 (capability pricing).';
comment on column core.products.available_currencies is 'JSON array of ISO 4217 codes (capability pricing).';
comment on column core.products.pricing_per is 'UNIT or BOOKING.';
comment on column core.products.oddities is 'What its record said and no column can hold, rule:field, comma-separated: see marts.data_quality. Null: nothing.';
comment on column core.products.first_seen_at_utc is 'When this row was first stored.';
comment on column core.products.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.products.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.products.deleted_at_utc is 'When the deletion was proven.';
comment on column core.products.row_hash is 'Hash of the row''s content as received.';
comment on column core.products.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
