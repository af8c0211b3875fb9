-- name: core.extras
-- grain: One extra of one unit; unit_id is '' where it belongs to the option.
-- description: Addons that can be bought with a unit or an option (capability extras).
-- key: connection_id, product_id, option_id, unit_id, extra_id
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.extras (
  connection_id     text not null,
  product_id        text not null,
  option_id         text not null,
  unit_id           text not null,
  extra_id          text not null,
  internal_name     text,
  title             text,
  reference         text,
  min_quantity      bigint,
  max_quantity      bigint,
  is_required       boolean,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint,
  stale_columns     text
);
comment on table core.extras is 'Addons that can be bought with a unit or an option (capability extras). One row: one extra of one unit; unit_id is '''' where it belongs to the option.';
comment on column core.extras.connection_id is 'The connection it was seen through.';
comment on column core.extras.product_id is 'OCTO product id.';
comment on column core.extras.option_id is 'OCTO option id, unique inside its product.';
comment on column core.extras.unit_id is 'OCTO unit id; '''' = of the option.';
comment on column core.extras.extra_id is 'Extra id.';
comment on column core.extras.internal_name is 'The supplier''s own name for it.';
comment on column core.extras.title is 'Name for travellers (capability content).';
comment on column core.extras.reference is 'The supplier''s reference.';
comment on column core.extras.min_quantity is 'Fewest in one booking.';
comment on column core.extras.max_quantity is 'Most in one booking.';
comment on column core.extras.is_required is 'Whether it must be bought.';
comment on column core.extras.first_seen_at_utc is 'When this row was first stored.';
comment on column core.extras.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.extras.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.extras.deleted_at_utc is 'When the deletion was proven.';
comment on column core.extras.row_hash is 'Hash of the row''s content as received.';
comment on column core.extras.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
