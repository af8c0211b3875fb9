-- name: core.availability_history
-- grain: One version of one departure or day that has changed.
-- description: What departures and open days were before they changed. Most never change, so one without rows here has been as core.availability shows it since its first_seen_at_utc; its first change writes what it was as version 1 and what it is now as version 2. A last version that is closed: it was proven gone then.
-- key: connection_id, product_id, option_id, availability_id, version_no
-- landing: one row a version of a row in core.availability, written with it
-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.
create table if not exists core.availability_history (
  connection_id   text not null,
  product_id      text not null,
  option_id       text not null,
  availability_id text not null,
  version_no      bigint not null,
  valid_from_utc  timestamptz,
  valid_to_utc    timestamptz,
  is_current      boolean,
  changed_fields  text,
  source          text,
  local_date      date,
  status          text,
  is_available    boolean,
  vacancies       bigint,
  capacity        bigint
);
comment on table core.availability_history is 'What departures and open days were before they changed. Most never change, so one without rows here has been as core.availability shows it since its first_seen_at_utc; its first change writes what it was as version 1 and what it is now as version 2. A last version that is closed: it was proven gone then. One row: one version of one departure or day that has changed.';
comment on column core.availability_history.connection_id is 'The connection it was seen through.';
comment on column core.availability_history.product_id is 'OCTO product id.';
comment on column core.availability_history.option_id is 'OCTO option id.';
comment on column core.availability_history.availability_id is 'OCTO availability id; unique inside its option only.';
comment on column core.availability_history.version_no is 'Number of the version of this row, from 1, without a gap.';
comment on column core.availability_history.valid_from_utc is 'Since when this copy said so.';
comment on column core.availability_history.valid_to_utc is 'Until when, that instant not included; null = still.';
comment on column core.availability_history.is_current is 'Whether it says so now; none does of a row that was proven gone.';
comment on column core.availability_history.changed_fields is 'What differs from the version before: column names by the alphabet, comma-separated. '''' = the first version; is_deleted among them = it was proven gone, and came back.';
comment on column core.availability_history.source is 'Why it was looked at: schedule, notification, confirm, repair, timer or user. '''' = not noted: it was there before its versions were kept.';
comment on column core.availability_history.local_date is 'Travel date at the venue.';
comment on column core.availability_history.status is 'AVAILABLE, LIMITED, FREESALE, SOLD_OUT, CLOSED or a newer one.';
comment on column core.availability_history.is_available is 'Whether it can be booked now.';
comment on column core.availability_history.vacancies is 'Places left; null when unlimited or not told.';
comment on column core.availability_history.capacity is 'Places in all; null when unlimited or not told.';
