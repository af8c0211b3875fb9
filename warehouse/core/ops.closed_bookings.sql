-- name: ops.closed_bookings
-- grain: One booking of one closed month, as one connection saw it.
-- description: Sold bookings of closed months, as they were when the month was closed.
-- key: period, connection_id, booking_uuid
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.closed_bookings (
  period        text not null,
  connection_id text not null,
  booking_uuid  text not null,
  currency      text,
  retail_amount numeric(18,4),
  net_amount    numeric(18,4),
  pax_count     bigint
);
comment on table ops.closed_bookings is 'Sold bookings of closed months, as they were when the month was closed. One row: one booking of one closed month, as one connection saw it.';
comment on column ops.closed_bookings.period is 'The month of travel, YYYY-MM.';
comment on column ops.closed_bookings.connection_id is 'The connection that saw it.';
comment on column ops.closed_bookings.booking_uuid is 'OCTO booking uuid.';
comment on column ops.closed_bookings.currency is 'ISO 4217 code of its amounts then.';
comment on column ops.closed_bookings.retail_amount is 'Its retail price then.';
comment on column ops.closed_bookings.net_amount is 'Its net price then.';
comment on column ops.closed_bookings.pax_count is 'People in it then.';
