-- name: ops.recon_results
-- grain: One difference: key, bucket and field of one reconciliation.
-- description: Differences between this copy and a ledger, CRM or other system; one stays the same row from day to day.
-- key: recon_name, recon_key, bucket, field
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.recon_results (
  recon_name        text not null,
  recon_key         text not null,
  bucket            text not null,
  field             text not null,
  match_rule        text,
  connection_id     text,
  booking_uuid      text,
  here_value        text,
  there_value       text,
  delta_amount      numeric(18,4),
  currency          text,
  reason            text,
  code              text,
  day               date,
  both_rows         text,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  resolved_at_utc   timestamptz,
  accepted_note     text,
  accepted_by       text,
  accepted_until    date
);
comment on table ops.recon_results is 'Differences between this copy and a ledger, CRM or other system; one stays the same row from day to day. One row: one difference: key, bucket and field of one reconciliation.';
comment on column ops.recon_results.recon_name is 'The reconciliation, as named in the pipeline.';
comment on column ops.recon_results.recon_key is 'What the pair was matched by, or the one side''s own key.';
comment on column ops.recon_results.bucket is 'mismatched, missing_here, missing_there, duplicate_here and the like; as it was found.';
comment on column ops.recon_results.field is 'The field that differs; '''' where the whole row does.';
comment on column ops.recon_results.match_rule is 'The pass that made the pair, e.g. booking_uuid; null without a pair.';
comment on column ops.recon_results.connection_id is 'The connection of our side; null where it is missing here.';
comment on column ops.recon_results.booking_uuid is 'OCTO booking uuid of our side; null where it is missing here.';
comment on column ops.recon_results.here_value is 'The field''s value here; null where the booking was erased.';
comment on column ops.recon_results.there_value is 'The field''s value there; null where the booking was erased.';
comment on column ops.recon_results.delta_amount is 'There minus here, for amounts in one currency; null beyond 14 digits.';
comment on column ops.recon_results.currency is 'ISO 4217 code of the difference.';
comment on column ops.recon_results.reason is 'The likely reason, in a sentence.';
comment on column ops.recon_results.code is 'The rule that gave the reason; '''' where none fits.';
comment on column ops.recon_results.day is 'Its day in the comparison''s window; null: in every window.';
comment on column ops.recon_results.both_rows is 'JSON: columns, values here, there, whether they differ; in one row of a key.';
comment on column ops.recon_results.first_seen_at_utc is 'When the difference was first found.';
comment on column ops.recon_results.last_seen_at_utc is 'When it was last found.';
comment on column ops.recon_results.resolved_at_utc is 'When a run no longer found it; null while open.';
comment on column ops.recon_results.accepted_note is 'Why the difference was accepted; null: not accepted.';
comment on column ops.recon_results.accepted_by is 'Who accepted it.';
comment on column ops.recon_results.accepted_until is 'Last day of the acceptance; null with a note: no end.';
