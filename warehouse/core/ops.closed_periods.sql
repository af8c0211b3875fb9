-- name: ops.closed_periods
-- grain: One closed month.
-- description: Months of travel that were closed by octo-sync close.
-- key: period
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.closed_periods (
  period        text not null,
  closed_at_utc timestamptz,
  was_complete  boolean,
  digest        text,
  has_totals    boolean
);
comment on table ops.closed_periods is 'Months of travel that were closed by octo-sync close. One row: one closed month.';
comment on column ops.closed_periods.period is 'The month of travel, YYYY-MM.';
comment on column ops.closed_periods.closed_at_utc is 'When it was closed.';
comment on column ops.closed_periods.was_complete is 'Whether all bookings of the month were known then.';
comment on column ops.closed_periods.digest is 'SHA-256 of the figures and was_complete, hex; an older octo-sync put the time in, too.';
comment on column ops.closed_periods.has_totals is 'Whether ops.closed_totals has what it kept; null: closed by an older octo-sync.';
