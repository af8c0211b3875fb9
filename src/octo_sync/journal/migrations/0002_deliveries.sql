-- 0002: what services told us, and what is to be looked at again later.

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
