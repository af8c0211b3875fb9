-- name: ops.unanswered
-- grain: One subject without a row in ops.coverage.
-- description: What was requested and never answered, as of the last publish.
-- key: connection_id, resource, key
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.unanswered (
  connection_id text not null,
  resource      text not null,
  key           text not null,
  product_id    text,
  option_id     text,
  travel_month  text
);
comment on table ops.unanswered is 'What was requested and never answered, as of the last publish. One row: one subject without a row in ops.coverage.';
comment on column ops.unanswered.connection_id is 'The connection.';
comment on column ops.unanswered.resource is 'supplier, products, product, availability, bookings or booking.';
comment on column ops.unanswered.key is 'JSON array of ids and months, as in the journal.';
comment on column ops.unanswered.product_id is 'OCTO product id, where the subject has one.';
comment on column ops.unanswered.option_id is 'OCTO option id, where the subject has one.';
comment on column ops.unanswered.travel_month is 'YYYY-MM, where the subject has one.';
