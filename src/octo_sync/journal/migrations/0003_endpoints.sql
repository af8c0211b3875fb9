-- 0003: where webhooks are accepted. The same as EndpointRecord in journal/models.py, where every column is explained.

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
  CONSTRAINT endpoint_secret_hashed CHECK (length(secret_hash) = 64 AND NOT secret_hash GLOB '*[^0-9a-f]*'),
  CONSTRAINT endpoint_state_known CHECK (state IN ('pending', 'active', 'retired')),
  CONSTRAINT endpoint_retires_once CHECK ((state = 'retired') = (retired_at IS NOT NULL))
) STRICT;
