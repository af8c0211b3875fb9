-- name: core.bookings
-- grain: One booking of one connection.
-- description: Bookings that this token may see. No name, address or note of a person is in it.
-- key: connection_id, booking_uuid
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.bookings (
  connection_id       text not null,
  booking_uuid        text not null,
  booking_id          text,
  status              text,
  is_test             boolean,
  supplier_reference  text,
  reseller_reference  text,
  product_id          text,
  option_id           text,
  availability_id     text,
  local_start_at      timestamp,
  local_date          date,
  time_zone           text,
  utc_start_at        timestamptz,
  is_freesale         boolean,
  is_cancellable      boolean,
  utc_created_at      timestamptz,
  utc_updated_at      timestamptz,
  utc_expires_at      timestamptz,
  utc_confirmed_at    timestamptz,
  utc_redeemed_at     timestamptz,
  utc_cancelled_at    timestamptz,
  cancellation_reason text,
  cancellation_refund text,
  currency            text,
  currency_precision  integer,
  original_minor      bigint,
  original_amount     numeric(18,4),
  retail_minor        bigint,
  retail_amount       numeric(18,4),
  net_minor           bigint,
  net_amount          numeric(18,4),
  tax_minor           bigint,
  tax_amount          numeric(18,4),
  unit_count          bigint,
  pax_count           bigint,
  oddities            text,
  verified_at_utc     timestamptz,
  payload_digest      bigint,
  contact_key         text,
  first_seen_at_utc   timestamptz,
  last_seen_at_utc    timestamptz,
  is_deleted          boolean,
  deleted_at_utc      timestamptz,
  row_hash            bigint,
  stale_columns       text
);
comment on table core.bookings is 'Bookings that this token may see. No name, address or note of a person is in it. One row: one booking of one connection.';
comment on column core.bookings.connection_id is 'The connection it was seen through.';
comment on column core.bookings.booking_uuid is 'OCTO booking uuid.';
comment on column core.bookings.booking_id is 'OCTO booking id; null at early services.';
comment on column core.bookings.status is 'ON_HOLD, CONFIRMED, … or a newer one.';
comment on column core.bookings.is_test is 'Whether it is a test booking.';
comment on column core.bookings.supplier_reference is 'The supplier''s reference.';
comment on column core.bookings.reseller_reference is 'The reseller''s reference.';
comment on column core.bookings.product_id is 'OCTO product id.';
comment on column core.bookings.option_id is 'OCTO option id.';
comment on column core.bookings.availability_id is 'OCTO availability id; null for freesale.';
comment on column core.bookings.local_start_at is 'Start of travel, wall clock at the venue.';
comment on column core.bookings.local_date is 'Travel date at the venue.';
comment on column core.bookings.time_zone is 'IANA time zone of the venue, where the service told it.';
comment on column core.bookings.utc_start_at is 'Start of travel as an instant.';
comment on column core.bookings.is_freesale is 'Whether it was booked without a slot.';
comment on column core.bookings.is_cancellable is 'Whether it can be cancelled now.';
comment on column core.bookings.utc_created_at is 'When it was made.';
comment on column core.bookings.utc_updated_at is 'When it last changed, says the service.';
comment on column core.bookings.utc_expires_at is 'When a hold lapses.';
comment on column core.bookings.utc_confirmed_at is 'When it was confirmed.';
comment on column core.bookings.utc_redeemed_at is 'When it was used.';
comment on column core.bookings.utc_cancelled_at is 'When it was cancelled.';
comment on column core.bookings.cancellation_reason is 'Why it was cancelled.';
comment on column core.bookings.cancellation_refund is 'FULL, PARTIAL, NONE or a newer one.';
comment on column core.bookings.currency is 'ISO 4217 code.';
comment on column core.bookings.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.bookings.original_minor is 'The original price in minor units.';
comment on column core.bookings.original_amount is 'The original price, exact.';
comment on column core.bookings.retail_minor is 'The retail price in minor units.';
comment on column core.bookings.retail_amount is 'The retail price, exact.';
comment on column core.bookings.net_minor is 'The net price in minor units.';
comment on column core.bookings.net_amount is 'The net price, exact.';
comment on column core.bookings.tax_minor is 'Taxes included in the retail price, minor units.';
comment on column core.bookings.tax_amount is 'Taxes included in the retail price, exact.';
comment on column core.bookings.unit_count is 'Tickets in it.';
comment on column core.bookings.pax_count is 'People in it, 0 without a ticket; null where the service leaves the units out.';
comment on column core.bookings.oddities is 'What its record said and no column can hold, rule:field, comma-separated: see marts.data_quality. Null: nothing.';
comment on column core.bookings.verified_at_utc is 'When an answer last showed it changed; ops.coverage says when it was last verified unchanged.';
comment on column core.bookings.payload_digest is 'Hash of the record that this row and its contacts were landed from; an equal one is not read again. Null: look at it anew.';
comment on column core.bookings.contact_key is 'Keyed hash of the lead contact''s e-mail address, else telephone number: equal for the same guest, and says nothing else. Null: neither is known, kept, or no longer.';
comment on column core.bookings.first_seen_at_utc is 'When this row was first stored.';
comment on column core.bookings.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.bookings.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.bookings.deleted_at_utc is 'When the deletion was proven.';
comment on column core.bookings.row_hash is 'Hash of the row''s content as received.';
comment on column core.bookings.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
