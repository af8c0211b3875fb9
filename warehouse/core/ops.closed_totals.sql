-- name: ops.closed_totals
-- grain: One kind of total of one closed month, tax name, connection and currency.
-- description: Taxes by name, refunds due and deferred revenue of closed months, as they were when the month was closed.
-- key: period, kind, name, connection_id, currency
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.closed_totals (
  period        text not null,
  kind          text not null,
  name          text not null,
  connection_id text not null,
  currency      text not null,
  bookings      bigint,
  retail_amount numeric(38,4),
  net_amount    numeric(38,4)
);
comment on table ops.closed_totals is 'Taxes by name, refunds due and deferred revenue of closed months, as they were when the month was closed. One row: one kind of total of one closed month, tax name, connection and currency.';
comment on column ops.closed_totals.period is 'The month, YYYY-MM.';
comment on column ops.closed_totals.kind is 'tax, refund or deferred, as in marts.month_totals.';
comment on column ops.closed_totals.name is 'Name of the tax; '''' for the other kinds.';
comment on column ops.closed_totals.connection_id is 'The connection that saw it.';
comment on column ops.closed_totals.currency is 'ISO 4217 code of its amounts; '''' where nobody said.';
comment on column ops.closed_totals.bookings is 'Bookings in it then.';
comment on column ops.closed_totals.retail_amount is 'Its amount in retail prices then.';
comment on column ops.closed_totals.net_amount is 'Its amount in net prices then.';
