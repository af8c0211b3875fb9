-- name: core.booking_taxes
-- grain: One tax name of one booking.
-- description: Taxes included in a booking's price (capability pricing).
-- key: connection_id, booking_uuid, name
-- landing: compared when its row in core.bookings changes; what differs is written anew, what is gone removed
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.booking_taxes (
  connection_id      text not null,
  booking_uuid       text not null,
  name               text not null,
  currency           text,
  currency_precision integer,
  original_minor     bigint,
  original_amount    numeric(18,4),
  retail_minor       bigint,
  retail_amount      numeric(18,4),
  net_minor          bigint,
  net_amount         numeric(18,4)
);
comment on table core.booking_taxes is 'Taxes included in a booking''s price (capability pricing). One row: one tax name of one booking.';
comment on column core.booking_taxes.connection_id is 'The connection it was seen through.';
comment on column core.booking_taxes.booking_uuid is 'OCTO booking uuid.';
comment on column core.booking_taxes.name is 'Name of the tax.';
comment on column core.booking_taxes.currency is 'ISO 4217 code.';
comment on column core.booking_taxes.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.booking_taxes.original_minor is 'The tax on the original price in minor units.';
comment on column core.booking_taxes.original_amount is 'The tax on the original price, exact.';
comment on column core.booking_taxes.retail_minor is 'The tax on the retail price in minor units.';
comment on column core.booking_taxes.retail_amount is 'The tax on the retail price, exact.';
comment on column core.booking_taxes.net_minor is 'The tax on the net price in minor units.';
comment on column core.booking_taxes.net_amount is 'The tax on the net price, exact.';
