-- name: core.availability_prices
-- grain: One unit of one departure; unit_id is '' where the price is per booking.
-- description: Prices of a departure or day (capability pricing).
-- key: connection_id, product_id, option_id, availability_id, unit_id, currency
-- landing: compared when its row in core.availability changes; what differs is written anew, what is gone removed
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.availability_prices (
  connection_id      text not null,
  product_id         text not null,
  option_id          text not null,
  availability_id    text not null,
  unit_id            text not null,
  local_date         date,
  currency           text not null,
  currency_precision integer,
  original_minor     bigint,
  original_amount    numeric(18,4),
  retail_minor       bigint,
  retail_amount      numeric(18,4),
  net_minor          bigint,
  net_amount         numeric(18,4)
);
comment on table core.availability_prices is 'Prices of a departure or day (capability pricing). One row: one unit of one departure; unit_id is '''' where the price is per booking.';
comment on column core.availability_prices.connection_id is 'The connection it was seen through.';
comment on column core.availability_prices.product_id is 'OCTO product id.';
comment on column core.availability_prices.option_id is 'OCTO option id.';
comment on column core.availability_prices.availability_id is 'OCTO availability id; unique inside its option only.';
comment on column core.availability_prices.unit_id is 'OCTO unit id; '''' = per booking.';
comment on column core.availability_prices.local_date is 'Travel date at the venue.';
comment on column core.availability_prices.currency is 'ISO 4217 code.';
comment on column core.availability_prices.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.availability_prices.original_minor is 'The original price in minor units.';
comment on column core.availability_prices.original_amount is 'The original price, exact.';
comment on column core.availability_prices.retail_minor is 'The retail price in minor units.';
comment on column core.availability_prices.retail_amount is 'The retail price, exact.';
comment on column core.availability_prices.net_minor is 'The net price in minor units.';
comment on column core.availability_prices.net_amount is 'The net price, exact.';
