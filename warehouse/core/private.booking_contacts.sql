-- name: private.booking_contacts
-- grain: One contact: of the booking (unit_item_uuid '') or of one ticket.
-- description: Who booked and who travels: personal data, only in the private file.
-- key: connection_id, booking_uuid, unit_item_uuid
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists private.booking_contacts (
  connection_id     text not null,
  booking_uuid      text not null,
  unit_item_uuid    text not null,
  full_name         text,
  first_name        text,
  last_name         text,
  email_address     text,
  phone_number      text,
  country           text,
  postal_code       text,
  locales           text,
  notes             text,
  erased_at_utc     timestamptz,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint,
  stale_columns     text
);
comment on table private.booking_contacts is 'Who booked and who travels: personal data, only in the private file. One row: one contact: of the booking (unit_item_uuid '''') or of one ticket.';
comment on column private.booking_contacts.connection_id is 'The connection it was seen through.';
comment on column private.booking_contacts.booking_uuid is 'OCTO booking uuid.';
comment on column private.booking_contacts.unit_item_uuid is 'OCTO unit item uuid; '''' = the lead contact of the booking.';
comment on column private.booking_contacts.full_name is 'Full name.';
comment on column private.booking_contacts.first_name is 'First name.';
comment on column private.booking_contacts.last_name is 'Last name.';
comment on column private.booking_contacts.email_address is 'E-mail address.';
comment on column private.booking_contacts.phone_number is 'Telephone number.';
comment on column private.booking_contacts.country is 'Country code.';
comment on column private.booking_contacts.postal_code is 'Postal code.';
comment on column private.booking_contacts.locales is 'JSON array of preferred languages.';
comment on column private.booking_contacts.notes is 'Free-text notes.';
comment on column private.booking_contacts.erased_at_utc is 'When this person was forgotten; null otherwise.';
comment on column private.booking_contacts.first_seen_at_utc is 'When this row was first stored.';
comment on column private.booking_contacts.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column private.booking_contacts.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column private.booking_contacts.deleted_at_utc is 'When the deletion was proven.';
comment on column private.booking_contacts.row_hash is 'Hash of the row''s content as received.';
comment on column private.booking_contacts.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
