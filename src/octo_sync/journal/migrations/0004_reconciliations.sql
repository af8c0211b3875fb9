-- 0004: what comparisons with other systems found, and what somebody lets be. journal/models.py explains every column.

CREATE TABLE reconciliation_runs (
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  run_id TEXT NOT NULL,
  started_at TEXT NOT NULL,
  ended_at TEXT NOT NULL,
  window_start TEXT NOT NULL,
  window_end TEXT NOT NULL,
  here_origin TEXT NOT NULL,
  there_origin TEXT NOT NULL,
  counts TEXT NOT NULL,
  totals TEXT NOT NULL,
  verdict TEXT NOT NULL,
  differences INTEGER NOT NULL,
  new_differences INTEGER NOT NULL,
  resolved_differences INTEGER NOT NULL,
  open_differences INTEGER NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT reconciliation_once UNIQUE (name, run_id),
  CONSTRAINT reconciliation_named CHECK (length(name) > 0 AND length(run_id) > 0),
  CONSTRAINT reconciliation_verdict_known CHECK (verdict IN ('ok', 'over', 'failed')),
  CONSTRAINT reconciliation_json CHECK (json_valid(counts) AND json_valid(totals))
) STRICT;

CREATE TABLE differences (
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  "key" TEXT NOT NULL,
  bucket TEXT NOT NULL,
  field TEXT NOT NULL,
  rule TEXT,
  connection TEXT,
  booking_uuid TEXT,
  here_value TEXT,
  there_value TEXT,
  delta_amount TEXT,
  currency TEXT,
  reason TEXT NOT NULL,
  code TEXT NOT NULL,
  day TEXT,
  first_seen_at TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  run_id TEXT NOT NULL,
  resolved_at TEXT,
  PRIMARY KEY (id),
  CONSTRAINT difference_once UNIQUE (name, "key", bucket, field),
  CONSTRAINT difference_named CHECK (length(name) > 0 AND length(bucket) > 0)
) STRICT;

CREATE INDEX differences_open ON differences (name) WHERE resolved_at IS NULL;

CREATE TABLE acceptances (
  id INTEGER NOT NULL,
  name TEXT NOT NULL,
  "key" TEXT NOT NULL,
  note TEXT NOT NULL,
  accepted_by TEXT NOT NULL,
  accepted_at TEXT NOT NULL,
  until TEXT,
  PRIMARY KEY (id),
  CONSTRAINT acceptance_once UNIQUE (name, "key"),
  CONSTRAINT acceptance_has_a_reason CHECK (length(note) > 0 AND length(accepted_by) > 0)
) STRICT;
