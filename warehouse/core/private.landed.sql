-- name: private.landed
-- grain: One row.
-- description: How far this file is: it is written before the warehouse, and a kill may come between the two.
-- key: number
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists private.landed (
  number bigint not null
);
comment on table private.landed is 'How far this file is: it is written before the warehouse, and a kill may come between the two. One row: one row.';
comment on column private.landed.number is 'Number of the last landing; where ops.writer has another, all is read anew.';
