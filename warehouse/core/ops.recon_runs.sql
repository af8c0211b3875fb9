-- name: ops.recon_runs
-- grain: One run of one reconciliation.
-- description: Comparisons of this copy with a ledger, CRM or other system, and what each came to.
-- key: recon_name, run_id
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.recon_runs (
  recon_name               text not null,
  run_id                   text not null,
  verdict                  text,
  started_at_utc           timestamptz,
  ended_at_utc             timestamptz,
  window_start             date,
  window_end               date,
  here_origin              text,
  there_origin             text,
  differences              bigint,
  new_differences          bigint,
  resolved_differences     bigint,
  open_differences         bigint,
  matched                  bigint,
  matched_within_tolerance bigint,
  mismatched               bigint,
  missing_here             bigint,
  missing_there            bigint,
  duplicate_here           bigint,
  duplicate_there          bigint,
  ambiguous                bigint,
  too_fresh                bigint,
  out_of_window            bigint,
  accepted                 bigint,
  control_totals           text,
  revision                 bigint
);
comment on table ops.recon_runs is 'Comparisons of this copy with a ledger, CRM or other system, and what each came to. One row: one run of one reconciliation.';
comment on column ops.recon_runs.recon_name is 'The reconciliation, as named in the pipeline.';
comment on column ops.recon_runs.run_id is 'The run of the command; it may have made several comparisons.';
comment on column ops.recon_runs.verdict is 'ok, over (a limit of fail_on was passed) or failed (it could not compare).';
comment on column ops.recon_runs.started_at_utc is 'When it began.';
comment on column ops.recon_runs.ended_at_utc is 'When its results were stored; the last_seen_at_utc of what it found.';
comment on column ops.recon_runs.window_start is 'The first day that it looked at.';
comment on column ops.recon_runs.window_end is 'The last day that it looked at.';
comment on column ops.recon_runs.here_origin is 'What our side was read from.';
comment on column ops.recon_runs.there_origin is 'What the other side was read from.';
comment on column ops.recon_runs.differences is 'Differences that it found, accepted ones included.';
comment on column ops.recon_runs.new_differences is 'Of these: not open before.';
comment on column ops.recon_runs.resolved_differences is 'Open before, looked for and not found.';
comment on column ops.recon_runs.open_differences is 'Open afterwards and not accepted, also those whose day it did not look at.';
comment on column ops.recon_runs.matched is 'Bookings equal on both sides.';
comment on column ops.recon_runs.matched_within_tolerance is 'Bookings equal but for a tolerated amount.';
comment on column ops.recon_runs.mismatched is 'Fields that differ, of bookings that both sides have.';
comment on column ops.recon_runs.missing_here is 'Bookings that only the other side has.';
comment on column ops.recon_runs.missing_there is 'Bookings that only our side has.';
comment on column ops.recon_runs.duplicate_here is 'Groups of rows here that share a key.';
comment on column ops.recon_runs.duplicate_there is 'Groups of rows there that share a key.';
comment on column ops.recon_runs.ambiguous is 'Groups of rows that could be paired in more than one way.';
comment on column ops.recon_runs.too_fresh is 'Differences inside the grace time.';
comment on column ops.recon_runs.out_of_window is 'Bookings of which a side lies outside the window.';
comment on column ops.recon_runs.accepted is 'Accepted differences.';
comment on column ops.recon_runs.control_totals is 'A JSON array: rows and money of each side and currency, as they were read.';
comment on column ops.recon_runs.revision is 'The number of the journal''s last change that this copy shows; the same in all rows.';
