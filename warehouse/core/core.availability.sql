-- name: core.availability
-- grain: One departure (START_TIME) or one day (OPENING_HOURS) of an option.
-- description: Departures and open days as the service offers them to this token.
-- key: connection_id, product_id, option_id, availability_id
-- landing: merged by key; deletions are marked, never made
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
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
  oddities          text,
  first_seen_at_utc timestamptz,
  last_seen_at_utc  timestamptz,
  is_deleted        boolean,
  deleted_at_utc    timestamptz,
  row_hash          bigint,
  stale_columns     text
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
comment on column core.availability.oddities is 'What its record said and no column can hold, rule:field, comma-separated: see marts.data_quality. Null: nothing.';
comment on column core.availability.first_seen_at_utc is 'When this row was first stored.';
comment on column core.availability.last_seen_at_utc is 'When this row last changed; ops.coverage says when it was last verified.';
comment on column core.availability.is_deleted is 'Deleted at the service; two requests proved it.';
comment on column core.availability.deleted_at_utc is 'When the deletion was proven.';
comment on column core.availability.row_hash is 'Hash of the row''s content as received.';
comment on column core.availability.stale_columns is 'What is older than the row''s last verification, because later answers had no value for it: columns or detail tables, comma-separated; * = all of it. Null: nothing.';
