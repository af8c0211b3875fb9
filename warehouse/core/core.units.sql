-- name: core.units
-- grain: One unit of one option.
-- description: The ticket types of an option.
-- key: connection_id, product_id, option_id, unit_id
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.units (
  connection_id     text not null,
  product_id        text not null,
  option_id         text not null,
  unit_id           text not null,
  unit_type         text,
  internal_name     text,
  title             text,
  reference         text,
  pax_count         bigint,
  min_age           bigint,
  max_age           bigint,
  min_quantity      bigint,
  max_quantity      bigint,
  accompanied_by    text,
  id_required       boolean,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint,
  stale_columns     text
);
comment on table core.units is 'The ticket types of an option. One row: one unit of one option.';
comment on column core.units.connection_id is 'The connection it was seen through.';
comment on column core.units.product_id is 'OCTO product id.';
comment on column core.units.option_id is 'OCTO option id, unique inside its product.';
comment on column core.units.unit_id is 'OCTO unit id, unique inside its option.';
comment on column core.units.unit_type is 'ADULT, CHILD, … or a newer one.';
comment on column core.units.internal_name is 'The supplier''s own name for it.';
comment on column core.units.title is 'Name for travellers (capability content).';
comment on column core.units.reference is 'The supplier''s reference.';
comment on column core.units.pax_count is 'People one unit admits.';
comment on column core.units.min_age is 'Youngest age.';
comment on column core.units.max_age is 'Oldest age.';
comment on column core.units.min_quantity is 'Fewest in one booking.';
comment on column core.units.max_quantity is 'Most in one booking.';
comment on column core.units.accompanied_by is 'JSON array of unit ids that must come too.';
comment on column core.units.id_required is 'Whether an identity card is asked for.';
comment on column core.units.first_seen_at_utc is 'When this row was first stored.';
comment on column core.units.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.units.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.units.deleted_at_utc is 'When the deletion was proven.';
comment on column core.units.row_hash is 'Hash of the row''s content as received.';
comment on column core.units.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
