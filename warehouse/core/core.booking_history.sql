-- name: core.booking_history
-- grain: One version of one booking; every booking has a first one.
-- description: What each booking was, and when. A booking as it was at an instant is the row with valid_from_utc <= instant and (valid_to_utc is null or valid_to_utc > instant). A last version that is closed: the booking was proven gone then.
-- key: connection_id, booking_uuid, version_no
-- landing: one row a version of a row in core.bookings, written with it
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.booking_history (
  connection_id  text not null,
  booking_uuid   text not null,
  version_no     bigint not null,
  valid_from_utc timestamptz,
  valid_to_utc   timestamptz,
  is_current     boolean,
  changed_fields text,
  source         text,
  status         text,
  local_date     date,
  product_id     text,
  option_id      text,
  retail_amount  numeric(18,4),
  net_amount     numeric(18,4),
  currency       text,
  pax_count      bigint
);
comment on table core.booking_history is 'What each booking was, and when. A booking as it was at an instant is the row with valid_from_utc <= instant and (valid_to_utc is null or valid_to_utc > instant). A last version that is closed: the booking was proven gone then. One row: one version of one booking; every booking has a first one.';
comment on column core.booking_history.connection_id is 'The connection it was seen through.';
comment on column core.booking_history.booking_uuid is 'OCTO booking uuid.';
comment on column core.booking_history.version_no is 'Number of the version of this row, from 1, without a gap.';
comment on column core.booking_history.valid_from_utc is 'Since when this copy said so.';
comment on column core.booking_history.valid_to_utc is 'Until when, that instant not included; null = still.';
comment on column core.booking_history.is_current is 'Whether it says so now; none does of a row that was proven gone.';
comment on column core.booking_history.changed_fields is 'What differs from the version before: column names by the alphabet, comma-separated. '''' = the first version; is_deleted among them = it was proven gone, and came back.';
comment on column core.booking_history.source is 'Why it was looked at: schedule, notification, confirm, repair, timer or user. '''' = not noted: it was there before its versions were kept.';
comment on column core.booking_history.status is 'ON_HOLD, CONFIRMED, … or a newer one.';
comment on column core.booking_history.local_date is 'Travel date at the venue.';
comment on column core.booking_history.product_id is 'OCTO product id.';
comment on column core.booking_history.option_id is 'OCTO option id.';
comment on column core.booking_history.retail_amount is 'The retail price, exact.';
comment on column core.booking_history.net_amount is 'The net price, exact.';
comment on column core.booking_history.currency is 'ISO 4217 code.';
comment on column core.booking_history.pax_count is 'People in it, 0 without a ticket; null where the service leaves the units out.';
