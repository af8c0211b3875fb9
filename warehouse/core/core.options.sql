-- name: core.options
-- grain: One option of one product.
-- description: The variants of a product.
-- key: connection_id, product_id, option_id
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.options (
  connection_id              text not null,
  product_id                 text not null,
  option_id                  text not null,
  is_default                 boolean,
  internal_name              text,
  title                      text,
  reference                  text,
  local_start_times          text,
  cancellation_cutoff        text,
  cancellation_cutoff_amount bigint,
  cancellation_cutoff_unit   text,
  min_units                  bigint,
  max_units                  bigint,
  first_seen_at_utc          timestamptz,
  last_seen_at_utc           timestamptz,
  is_deleted                 boolean,
  deleted_at_utc             timestamptz,
  row_hash                   bigint,
  stale_columns              text
);
comment on table core.options is 'The variants of a product. One row: one option of one product.';
comment on column core.options.connection_id is 'The connection it was seen through.';
comment on column core.options.product_id is 'OCTO product id.';
comment on column core.options.option_id is 'OCTO option id, unique inside its product.';
comment on column core.options.is_default is 'Whether it is the default option.';
comment on column core.options.internal_name is 'The supplier''s own name for it.';
comment on column core.options.title is 'Name for travellers (capability content).';
comment on column core.options.reference is 'The supplier''s reference.';
comment on column core.options.local_start_times is 'JSON array of HH:MM at the venue.';
comment on column core.options.cancellation_cutoff is 'Free text, e.g. 24 hours.';
comment on column core.options.cancellation_cutoff_amount is 'The number in it.';
comment on column core.options.cancellation_cutoff_unit is 'hour, minute or day.';
comment on column core.options.min_units is 'Fewest units in one booking.';
comment on column core.options.max_units is 'Most units in one booking.';
comment on column core.options.first_seen_at_utc is 'When this row was first stored.';
comment on column core.options.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.options.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.options.deleted_at_utc is 'When the deletion was proven.';
comment on column core.options.row_hash is 'Hash of the row''s content as received.';
comment on column core.options.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
