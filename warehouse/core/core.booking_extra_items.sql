-- name: core.booking_extra_items
-- grain: One extra of one ticket, or of the whole booking.
-- description: Extras bought with a booking (capability extras).
-- key: connection_id, booking_uuid, unit_item_uuid, extra_id
-- landing: compared when its row in core.bookings changes; what differs is written anew, what is gone removed
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.booking_extra_items (
  connection_id      text not null,
  booking_uuid       text not null,
  unit_item_uuid     text not null,
  extra_id           text not null,
  quantity           bigint,
  currency           text,
  currency_precision integer,
  original_minor     bigint,
  original_amount    numeric(18,4),
  retail_minor       bigint,
  retail_amount      numeric(18,4),
  net_minor          bigint,
  net_amount         numeric(18,4)
);
comment on table core.booking_extra_items is 'Extras bought with a booking (capability extras). One row: one extra of one ticket, or of the whole booking.';
comment on column core.booking_extra_items.connection_id is 'The connection it was seen through.';
comment on column core.booking_extra_items.booking_uuid is 'OCTO booking uuid.';
comment on column core.booking_extra_items.unit_item_uuid is 'OCTO unit item uuid; '''' = of the booking.';
comment on column core.booking_extra_items.extra_id is 'Extra id; '''' where the service names none.';
comment on column core.booking_extra_items.quantity is 'How many; null beyond what a bigint holds.';
comment on column core.booking_extra_items.currency is 'ISO 4217 code.';
comment on column core.booking_extra_items.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.booking_extra_items.original_minor is 'The original price in minor units.';
comment on column core.booking_extra_items.original_amount is 'The original price, exact.';
comment on column core.booking_extra_items.retail_minor is 'The retail price in minor units.';
comment on column core.booking_extra_items.retail_amount is 'The retail price, exact.';
comment on column core.booking_extra_items.net_minor is 'The net price in minor units.';
comment on column core.booking_extra_items.net_amount is 'The net price, exact.';
