-- name: core.unit_prices
-- grain: One version of one currency's price of one unit; unit_id is '' where the price is per booking.
-- description: The price from which a unit or option is sold, and what it was before (capability pricing).
-- key: connection_id, product_id, option_id, unit_id, currency, valid_from_utc
-- landing: one row a version
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.unit_prices (
  connection_id      text not null,
  product_id         text not null,
  option_id          text not null,
  unit_id            text not null,
  currency           text not null,
  currency_precision integer,
  original_minor     bigint,
  original_amount    numeric(18,4),
  retail_minor       bigint,
  retail_amount      numeric(18,4),
  net_minor          bigint,
  net_amount         numeric(18,4),
  valid_from_utc     timestamptz not null,
  valid_to_utc       timestamptz,
  is_current         boolean
);
comment on table core.unit_prices is 'The price from which a unit or option is sold, and what it was before (capability pricing). One row: one version of one currency''s price of one unit; unit_id is '''' where the price is per booking.';
comment on column core.unit_prices.connection_id is 'The connection it was seen through.';
comment on column core.unit_prices.product_id is 'OCTO product id.';
comment on column core.unit_prices.option_id is 'OCTO option id, unique inside its product.';
comment on column core.unit_prices.unit_id is 'OCTO unit id; '''' = per booking.';
comment on column core.unit_prices.currency is 'ISO 4217 code.';
comment on column core.unit_prices.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.unit_prices.original_minor is 'The original price in minor units.';
comment on column core.unit_prices.original_amount is 'The original price, exact.';
comment on column core.unit_prices.retail_minor is 'The retail price in minor units.';
comment on column core.unit_prices.retail_amount is 'The retail price, exact.';
comment on column core.unit_prices.net_minor is 'The net price in minor units.';
comment on column core.unit_prices.net_amount is 'The net price, exact.';
comment on column core.unit_prices.valid_from_utc is 'Since when this copy said so.';
comment on column core.unit_prices.valid_to_utc is 'Until when, that instant not included; null = still.';
comment on column core.unit_prices.is_current is 'Whether it is the price now.';
