-- name: core.connections
-- grain: One connection of the pipeline.
-- description: One token at one OCTO service.
-- key: connection_id
-- landing: written by octo-sync itself
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.connections (
  connection_id      text not null,
  role               text,
  channel            text,
  base_url           text,
  supplier_id        text,
  business_time_zone text,
  capabilities       text,
  is_active          boolean
);
comment on table core.connections is 'One token at one OCTO service. One row: one connection of the pipeline.';
comment on column core.connections.connection_id is 'The connection.';
comment on column core.connections.role is 'supplier or reseller.';
comment on column core.connections.channel is 'Sales channel, as named in the pipeline.';
comment on column core.connections.base_url is 'The service''s base URL.';
comment on column core.connections.supplier_id is 'OCTO supplier id behind the token.';
comment on column core.connections.business_time_zone is 'IANA zone in which booking dates are counted.';
comment on column core.connections.capabilities is 'Capabilities asked for, comma-separated.';
comment on column core.connections.is_active is 'Whether the pipeline still has it.';
