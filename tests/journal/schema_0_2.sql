-- The journal of octo-sync 0.2, as SQLite was told to make it. Never edited: see tests/journal/test_schema.py.

CREATE TABLE schema_version (
  version INTEGER NOT NULL,
  applied_at TEXT NOT NULL,
  PRIMARY KEY (version)
) STRICT;

CREATE TABLE counters (
  name TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (name),
  CONSTRAINT counter_not_negative CHECK (value >= 0)
) STRICT;

CREATE TABLE subjects (
  id INTEGER NOT NULL,
  connection TEXT NOT NULL,
  kind TEXT NOT NULL,
  "key" TEXT NOT NULL,
  wanted_seq INTEGER NOT NULL,
  landed_seq INTEGER DEFAULT 0 NOT NULL,
  priority INTEGER DEFAULT 0 NOT NULL,
  source TEXT NOT NULL,
  marked_at TEXT NOT NULL,
  due_at TEXT,
  landed_at TEXT,
  attempts INTEGER DEFAULT 0 NOT NULL,
  failed_at TEXT,
  error_code TEXT,
  error_message TEXT,
  quarantined_at TEXT,
  run_id TEXT,
  kind_rank INTEGER GENERATED ALWAYS AS (CASE kind WHEN 'subscription' THEN 0 WHEN 'supplier' THEN 1 WHEN 'products' THEN 2 WHEN 'product' THEN 3 WHEN 'availability' THEN 4 WHEN 'bookings' THEN 5 WHEN 'booking' THEN 6 ELSE 7 END) STORED,
  month TEXT GENERATED ALWAYS AS (CASE WHEN kind IN ('availability', 'bookings') THEN substr("key", length("key") - 8, 7) ELSE '' END) STORED,
  PRIMARY KEY (id),
  CONSTRAINT subject_once UNIQUE (connection, kind, "key"),
  CONSTRAINT subject_named CHECK (length(connection) > 0 AND length(kind) > 0 AND length(source) > 0),
  CONSTRAINT key_is_json CHECK (json_valid("key")),
  CONSTRAINT landed_at_most_wanted CHECK (landed_seq >= 0 AND wanted_seq >= landed_seq),
  CONSTRAINT attempts_not_negative CHECK (attempts >= 0),
  CONSTRAINT clean_has_no_trouble CHECK (wanted_seq > landed_seq OR (attempts = 0 AND due_at IS NULL AND error_code IS NULL AND quarantined_at IS NULL)),
  CONSTRAINT quarantine_has_a_reason CHECK (quarantined_at IS NULL OR error_code IS NOT NULL)
) STRICT;

CREATE INDEX subjects_quarantined ON subjects (quarantined_at) WHERE quarantined_at IS NOT NULL;

CREATE INDEX subjects_dirty ON subjects (priority DESC, kind_rank, month, "key", connection, kind, due_at) WHERE wanted_seq > landed_seq AND quarantined_at IS NULL;

CREATE TABLE quarantined_records (
  id INTEGER NOT NULL,
  connection TEXT NOT NULL,
  resource TEXT NOT NULL,
  "key" TEXT NOT NULL,
  path TEXT NOT NULL,
  reason TEXT NOT NULL,
  payload_digest TEXT NOT NULL,
  subject_kind TEXT,
  subject_key TEXT,
  count INTEGER DEFAULT 1 NOT NULL,
  first_at TEXT NOT NULL,
  last_at TEXT NOT NULL,
  run_id TEXT NOT NULL,
  PRIMARY KEY (id),
  CONSTRAINT record_once UNIQUE (connection, resource, "key", path),
  CONSTRAINT record_named CHECK (length(connection) > 0 AND length(resource) > 0),
  CONSTRAINT record_counted CHECK (count >= 1),
  CONSTRAINT record_subject_whole CHECK ((subject_kind IS NULL) = (subject_key IS NULL))
) STRICT;

