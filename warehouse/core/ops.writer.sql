-- name: ops.writer
-- grain: One row, and where several workers share a project one for each connection.
-- description: The fencing token of the last writer; a write with a lower one is refused.
-- key: fence
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists ops.writer (
  fence         bigint not null,
  owner         text,
  landed        bigint,
  connection_id text
);
comment on table ops.writer is 'The fencing token of the last writer; a write with a lower one is refused. One row: one row, and where several workers share a project one for each connection.';
comment on column ops.writer.fence is 'The token.';
comment on column ops.writer.owner is 'Who holds it.';
comment on column ops.writer.landed is 'Number of the last landing in the private file; must equal private.landed there.';
comment on column ops.writer.connection_id is 'The connection whose rows it lets its owner write; empty or null: all.';
