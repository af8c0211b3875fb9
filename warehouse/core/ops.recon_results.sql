-- name: ops.recon_results
-- grain: One difference: key, bucket and field of one reconciliation.
-- description: Differences between this copy and a ledger, CRM or other system; one stays the same row from day to day.
-- key: recon_name, recon_key, bucket, field
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by `octo-sync db ddl`; do not edit.
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
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  resolved_at_utc   timestamptz
);
comment on table ops.recon_results is 'Differences between this copy and a ledger, CRM or other system; one stays the same row from day to day. One row: one difference: key, bucket and field of one reconciliation.';
comment on column ops.recon_results.recon_name is 'The reconciliation, as named in the pipeline.';
comment on column ops.recon_results.recon_key is 'What the pair was matched by, or the one side''s own key.';
comment on column ops.recon_results.bucket is 'mismatched, missing_here, missing_there, duplicate_here, accepted and the like.';
comment on column ops.recon_results.field is 'The field that differs; '''' where the whole row does.';
comment on column ops.recon_results.match_rule is 'The pass that made the pair, e.g. booking_uuid; null without a pair.';
comment on column ops.recon_results.connection_id is 'The connection of our side; null where it is missing here.';
comment on column ops.recon_results.booking_uuid is 'OCTO booking uuid of our side; null where it is missing here.';
comment on column ops.recon_results.here_value is 'The field''s value here.';
comment on column ops.recon_results.there_value is 'The field''s value there.';
comment on column ops.recon_results.delta_amount is 'There minus here, for amounts in one currency.';
comment on column ops.recon_results.currency is 'ISO 4217 code of the difference.';
comment on column ops.recon_results.reason is 'The likely reason, in a sentence.';
comment on column ops.recon_results.first_seen_at_utc is 'When the difference was first found.';
comment on column ops.recon_results.last_seen_at_utc is 'When it was last found.';
comment on column ops.recon_results.resolved_at_utc is 'When it was no longer found; null while it is open.';
