-- name: ops.schema_migrations
-- grain: One version.
-- description: Versions of the warehouse's schema that were applied.
-- key: version
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.schema_migrations (
  version         integer not null,
  applied_at_utc  timestamptz,
  program_version text
);
comment on table ops.schema_migrations is 'Versions of the warehouse''s schema that were applied. One row: one version.';
comment on column ops.schema_migrations.version is 'Number of the version.';
comment on column ops.schema_migrations.applied_at_utc is 'When.';
comment on column ops.schema_migrations.program_version is 'By which octo-sync.';
