-- name: ops.coverage
-- grain: One subject: the smallest thing that can be fetched again on its own.
-- description: What was verified, when and how: the proof of completeness.
-- key: connection_id, resource, key
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.coverage (
  connection_id        text not null,
  resource             text not null,
  key                  text not null,
  product_id           text,
  option_id            text,
  travel_month         text,
  window_start         date,
  window_end           date,
  verified_at_utc      timestamptz,
  source               text,
  row_count            bigint,
  is_complete          boolean,
  missing_capabilities text,
  request_seq          bigint,
  answer_hash          text,
  run_id               text
);
comment on table ops.coverage is 'What was verified, when and how: the proof of completeness. One row: one subject: the smallest thing that can be fetched again on its own.';
comment on column ops.coverage.connection_id is 'The connection.';
comment on column ops.coverage.resource is 'supplier, products, product, availability, bookings or booking; open_dated: a booking without a day of travel that a list showed.';
comment on column ops.coverage.key is 'JSON array of ids and months, as in the journal.';
comment on column ops.coverage.product_id is 'OCTO product id, where the subject has one.';
comment on column ops.coverage.option_id is 'OCTO option id, where the subject has one.';
comment on column ops.coverage.travel_month is 'YYYY-MM that was asked for; of bookings the month of booking where the service lists by that: marts.booking_lists says which. Of an open-dated booking the month whose list shows it.';
comment on column ops.coverage.window_start is 'First day asked for.';
comment on column ops.coverage.window_end is 'Last day asked for.';
comment on column ops.coverage.verified_at_utc is 'When the answer was asked for.';
comment on column ops.coverage.source is 'notification, schedule, confirm, repair or user.';
comment on column ops.coverage.row_count is 'Records in the answer.';
comment on column ops.coverage.is_complete is 'Every record of the answer was stored.';
comment on column ops.coverage.missing_capabilities is 'Capabilities asked for but not served; their columns kept old values.';
comment on column ops.coverage.request_seq is 'Journal number of the request; a lower one never overwrites a higher one.';
comment on column ops.coverage.answer_hash is 'Hash of the answer''s bytes; an equal answer only renews this row.';
comment on column ops.coverage.run_id is 'The run that stored it.';
