-- name: ops.runs
-- grain: One run.
-- description: Runs of octo-sync that stored something.
-- key: run_id
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.runs (
  run_id         text not null,
  command        text,
  pipeline       text,
  status         text,
  started_at_utc timestamptz,
  ended_at_utc   timestamptz,
  requests       bigint,
  subjects       bigint,
  unchanged      bigint,
  rows_written   bigint,
  error          text
);
comment on table ops.runs is 'Runs of octo-sync that stored something. One row: one run.';
comment on column ops.runs.run_id is 'The run.';
comment on column ops.runs.command is 'What was called.';
comment on column ops.runs.pipeline is 'The pipeline''s name.';
comment on column ops.runs.status is 'running, ok, partial, failed, interrupted or killed.';
comment on column ops.runs.started_at_utc is 'Start.';
comment on column ops.runs.ended_at_utc is 'End; null while running.';
comment on column ops.runs.requests is 'Calls to services, retries included.';
comment on column ops.runs.subjects is 'Subjects fetched.';
comment on column ops.runs.unchanged is 'Of these, answers equal to the last ones.';
comment on column ops.runs.rows_written is 'Rows inserted, changed or marked deleted.';
comment on column ops.runs.error is 'What went wrong, in a sentence.';
