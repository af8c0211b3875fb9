-- The warehouse's tables as version 1 made them; never changed again.
create schema core;
create schema ops;
create schema private;
create schema raw;
create table if not exists core.availability (
  connection_id     text not null,
  product_id        text not null,
  option_id         text not null,
  availability_id   text not null,
  local_start_at    timestamp,
  local_end_at      timestamp,
  local_date        date,
  time_zone         text,
  utc_start_at      timestamptz,
  utc_cutoff_at     timestamptz,
  is_all_day        boolean,
  status            text,
  is_available      boolean,
  vacancies         bigint,
  capacity          bigint,
  max_units         bigint,
  opening_hours     text,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint
);
comment on table core.availability is 'Departures and open days as the service offers them to this token. One row: one departure (START_TIME) or one day (OPENING_HOURS) of an option.';
comment on column core.availability.connection_id is 'The connection it was seen through.';
comment on column core.availability.product_id is 'OCTO product id.';
comment on column core.availability.option_id is 'OCTO option id.';
comment on column core.availability.availability_id is 'OCTO availability id; unique inside its option only.';
comment on column core.availability.local_start_at is 'Start, wall clock at the venue.';
comment on column core.availability.local_end_at is 'End, wall clock at the venue.';
comment on column core.availability.local_date is 'Travel date at the venue.';
comment on column core.availability.time_zone is 'IANA time zone of the product.';
comment on column core.availability.utc_start_at is 'Start as an instant.';
comment on column core.availability.utc_cutoff_at is 'Until when a booking must be confirmed.';
comment on column core.availability.is_all_day is 'Whether it spans the whole day.';
comment on column core.availability.status is 'AVAILABLE, LIMITED, FREESALE, SOLD_OUT, CLOSED or a newer one.';
comment on column core.availability.is_available is 'Whether it can be booked now.';
comment on column core.availability.vacancies is 'Places left; null when unlimited or not told.';
comment on column core.availability.capacity is 'Places in all; null when unlimited or not told.';
comment on column core.availability.max_units is 'Most units in one booking; null when not limited.';
comment on column core.availability.opening_hours is 'JSON array of {from, to}, HH:MM at the venue.';
comment on column core.availability.first_seen_at_utc is 'When this row was first landed.';
comment on column core.availability.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.availability.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.availability.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.availability.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
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
comment on column core.booking_extra_items.extra_id is 'Extra id.';
comment on column core.booking_extra_items.quantity is 'How many.';
comment on column core.booking_extra_items.currency is 'ISO 4217 code.';
comment on column core.booking_extra_items.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.booking_extra_items.original_minor is 'The original price in minor units.';
comment on column core.booking_extra_items.original_amount is 'The original price, exact.';
comment on column core.booking_extra_items.retail_minor is 'The retail price in minor units.';
comment on column core.booking_extra_items.retail_amount is 'The retail price, exact.';
comment on column core.booking_extra_items.net_minor is 'The net price in minor units.';
comment on column core.booking_extra_items.net_amount is 'The net price, exact.';
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
create table if not exists core.booking_unit_items (
  connection_id      text not null,
  unit_item_uuid     text not null,
  booking_uuid       text not null,
  unit_id            text,
  unit_type          text,
  status             text,
  supplier_reference text,
  reseller_reference text,
  utc_redeemed_at    timestamptz,
  pax_count          bigint,
  currency           text,
  currency_precision integer,
  retail_minor       bigint,
  retail_amount      numeric(18,4),
  net_minor          bigint,
  net_amount         numeric(18,4),
  first_seen_at_utc  timestamptz,
  last_seen_at_utc   timestamptz,
  is_deleted         boolean,
  deleted_at_utc     timestamptz,
  row_hash           bigint
);
comment on table core.booking_unit_items is 'The tickets of a booking. Their status is as reported; the booking''s status is the authoritative one. One row: one ticket of one booking.';
comment on column core.booking_unit_items.connection_id is 'The connection it was seen through.';
comment on column core.booking_unit_items.unit_item_uuid is 'OCTO unit item uuid.';
comment on column core.booking_unit_items.booking_uuid is 'OCTO booking uuid.';
comment on column core.booking_unit_items.unit_id is 'OCTO unit id.';
comment on column core.booking_unit_items.unit_type is 'ADULT, CHILD, …; null where the service leaves the unit out.';
comment on column core.booking_unit_items.status is 'Status of the ticket as reported.';
comment on column core.booking_unit_items.supplier_reference is 'The supplier''s reference.';
comment on column core.booking_unit_items.reseller_reference is 'The reseller''s reference.';
comment on column core.booking_unit_items.utc_redeemed_at is 'When it was used.';
comment on column core.booking_unit_items.pax_count is 'People it admits; null where not told.';
comment on column core.booking_unit_items.currency is 'ISO 4217 code.';
comment on column core.booking_unit_items.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.booking_unit_items.retail_minor is 'The retail price in minor units.';
comment on column core.booking_unit_items.retail_amount is 'The retail price, exact.';
comment on column core.booking_unit_items.net_minor is 'The net price in minor units.';
comment on column core.booking_unit_items.net_amount is 'The net price, exact.';
comment on column core.booking_unit_items.first_seen_at_utc is 'When this row was first landed.';
comment on column core.booking_unit_items.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.booking_unit_items.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.booking_unit_items.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.booking_unit_items.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
create table if not exists core.bookings (
  connection_id       text not null,
  booking_uuid        text not null,
  booking_id          text,
  status              text,
  is_test             boolean,
  supplier_reference  text,
  reseller_reference  text,
  product_id          text,
  option_id           text,
  availability_id     text,
  local_start_at      timestamp,
  local_date          date,
  time_zone           text,
  utc_start_at        timestamptz,
  is_freesale         boolean,
  is_cancellable      boolean,
  utc_created_at      timestamptz,
  utc_updated_at      timestamptz,
  utc_expires_at      timestamptz,
  utc_confirmed_at    timestamptz,
  utc_redeemed_at     timestamptz,
  utc_cancelled_at    timestamptz,
  cancellation_reason text,
  cancellation_refund text,
  currency            text,
  currency_precision  integer,
  original_minor      bigint,
  original_amount     numeric(18,4),
  retail_minor        bigint,
  retail_amount       numeric(18,4),
  net_minor           bigint,
  net_amount          numeric(18,4),
  tax_minor           bigint,
  tax_amount          numeric(18,4),
  unit_count          bigint,
  pax_count           bigint,
  verified_at_utc     timestamptz,
  first_seen_at_utc   timestamptz,
  last_seen_at_utc    timestamptz,
  is_deleted          boolean,
  deleted_at_utc      timestamptz,
  row_hash            bigint
);
comment on table core.bookings is 'Bookings that this token may see. No name, address or note of a person is in it. One row: one booking of one connection.';
comment on column core.bookings.connection_id is 'The connection it was seen through.';
comment on column core.bookings.booking_uuid is 'OCTO booking uuid.';
comment on column core.bookings.booking_id is 'OCTO booking id; null at early services.';
comment on column core.bookings.status is 'ON_HOLD, CONFIRMED, … or a newer one.';
comment on column core.bookings.is_test is 'Whether it is a test booking.';
comment on column core.bookings.supplier_reference is 'The supplier''s reference.';
comment on column core.bookings.reseller_reference is 'The reseller''s reference.';
comment on column core.bookings.product_id is 'OCTO product id.';
comment on column core.bookings.option_id is 'OCTO option id.';
comment on column core.bookings.availability_id is 'OCTO availability id; null for freesale.';
comment on column core.bookings.local_start_at is 'Start of travel, wall clock at the venue.';
comment on column core.bookings.local_date is 'Travel date at the venue.';
comment on column core.bookings.time_zone is 'IANA time zone of the venue, where the service told it.';
comment on column core.bookings.utc_start_at is 'Start of travel as an instant.';
comment on column core.bookings.is_freesale is 'Whether it was booked without a slot.';
comment on column core.bookings.is_cancellable is 'Whether it can be cancelled now.';
comment on column core.bookings.utc_created_at is 'When it was made.';
comment on column core.bookings.utc_updated_at is 'When it last changed, says the service.';
comment on column core.bookings.utc_expires_at is 'When a hold lapses.';
comment on column core.bookings.utc_confirmed_at is 'When it was confirmed.';
comment on column core.bookings.utc_redeemed_at is 'When it was used.';
comment on column core.bookings.utc_cancelled_at is 'When it was cancelled.';
comment on column core.bookings.cancellation_reason is 'Why it was cancelled.';
comment on column core.bookings.cancellation_refund is 'FULL, PARTIAL, NONE or a newer one.';
comment on column core.bookings.currency is 'ISO 4217 code.';
comment on column core.bookings.currency_precision is 'Decimals of the currency''s minor unit.';
comment on column core.bookings.original_minor is 'The original price in minor units.';
comment on column core.bookings.original_amount is 'The original price, exact.';
comment on column core.bookings.retail_minor is 'The retail price in minor units.';
comment on column core.bookings.retail_amount is 'The retail price, exact.';
comment on column core.bookings.net_minor is 'The net price in minor units.';
comment on column core.bookings.net_amount is 'The net price, exact.';
comment on column core.bookings.tax_minor is 'Taxes included in the retail price, minor units.';
comment on column core.bookings.tax_amount is 'Taxes included in the retail price, exact.';
comment on column core.bookings.unit_count is 'Tickets in it.';
comment on column core.bookings.pax_count is 'People in it; null where the service leaves the units out.';
comment on column core.bookings.verified_at_utc is 'When an answer last showed it changed; ops.coverage says when it was last verified unchanged.';
comment on column core.bookings.first_seen_at_utc is 'When this row was first landed.';
comment on column core.bookings.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.bookings.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.bookings.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.bookings.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
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
  row_hash          bigint
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
comment on column core.extras.first_seen_at_utc is 'When this row was first landed.';
comment on column core.extras.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.extras.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.extras.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.extras.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
create table if not exists core.options (
  connection_id              text not null,
  product_id                 text not null,
  option_id                  text not null,
  is_default                 boolean,
  internal_name              text,
  title                      text,
  reference                  text,
  local_start_times          text,
  cancellation_cutoff        text,
  cancellation_cutoff_amount bigint,
  cancellation_cutoff_unit   text,
  min_units                  bigint,
  max_units                  bigint,
  first_seen_at_utc          timestamptz,
  last_seen_at_utc           timestamptz,
  is_deleted                 boolean,
  deleted_at_utc             timestamptz,
  row_hash                   bigint
);
comment on table core.options is 'The variants of a product. One row: one option of one product.';
comment on column core.options.connection_id is 'The connection it was seen through.';
comment on column core.options.product_id is 'OCTO product id.';
comment on column core.options.option_id is 'OCTO option id, unique inside its product.';
comment on column core.options.is_default is 'Whether it is the default option.';
comment on column core.options.internal_name is 'The supplier''s own name for it.';
comment on column core.options.title is 'Name for travellers (capability content).';
comment on column core.options.reference is 'The supplier''s reference.';
comment on column core.options.local_start_times is 'JSON array of HH:MM at the venue.';
comment on column core.options.cancellation_cutoff is 'Free text, e.g. 24 hours.';
comment on column core.options.cancellation_cutoff_amount is 'The number in it.';
comment on column core.options.cancellation_cutoff_unit is 'hour, minute or day.';
comment on column core.options.min_units is 'Fewest units in one booking.';
comment on column core.options.max_units is 'Most units in one booking.';
comment on column core.options.first_seen_at_utc is 'When this row was first landed.';
comment on column core.options.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.options.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.options.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.options.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
create table if not exists core.product_content (
  connection_id     text not null,
  product_id        text not null,
  option_id         text not null,
  language          text not null,
  title             text,
  short_description text,
  description       text,
  features          text,
  faqs              text,
  media             text,
  locations         text,
  category_labels   text,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint
);
comment on table core.product_content is 'Texts for travellers, as received (capability content); shapes of the JSON differ between services. One row: one language of one product (option_id '''') or option.';
comment on column core.product_content.connection_id is 'The connection it was seen through.';
comment on column core.product_content.product_id is 'OCTO product id.';
comment on column core.product_content.option_id is 'OCTO option id; '''' = of the product.';
comment on column core.product_content.language is 'The language the service answered in.';
comment on column core.product_content.title is 'Name.';
comment on column core.product_content.short_description is 'One or two sentences.';
comment on column core.product_content.description is 'The long text.';
comment on column core.product_content.features is 'JSON array of inclusions, highlights and the like.';
comment on column core.product_content.faqs is 'JSON array of questions and answers.';
comment on column core.product_content.media is 'JSON array of pictures and films.';
comment on column core.product_content.locations is 'JSON array of places.';
comment on column core.product_content.category_labels is 'JSON array of labels.';
comment on column core.product_content.first_seen_at_utc is 'When this row was first landed.';
comment on column core.product_content.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.product_content.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.product_content.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.product_content.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
create table if not exists core.products (
  connection_id         text not null,
  product_id            text not null,
  internal_name         text,
  title                 text,
  reference             text,
  locale                text,
  time_zone             text,
  availability_type     text,
  availability_required boolean,
  allow_freesale        boolean,
  instant_confirmation  boolean,
  instant_delivery      boolean,
  redemption_method     text,
  delivery_formats      text,
  delivery_methods      text,
  default_currency      text,
  available_currencies  text,
  pricing_per           text,
  first_seen_at_utc     timestamptz,
  last_seen_at_utc      timestamptz,
  is_deleted            boolean,
  deleted_at_utc        timestamptz,
  row_hash              bigint
);
comment on table core.products is 'What the supplier sells. One row: one product of one connection.';
comment on column core.products.connection_id is 'The connection it was seen through.';
comment on column core.products.product_id is 'OCTO product id.';
comment on column core.products.internal_name is 'The supplier''s own name for it.';
comment on column core.products.title is 'Name for travellers (capability content).';
comment on column core.products.reference is 'The supplier''s reference.';
comment on column core.products.locale is 'Language of the texts, BCP 47.';
comment on column core.products.time_zone is 'IANA time zone of the venue.';
comment on column core.products.availability_type is 'START_TIME or OPENING_HOURS.';
comment on column core.products.availability_required is 'Whether a booking needs a slot.';
comment on column core.products.allow_freesale is 'Whether it can be booked without a slot.';
comment on column core.products.instant_confirmation is 'Whether confirming is immediate.';
comment on column core.products.instant_delivery is 'Whether tickets come at once.';
comment on column core.products.redemption_method is 'DIGITAL, PRINT or MANIFEST.';
comment on column core.products.delivery_formats is 'JSON array of ticket formats.';
comment on column core.products.delivery_methods is 'JSON array of VOUCHER, TICKET.';
comment on column core.products.default_currency is 'ISO 4217 (capability pricing).';
comment on column core.products.available_currencies is 'JSON array of ISO 4217 codes (capability pricing).';
comment on column core.products.pricing_per is 'UNIT or BOOKING.';
comment on column core.products.first_seen_at_utc is 'When this row was first landed.';
comment on column core.products.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.products.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.products.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.products.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
create table if not exists core.suppliers (
  connection_id     text not null,
  supplier_id       text not null,
  name              text,
  endpoint          text,
  website           text,
  email             text,
  telephone         text,
  address           text,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint
);
comment on table core.suppliers is 'The company whose products a connection sells. Its contact data is a company''s, not a person''s. One row: one supplier of one connection.';
comment on column core.suppliers.connection_id is 'The connection it was seen through.';
comment on column core.suppliers.supplier_id is 'OCTO supplier id.';
comment on column core.suppliers.name is 'Name.';
comment on column core.suppliers.endpoint is 'Base URL the supplier states.';
comment on column core.suppliers.website is 'Web site.';
comment on column core.suppliers.email is 'Public e-mail address.';
comment on column core.suppliers.telephone is 'Public telephone number.';
comment on column core.suppliers.address is 'Postal address.';
comment on column core.suppliers.first_seen_at_utc is 'When this row was first landed.';
comment on column core.suppliers.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.suppliers.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.suppliers.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.suppliers.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
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
comment on column core.unit_prices.valid_from_utc is 'Since when we saw this price.';
comment on column core.unit_prices.valid_to_utc is 'Until when; null = still.';
comment on column core.unit_prices.is_current is 'Whether it is the price now.';
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
  row_hash          bigint
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
comment on column core.units.first_seen_at_utc is 'When this row was first landed.';
comment on column core.units.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column core.units.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column core.units.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column core.units.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
create table if not exists ops.absences (
  connection_id       text not null,
  table_name          text not null,
  key                 text not null,
  resource            text,
  subject_key         text,
  misses              integer,
  request_seq         bigint,
  first_missed_at_utc timestamptz
);
comment on table ops.absences is 'Rows that complete answers no longer had; two misses by different requests prove a deletion. One row: one row of one table.';
comment on column ops.absences.connection_id is 'The connection.';
comment on column ops.absences.table_name is 'The table, with schema.';
comment on column ops.absences.key is 'JSON array of the row''s key, without the connection.';
comment on column ops.absences.resource is 'Kind of the subject that is asked again.';
comment on column ops.absences.subject_key is 'Key of the subject that is asked again.';
comment on column ops.absences.misses is 'How many different requests did not show it.';
comment on column ops.absences.request_seq is 'The last of them.';
comment on column ops.absences.first_missed_at_utc is 'When it was first missed.';
create table if not exists ops.coverage (
  connection_id        text not null,
  resource             text not null,
  key                  text not null,
  product_id           text,
  option_id            text,
  travel_month         text,
  window_start         date,
  window_end           date,
  verified_at_utc      timestamptz,
  source               text,
  row_count            bigint,
  is_complete          boolean,
  missing_capabilities text,
  request_seq          bigint,
  answer_hash          text,
  run_id               text
);
comment on table ops.coverage is 'What was verified, when, by which road: the proof of completeness. One row: one subject: the smallest thing that can be fetched again on its own.';
comment on column ops.coverage.connection_id is 'The connection.';
comment on column ops.coverage.resource is 'supplier, products, product, availability, bookings or booking.';
comment on column ops.coverage.key is 'JSON array of ids and months, as in the journal.';
comment on column ops.coverage.product_id is 'OCTO product id, where the subject has one.';
comment on column ops.coverage.option_id is 'OCTO option id, where the subject has one.';
comment on column ops.coverage.travel_month is 'YYYY-MM, where the subject has one.';
comment on column ops.coverage.window_start is 'First day asked for.';
comment on column ops.coverage.window_end is 'Last day asked for.';
comment on column ops.coverage.verified_at_utc is 'When the answer was asked for.';
comment on column ops.coverage.source is 'notification, schedule, confirm, repair or user.';
comment on column ops.coverage.row_count is 'Records in the answer.';
comment on column ops.coverage.is_complete is 'Whether every record of the answer landed.';
comment on column ops.coverage.missing_capabilities is 'Capabilities asked for but not served; their columns kept old values.';
comment on column ops.coverage.request_seq is 'Journal number of the request; a lower one never overwrites a higher one.';
comment on column ops.coverage.answer_hash is 'Hash of the answer''s bytes; an equal answer only renews this row.';
comment on column ops.coverage.run_id is 'The run that landed it.';
create table if not exists ops.quarantine (
  connection_id text not null,
  resource      text not null,
  key           text not null,
  path          text not null,
  reason        text,
  seen_count    bigint,
  first_at_utc  timestamptz,
  last_at_utc   timestamptz
);
comment on table ops.quarantine is 'Subjects that keep failing and records that do not fit, with the reason; everything else went on. One row: one subject or one field of one record.';
comment on column ops.quarantine.connection_id is 'The connection.';
comment on column ops.quarantine.resource is 'Kind of the subject or record.';
comment on column ops.quarantine.key is 'Its key.';
comment on column ops.quarantine.path is 'Where in the record; '''' for a whole subject.';
comment on column ops.quarantine.reason is 'Why, in a sentence; never a value.';
comment on column ops.quarantine.seen_count is 'How often.';
comment on column ops.quarantine.first_at_utc is 'First seen.';
comment on column ops.quarantine.last_at_utc is 'Last seen.';
create table if not exists ops.runs (
  run_id         text not null,
  command        text,
  pipeline       text,
  status         text,
  started_at_utc timestamptz,
  ended_at_utc   timestamptz,
  requests       bigint,
  subjects       bigint,
  unchanged      bigint,
  rows_written   bigint,
  error          text
);
comment on table ops.runs is 'Runs of octo-sync that landed something. One row: one run.';
comment on column ops.runs.run_id is 'The run.';
comment on column ops.runs.command is 'What was called.';
comment on column ops.runs.pipeline is 'The pipeline''s name.';
comment on column ops.runs.status is 'running, ok, partial, failed, interrupted or killed.';
comment on column ops.runs.started_at_utc is 'Start.';
comment on column ops.runs.ended_at_utc is 'End; null while running.';
comment on column ops.runs.requests is 'Calls to services, retries included.';
comment on column ops.runs.subjects is 'Subjects made clean.';
comment on column ops.runs.unchanged is 'Of these, answers equal to the last ones.';
comment on column ops.runs.rows_written is 'Rows inserted, changed or marked deleted.';
comment on column ops.runs.error is 'What went wrong, in a sentence.';
create table if not exists ops.schema_drift (
  connection_id     text not null,
  resource          text not null,
  kind              text not null,
  name              text not null,
  seen_count        bigint,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz
);
comment on table ops.schema_drift is 'What services send that no table expects: new fields, new enum values, ignored capabilities. One row: one finding of one connection.';
comment on column ops.schema_drift.connection_id is 'The connection.';
comment on column ops.schema_drift.resource is 'Noun.';
comment on column ops.schema_drift.kind is 'field, value, capability, window or count.';
comment on column ops.schema_drift.name is 'The field, field=value, capability or remark.';
comment on column ops.schema_drift.seen_count is 'How many answers or rows showed it.';
comment on column ops.schema_drift.first_seen_at_utc is 'First seen.';
comment on column ops.schema_drift.last_seen_at_utc is 'Last seen.';
create table if not exists ops.schema_migrations (
  version         integer not null,
  applied_at_utc  timestamptz,
  program_version text
);
comment on table ops.schema_migrations is 'Versions of the warehouse''s schema that were applied. One row: one version.';
comment on column ops.schema_migrations.version is 'Number of the version.';
comment on column ops.schema_migrations.applied_at_utc is 'When.';
comment on column ops.schema_migrations.program_version is 'By which octo-sync.';
create table if not exists ops.writer (
  fence  bigint not null,
  owner  text
);
comment on table ops.writer is 'The fencing token of the last writer; a landing with a lower one is refused (R9). One row: one row.';
comment on column ops.writer.fence is 'The token.';
comment on column ops.writer.owner is 'Who holds it.';
create table if not exists private.booking_contacts (
  connection_id     text not null,
  booking_uuid      text not null,
  unit_item_uuid    text not null,
  full_name         text,
  first_name        text,
  last_name         text,
  email_address     text,
  phone_number      text,
  country           text,
  postal_code       text,
  locales           text,
  notes             text,
  erased_at_utc     timestamptz,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint
);
comment on table private.booking_contacts is 'Who booked and who travels: personal data, only in the private file. One row: one contact: of the booking (unit_item_uuid '''') or of one ticket.';
comment on column private.booking_contacts.connection_id is 'The connection it was seen through.';
comment on column private.booking_contacts.booking_uuid is 'OCTO booking uuid.';
comment on column private.booking_contacts.unit_item_uuid is 'OCTO unit item uuid; '''' = the lead contact of the booking.';
comment on column private.booking_contacts.full_name is 'Full name.';
comment on column private.booking_contacts.first_name is 'First name.';
comment on column private.booking_contacts.last_name is 'Last name.';
comment on column private.booking_contacts.email_address is 'E-mail address.';
comment on column private.booking_contacts.phone_number is 'Telephone number.';
comment on column private.booking_contacts.country is 'Country code.';
comment on column private.booking_contacts.postal_code is 'Postal code.';
comment on column private.booking_contacts.locales is 'JSON array of preferred languages.';
comment on column private.booking_contacts.notes is 'Free-text notes.';
comment on column private.booking_contacts.erased_at_utc is 'When this person was forgotten; null otherwise.';
comment on column private.booking_contacts.first_seen_at_utc is 'When this row was first landed.';
comment on column private.booking_contacts.last_seen_at_utc is 'When this row was last written. An unchanged answer writes nothing: ops.coverage says when it was last verified.';
comment on column private.booking_contacts.is_deleted is 'Whether the service was proven, twice, to no longer have it.';
comment on column private.booking_contacts.deleted_at_utc is 'When the deletion was proven; null while the row lives.';
comment on column private.booking_contacts.row_hash is 'Hash of the row''s content as received; only ever compared with itself.';
create table if not exists raw.records (
  connection_id  text not null,
  resource       text not null,
  key            text not null,
  payload        text,
  payload_hash   text,
  fetched_at_utc timestamptz not null,
  source         text
);
comment on table raw.records is 'Payloads as received, one row per changed payload: personal data, only in the private file. One row: one payload of one supplier, product or booking.';
comment on column raw.records.connection_id is 'The connection.';
comment on column raw.records.resource is 'supplier, product or booking.';
comment on column raw.records.key is 'Its id; for a product with the language.';
comment on column raw.records.payload is 'JSON as received.';
comment on column raw.records.payload_hash is 'Hash of its bytes.';
comment on column raw.records.fetched_at_utc is 'When it was received.';
comment on column raw.records.source is 'notification, schedule, confirm, repair or user.';