CREATE TABLE runs (
  id INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  command TEXT NOT NULL,
  pipeline TEXT NOT NULL,
  fence INTEGER NOT NULL,
  options TEXT NOT NULL,
  status TEXT DEFAULT 'running' NOT NULL,
  started_at TEXT NOT NULL,
  ended_at TEXT,
  counts TEXT DEFAULT '{}' NOT NULL,
  error TEXT,
  PRIMARY KEY (id),
  CONSTRAINT run_once UNIQUE (run_id),
  CONSTRAINT run_status_known CHECK (status IN ('running', 'ok', 'partial', 'failed', 'interrupted', 'killed')),
  CONSTRAINT run_ends_once CHECK ((status = 'running') = (ended_at IS NULL)),
  CONSTRAINT run_json CHECK (json_valid(options) AND json_valid(counts))
) STRICT;

CREATE INDEX runs_open ON runs (id) WHERE status = 'running';

CREATE TABLE leases (
  name TEXT NOT NULL,
  fence INTEGER NOT NULL,
  owner TEXT NOT NULL,
  pid INTEGER NOT NULL,
  host TEXT NOT NULL,
  acquired_at TEXT NOT NULL,
  released_at TEXT,
  PRIMARY KEY (name),
  CONSTRAINT fence_not_negative CHECK (fence >= 0)
) STRICT;

CREATE TABLE settings (
  connection TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  changed_at TEXT NOT NULL,
  PRIMARY KEY (connection, name),
  CONSTRAINT setting_named CHECK (length(name) > 0)
) STRICT;

CREATE TABLE deliveries (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  connection TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  received_at TEXT NOT NULL,
  type TEXT NOT NULL,
  reading TEXT NOT NULL,
  subscription TEXT NOT NULL,
  marks INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  body BLOB NOT NULL,
  CONSTRAINT delivery_named CHECK (length(connection) > 0),
  CONSTRAINT delivery_counted CHECK (marks >= 0 AND seq >= 0)
) STRICT;

CREATE INDEX deliveries_by_time ON deliveries (connection, received_at);

CREATE TABLE timers (
  connection TEXT NOT NULL,
  kind TEXT NOT NULL,
  "key" TEXT NOT NULL,
  name TEXT NOT NULL,
  due_at TEXT NOT NULL,
  source TEXT NOT NULL,
  PRIMARY KEY (connection, kind, "key", name),
  CONSTRAINT timer_named CHECK (length(connection) > 0 AND length(kind) > 0 AND length(name) > 0 AND length(source) > 0),
  CONSTRAINT timer_key_is_json CHECK (json_valid("key"))
) STRICT;

CREATE INDEX timers_due ON timers (due_at);

CREATE TABLE endpoints (
  id INTEGER NOT NULL,
  endpoint TEXT NOT NULL,
  connection TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  state TEXT DEFAULT 'pending' NOT NULL,
  subscription_id TEXT,
  created_at TEXT NOT NULL,
  seen_at TEXT,
  refused_at TEXT,
  retired_at TEXT,
  PRIMARY KEY (id),
  CONSTRAINT endpoint_once UNIQUE (endpoint),
  CONSTRAINT endpoint_named CHECK (length(endpoint) >= 32 AND length(connection) > 0),
  CONSTRAINT endpoint_secret_hashed CHECK (length(secret_hash) = 64 AND ltrim(secret_hash, '0123456789abcdef') = ''),
  CONSTRAINT endpoint_state_known CHECK (state IN ('pending', 'active', 'retired')),
  CONSTRAINT endpoint_retires_once CHECK ((state = 'retired') = (retired_at IS NOT NULL))
) STRICT;

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
  name TEXT NOT NULL,
  first_seen_at TEXT NOT NULL,
  last_seen_at TEXT NOT NULL,
  resolved_at TEXT,
  id INTEGER NOT NULL,
  run_id TEXT NOT NULL,
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
