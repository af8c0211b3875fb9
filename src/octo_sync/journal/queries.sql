-- The journal's hand-tuned statements, each named and described. `journal/sql.py` reads them.
--
-- `?1`-style parameters are numbered because one value is often used more than once. Lists travel as one JSON text
-- (`json_each`), so that a statement's text never depends on how many there are. The condition
-- `wanted_seq > landed_seq AND quarantined_at IS NULL` is spelled exactly as in the index `subjects_dirty`: SQLite uses a
-- partial index only then. What stands in braces is another part of this file, perhaps about a COLUMN.
--
-- Both engines run these texts: they are SQLite's, and `translation.py` spells parameters, lists and JSON as PostgreSQL does.
-- So what both understand is preferred: columns of the row that is there are qualified (`subjects.priority`), a parameter that
-- may be null and is only compared is cast, counts are `count(*) FILTER`, and no statement touches a row twice.

-- name: SOURCE_RANK
-- Which of several unanswered marks names the subject's source. A notification outranks all, because it alone asks for
-- confirming fetches (R5) and must not be hidden by a nightly schedule that marks the same subject a second later.
CASE COLUMN WHEN 'notification' THEN 5 WHEN 'user' THEN 4 WHEN 'repair' THEN 3 WHEN 'confirm' THEN 2
  WHEN 'timer' THEN 1 ELSE 0 END

-- name: NEXT_NUMBERS
-- Gives out ?1 numbers and returns the last of them. The caller's transaction makes them durable.
UPDATE counters SET value = value + ?1 WHERE name = 'seq' RETURNING value

-- name: MARK_RULES
-- How a mark meets the subject that is there:
-- - Clean or unknown: everything is set anew.
-- - Dirty: the earliest due_at and the highest priority stand; null is the earliest there is.
-- - Backing off (attempts > 0): the retry's time stands, however often the subject is marked, so that a stream of
--   notifications never hammers a service that has asked for patience. A person's mark goes through.
-- - Quarantined: a person's mark lifts the quarantine and forgives the failures; a notification, its confirming looks (a few
--   for each) or a repair is evidence that something changed, so it lifts it too but leaves the failures counted: one more
--   try, not N. A schedule or a timer, which come again for ever, only make the number grow.
ON CONFLICT (connection, kind, "key") DO UPDATE SET
  wanted_seq = excluded.wanted_seq,
  priority = CASE
    WHEN subjects.wanted_seq = subjects.landed_seq OR excluded.priority > subjects.priority
    THEN excluded.priority ELSE subjects.priority END,
  source = CASE
    WHEN subjects.wanted_seq = subjects.landed_seq
      OR {SOURCE_RANK:excluded.source} > {SOURCE_RANK:subjects.source}
    THEN excluded.source ELSE subjects.source END,
  marked_at = CASE
    WHEN subjects.wanted_seq = subjects.landed_seq THEN excluded.marked_at ELSE subjects.marked_at END,
  due_at = CASE
    WHEN subjects.wanted_seq = subjects.landed_seq THEN excluded.due_at
    WHEN subjects.quarantined_at IS NOT NULL AND excluded.source IN ('user', 'notification', 'confirm', 'repair')
    THEN excluded.due_at
    WHEN subjects.quarantined_at IS NOT NULL OR (subjects.attempts > 0 AND excluded.source <> 'user')
    THEN subjects.due_at
    WHEN excluded.due_at IS NULL OR subjects.due_at > excluded.due_at THEN excluded.due_at
    ELSE subjects.due_at END,
  attempts = CASE WHEN excluded.source = 'user' THEN 0 ELSE subjects.attempts END,
  quarantined_at = CASE
    WHEN excluded.source IN ('user', 'notification', 'confirm', 'repair') THEN NULL ELSE subjects.quarantined_at END

-- name: MARK
-- One mark of many subjects: ?1 a JSON array of [connection, kind, key], none of them twice, ?2 number, ?3 priority,
-- ?4 source, ?5 now, ?6 due_at or null. In one step, because each one is a chance to lose the interpreter to another thread.
INSERT INTO subjects (connection, kind, "key", wanted_seq, priority, source, marked_at, due_at)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'), ?2, ?3, ?4, ?5, ?6
FROM json_each(?1) WHERE true {MARK_RULES}

-- name: KNOWN_OPTIONS
-- The options of products, by the availability subjects that there are: ?1 a JSON array of [connection, first, behind],
-- the range of keys that a product's subjects lie in. One row, a JSON array of [index in ?1, beginning of the key]: the
-- key without its month, `["product","option",`.
SELECT json_group_array(json_array(number, beginning)) FROM (
  SELECT DISTINCT wanted."key" AS number, substr(known."key", 1, length(known."key") - 10) AS beginning
  FROM json_each(?1) AS wanted CROSS JOIN subjects AS known
  WHERE known.connection = json_extract(wanted.value, '$[0]') AND known.kind = 'availability'
    AND known."key" >= json_extract(wanted.value, '$[1]') AND known."key" < json_extract(wanted.value, '$[2]'))

-- name: RECEIVE
-- Deliveries as received: ?1 all bodies one behind the other, ?2 a JSON array of [connection, endpoint, received at,
-- type, reading, subscription, marks, where its body begins in ?1, how long it is], ?3 number of the mark.
INSERT INTO deliveries (connection, endpoint, received_at, body, type, reading, subscription, marks, seq)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
  coalesce(substr(?1, CAST(json_extract(value, '$[7]') AS INTEGER), CAST(json_extract(value, '$[8]') AS INTEGER)), x''),
  json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'),
  CAST(json_extract(value, '$[6]') AS INTEGER), ?3
FROM json_each(?2) ORDER BY json_each.id

-- name: POSTPONE_TIMERS
-- Timers: ?1 a JSON array of [connection, kind, key, name, due at, source]. A timer that is there is moved, never
-- doubled: to the later of its times, or (?2) to the new one.
INSERT INTO timers (connection, kind, "key", name, due_at, source)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
  json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]')
FROM json_each(?1) WHERE true
ON CONFLICT (connection, kind, "key", name) DO UPDATE SET
  due_at = CASE WHEN ?2 OR excluded.due_at > timers.due_at THEN excluded.due_at ELSE timers.due_at END,
  source = excluded.source

-- name: DUE_TIMERS
-- The timers that are due, the oldest first: ?1 now, ?2 how many at most.
SELECT connection, kind, "key", name, due_at, source FROM timers
WHERE due_at <= ?1 ORDER BY due_at, connection, kind, "key", name LIMIT ?2

-- name: FIRE_TIMERS
-- Marks for timers: ?1 now, ?2 number, ?3 a JSON array of them as they were found, in the order of their keys, ?4 priority.
-- Several of one subject make one mark, from the most demanding source.
INSERT INTO subjects (connection, kind, "key", wanted_seq, priority, source, marked_at, due_at)
SELECT connection, kind, "key", ?2, ?4, source, ?1, NULL FROM (
  SELECT number, connection, kind, "key", source, row_number() OVER (
    PARTITION BY connection, kind, "key" ORDER BY {SOURCE_RANK:source} DESC) AS place
  FROM (
    SELECT json_each.id AS number, json_extract(value, '$[0]') AS connection, json_extract(value, '$[1]') AS kind,
      json_extract(value, '$[2]') AS "key", json_extract(value, '$[5]') AS source
    FROM json_each(?3)) AS due) AS ranked
WHERE place = 1 ORDER BY number {MARK_RULES}

-- name: FORGET_TIMER
-- A timer that has fired goes, unless it was moved meanwhile: connection, kind, key, name, when it was due.
DELETE FROM timers WHERE connection = ? AND kind = ? AND "key" = ? AND name = ? AND due_at = ?

-- name: DUE
-- The connections of which something is due: ?1 now, ?2 kinds (a JSON array or null for all). From one connection to the next,
-- so it takes as long as there are connections that owe something, however much they owe. Not EXISTS: PostgreSQL would join,
-- and by a plan that it made when there was little it takes seconds.
WITH RECURSIVE owing(name) AS (
  SELECT (SELECT connection FROM subjects INDEXED BY subjects_dirty
    WHERE wanted_seq > landed_seq AND quarantined_at IS NULL ORDER BY connection LIMIT 1)
  UNION ALL
  SELECT (SELECT connection FROM subjects INDEXED BY subjects_dirty
    WHERE wanted_seq > landed_seq AND quarantined_at IS NULL AND connection > owing.name ORDER BY connection LIMIT 1)
  FROM owing WHERE owing.name IS NOT NULL)
SELECT owing.name FROM owing WHERE (
  SELECT 1 FROM subjects INDEXED BY subjects_dirty
  WHERE wanted_seq > landed_seq AND quarantined_at IS NULL AND connection = owing.name
    AND (due_at IS NULL OR due_at <= ?1) AND (CAST(?2 AS TEXT) IS NULL OR kind IN (SELECT value FROM json_each(?2)))
  LIMIT 1) IS NOT NULL

-- name: CLAIM
-- The next subjects of a connection to work on: ?1 now, ?2 limit, ?3 kinds (a JSON array or null for all), ?4 connection,
-- ?5 row ids that are in work, ?6 subjects not wanted now (JSON array of [connection, kind, key]). Walks the index in
-- handing-out order and stops at the limit; nothing is sorted.
SELECT id, connection, kind, "key", wanted_seq, attempts, source
FROM subjects INDEXED BY subjects_dirty
WHERE wanted_seq > landed_seq AND quarantined_at IS NULL
  AND (due_at IS NULL OR due_at <= ?1)
  AND (CAST(?3 AS TEXT) IS NULL OR kind IN (SELECT value FROM json_each(?3)))
  AND connection = ?4
  AND id NOT IN (SELECT CAST(value AS BIGINT) FROM json_each(?5))
  AND (connection, kind, "key") NOT IN (
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?6))
ORDER BY priority DESC, kind_rank, month, "key", kind
LIMIT ?2

-- name: LANDED
-- A landing: ?1 connection, ?2 kind, ?3 key, ?4 the claim's wanted_seq, ?5 now, ?6 run, ?7 when it was claimed or null.
-- A number that grew since the claim keeps the subject dirty (R2): then the marks still unanswered were made after the
-- claim, so the claim's time is the youngest that their age can honestly be said to be. A claim older than what has
-- landed, or from another life of the journal, changes nothing.
UPDATE subjects SET
  landed_seq = ?4,
  landed_at = ?5,
  attempts = 0,
  error_code = NULL,
  error_message = NULL,
  quarantined_at = NULL,
  due_at = CASE WHEN wanted_seq > ?4 THEN due_at END,
  marked_at = CASE WHEN wanted_seq > ?4 AND ?7 > marked_at THEN ?7 ELSE marked_at END,
  run_id = ?6
WHERE connection = ?1 AND kind = ?2 AND "key" = ?3 AND landed_seq <= ?4 AND wanted_seq >= ?4

-- name: FAILED
-- A failure: ?1 connection, ?2 kind, ?3 key, ?4 the claim's wanted_seq, ?5 now, ?6 run, ?7 code, ?8 message, ?9 retry
-- at, ?10 quarantine. A mark made during the failing fetch is news that this failure does not answer, so it is tried
-- once before the quarantine. A subject that has landed meanwhile is left alone.
UPDATE subjects SET
  attempts = attempts + 1,
  failed_at = ?5,
  error_code = ?7,
  error_message = ?8,
  due_at = ?9,
  quarantined_at = CASE WHEN ?10 AND wanted_seq = ?4 THEN ?5 ELSE quarantined_at END,
  run_id = ?6
WHERE connection = ?1 AND kind = ?2 AND "key" = ?3 AND landed_seq < ?4

-- name: FORGET
-- The subject does not exist any more: ?1 connection, ?2 kind, ?3 key.
DELETE FROM subjects WHERE connection = ?1 AND kind = ?2 AND "key" = ?3

-- name: SHARES
-- Who owns these connections, where several workers share the project: ?1 a list of names.
SELECT name, fence FROM leases WHERE name IN (SELECT value FROM json_each(?1)) ORDER BY name

-- name: DIRTY_COUNT
-- How much can still be worked on, now or later: ?1 kinds, ?2 connections.
SELECT count(*) FROM subjects INDEXED BY subjects_dirty
WHERE wanted_seq > landed_seq AND quarantined_at IS NULL
  AND (CAST(?1 AS TEXT) IS NULL OR kind IN (SELECT value FROM json_each(?1)))
  AND (CAST(?2 AS TEXT) IS NULL OR connection IN (SELECT value FROM json_each(?2)))

-- name: DIRTY_AMONG
-- Which of these are dirty: ?1 a JSON list of [connection, kind, key].
SELECT connection, kind, "key" FROM subjects
WHERE wanted_seq > landed_seq AND (connection, kind, "key") IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1))

-- name: UNLANDED_SINCE
-- Whether something is dirty that has landed nothing since a number, and was marked by then: ?1 number, ?2 connections.
-- A mark raises wanted_seq, so that what was marked again meanwhile may count as well: it errs on the side of waiting.
SELECT 1 FROM subjects INDEXED BY subjects_dirty
WHERE wanted_seq > landed_seq AND quarantined_at IS NULL AND landed_seq < ?1 AND source = 'schedule'
  AND connection IN (SELECT value FROM json_each(?2)) LIMIT 1

-- name: NEXT_DUE_AT
-- When the next not yet due subject becomes due: ?1 now.
SELECT min(due_at) FROM subjects INDEXED BY subjects_dirty
WHERE wanted_seq > landed_seq AND quarantined_at IS NULL AND due_at > ?1

-- name: BACKLOG
-- What is owed, per connection and kind: ?1 now.
SELECT connection, kind,
  count(*) FILTER (WHERE quarantined_at IS NULL) AS dirty,
  count(*) FILTER (WHERE quarantined_at IS NULL AND (due_at IS NULL OR due_at <= ?1)) AS due,
  count(*) FILTER (WHERE quarantined_at IS NOT NULL) AS quarantined
FROM subjects WHERE wanted_seq > landed_seq
GROUP BY connection, kind ORDER BY connection, min(kind_rank)

-- name: KIND_COUNTS
-- What the subjects of one connection (?1) come to, by kind: ?2 now, ?3 and ?4 the first and last month of availability, ?5 and
-- ?6 of bookings, ?7 and ?8 products whose availability alone is, or is not, kept (JSON arrays or null). Counted inside the
-- horizon and without what is in quarantine: subjects, verified ones, oldest and newest verification, since when the oldest
-- unverified one is wanted. Then, wherever it lies: owed, due, the oldest unanswered mark.
SELECT kind, count(*) FILTER (WHERE counts) AS subjects, count(landed_at) FILTER (WHERE counts) AS verified,
  min(landed_at) FILTER (WHERE counts) AS oldest, max(landed_at) FILTER (WHERE counts) AS newest,
  min(marked_at) FILTER (WHERE counts AND landed_at IS NULL) AS unverified_since,
  count(*) FILTER (WHERE is_owed) AS owed, count(*) FILTER (WHERE is_owed AND (due_at IS NULL OR due_at <= ?2)) AS due,
  min(marked_at) FILTER (WHERE is_owed) AS oldest_mark
FROM (
  SELECT kind, landed_at, marked_at, due_at,
    quarantined_at IS NULL AND CASE kind
      WHEN 'availability' THEN month BETWEEN ?3 AND ?4 WHEN 'bookings' THEN month BETWEEN ?5 AND ?6
      ELSE 1 = 1 END AS counts,
    quarantined_at IS NULL AND wanted_seq > landed_seq AS is_owed
  FROM subjects
  WHERE connection = ?1 AND (kind <> 'availability'
    OR ((CAST(?7 AS TEXT) IS NULL OR json_extract("key", '$[0]') IN (SELECT value FROM json_each(?7)))
      AND (CAST(?8 AS TEXT) IS NULL OR json_extract("key", '$[0]') NOT IN (SELECT value FROM json_each(?8)))))
) AS looked
GROUP BY kind

-- name: QUARANTINE
-- All that is left alone: subjects first, each by age; ?1 an empty text, which every instant is greater than.
SELECT 'subject-' || id AS id, id AS number, 'subject' AS what, connection, kind AS resource, "key", '' AS path,
  error_code || ': ' || coalesce(error_message, '') AS reason, attempts AS count, quarantined_at AS first_at,
  coalesce(failed_at, marked_at) AS last_at, run_id, kind AS subject_kind, "key" AS subject_key
FROM subjects INDEXED BY subjects_quarantined WHERE quarantined_at > ?1
UNION ALL
SELECT 'record-' || id, id, 'record', connection, resource, "key", path, reason, count, first_at, last_at, run_id,
  subject_kind, subject_key
FROM quarantined_records ORDER BY what DESC, first_at, number

-- name: QUARANTINE_COUNTS
-- What is left alone, per connection and resource: ?1 an empty text, which every instant is greater than.
SELECT connection, resource, CAST(sum(entries) AS BIGINT) AS entries FROM (
  SELECT connection, kind AS resource, count(*) AS entries
  FROM subjects INDEXED BY subjects_quarantined WHERE quarantined_at > ?1 GROUP BY connection, kind
  UNION ALL
  SELECT connection, resource, count(*) AS entries FROM quarantined_records GROUP BY connection, resource
) AS both_kinds GROUP BY connection, resource ORDER BY connection, resource

-- name: DIFFERENCE_COUNTS
-- Open differences per reconciliation and bucket: all, those that somebody lets be, and when the oldest of the others was first
-- seen, or the oldest of all. An acceptance holds up to its last day, as in marts.recon_open.
SELECT name, bucket, count(*) AS open, count(*) FILTER (WHERE is_accepted) AS accepted,
  coalesce(min(first_seen_at) FILTER (WHERE NOT is_accepted), min(first_seen_at)) AS oldest
FROM (
  SELECT d.*, a.id IS NOT NULL AND (a.until IS NULL OR a.until >= substr(d.last_seen_at, 1, 10)) AS is_accepted
  FROM differences d LEFT JOIN acceptances a ON a.name = d.name AND a."key" = d."key"
  WHERE d.resolved_at IS NULL
) AS d
GROUP BY name, bucket ORDER BY name, bucket

-- name: QUARANTINE_RECORD
-- One record that did not land: ?1 connection, ?2 resource, ?3 key, ?4 path, ?5 reason, ?6 subject kind,
-- ?7 subject key, ?8 now, ?9 run. Seen again: counted, with the newest reason.
INSERT INTO quarantined_records
  (connection, resource, "key", path, reason, payload_digest, subject_kind, subject_key, first_at, last_at, run_id)
VALUES (?1, ?2, ?3, ?4, ?5, '', ?6, ?7, ?8, ?8, ?9)
ON CONFLICT (connection, resource, "key", path) DO UPDATE SET
  reason = excluded.reason, last_at = excluded.last_at,
  count = quarantined_records.count + 1, run_id = excluded.run_id,
  subject_kind = coalesce(excluded.subject_kind, quarantined_records.subject_kind),
  subject_key = coalesce(excluded.subject_key, quarantined_records.subject_key)

-- name: DROP_TIMER
-- A timer goes: connection, kind, key, name.
DELETE FROM timers WHERE connection = ? AND kind = ? AND "key" = ? AND name = ?

-- name: DELIVERY_COUNTS
-- The rhythm: deliveries per connection and hour (UTC) since ?1, of a connection or all (?2).
SELECT connection, substr(received_at, 1, 13) || ':00:00Z' AS hour, count(*) AS deliveries,
  count(*) FILTER (WHERE reading <> '') AS odd
FROM deliveries WHERE received_at >= ?1 AND (CAST(?2 AS TEXT) IS NULL OR connection = ?2)
GROUP BY connection, hour ORDER BY connection, hour

-- name: PRUNE_DELIVERIES
-- Deliveries received before ?1 go, ?2 at most at a time, so that no other writer waits for long. By connection, because
-- the index is.
DELETE FROM deliveries WHERE id IN (
  WITH RECURSIVE names (name) AS (
    SELECT min(connection) FROM deliveries
    UNION ALL
    SELECT (SELECT min(connection) FROM deliveries WHERE connection > name) FROM names WHERE name IS NOT NULL)
  SELECT deliveries.id FROM names CROSS JOIN deliveries
  WHERE deliveries.connection = names.name AND received_at < ?1 LIMIT ?2)

-- name: STORE_DIFFERENCES
-- What a comparison found: ?1 a JSON array of [key, bucket, field, rule, connection, booking uuid, value here, value there,
-- delta, currency, reason, code, day, both rows], ?2 name, ?3 run, ?4 now. In one step, because all other writers wait
-- meanwhile. What was open keeps its age; what had been resolved is open anew.
INSERT INTO differences (name, "key", bucket, field, rule, connection, booking_uuid, here_value, there_value, delta_amount,
  currency, reason, code, day, both_rows, first_seen_at, last_seen_at, run_id)
SELECT ?2, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
  json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]'),
  json_extract(value, '$[7]'), json_extract(value, '$[8]'), json_extract(value, '$[9]'), json_extract(value, '$[10]'),
  json_extract(value, '$[11]'), json_extract(value, '$[12]'), json_extract(value, '$[13]'), ?4, ?4, ?3
FROM json_each(?1) WHERE true
ON CONFLICT (name, "key", bucket, field) DO UPDATE SET
  rule = excluded.rule, connection = excluded.connection, booking_uuid = excluded.booking_uuid,
  here_value = excluded.here_value, there_value = excluded.there_value, delta_amount = excluded.delta_amount,
  currency = excluded.currency, reason = excluded.reason, code = excluded.code, day = excluded.day,
  both_rows = excluded.both_rows,
  first_seen_at = CASE WHEN differences.resolved_at IS NULL THEN differences.first_seen_at ELSE excluded.first_seen_at END,
  last_seen_at = excluded.last_seen_at, run_id = excluded.run_id, resolved_at = NULL

-- name: RENEW_DIFFERENCES
-- What a run has seen and cannot tell yet: ?1 a JSON array of [key, bucket, field], ?2 name, ?3 run, ?4 now. What was told
-- before stays as it was told; what is not open stays unknown.
UPDATE differences SET last_seen_at = ?4, run_id = ?3
WHERE name = ?2 AND resolved_at IS NULL AND ("key", bucket, field) IN (
  SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?1))

-- name: RESOLVE_DIFFERENCES
-- What a run did not find any more: ?1 name, ?2 run, ?3 now, ?4 and ?5 the first and last day that it looked at, ?6 runs of
-- which what they found without a day stays open.
UPDATE differences SET resolved_at = ?3
WHERE name = ?1 AND resolved_at IS NULL AND run_id <> ?2 AND (
  day BETWEEN ?4 AND ?5 OR (day IS NULL AND run_id NOT IN (SELECT value FROM json_each(?6))))

-- name: NOTE
-- A setting: connection, name, value, now. What follows says what becomes of one that is there.
INSERT INTO settings (connection, name, value, changed_at) VALUES (?, ?, ?, ?) ON CONFLICT (connection, name)

-- name: KEEP_LEASE
-- Nobody else takes what has this name-plate until the transaction ends.
SELECT fence FROM leases WHERE name = ? /* FOR UPDATE */

-- name: TAKE_SHARE
-- The next fence, with a name-plate: ?1 name, ?2 owner, ?3 pid, ?4 host, ?5 now.
INSERT INTO leases (name, fence, owner, pid, host, acquired_at, released_at)
SELECT CAST(?1 AS TEXT), max(fence) + 1, ?2, ?3, ?4, ?5, NULL FROM leases WHERE true
ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, owner = excluded.owner, pid = excluded.pid, host = excluded.host,
  acquired_at = excluded.acquired_at, released_at = NULL
RETURNING fence

-- name: WORKER
-- A worker of several: name, owner, pid, host, now. It owns nothing by that.
INSERT INTO leases (name, fence, owner, pid, host, acquired_at, released_at) VALUES (?, 0, ?, ?, ?, ?, NULL)

-- name: NO_WORKER
-- It has ended: name.
DELETE FROM leases WHERE name = ?

-- name: TAKE_LEASE
-- The one writer's: owner, pid, host, now.
UPDATE leases SET fence = (SELECT max(fence) FROM leases) + 1, owner = ?, pid = ?, host = ?, acquired_at = ?, released_at = NULL
WHERE name = 'writer' RETURNING fence

-- name: CLOSE_KILLED
-- Runs that a killed owner left open: now, why.
UPDATE runs SET status = 'killed', ended_at = ?, error = ? WHERE status = 'running'

-- name: FIRST_LEASE
-- The one that nobody has: ?1 its fence, ?2 now.
INSERT INTO leases (name, fence, owner, pid, host, acquired_at, released_at) VALUES ('writer', ?1, 'nobody', 0, '', ?2, ?2)

-- name: COUNT
-- Adds to a counter: ?1 name, ?2 how many.
INSERT INTO counters (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = counters.value + excluded.value

-- name: ENDPOINT_ACTIVE
UPDATE endpoints SET state = 'active', subscription_id = ?2 WHERE endpoint = ?1 AND state <> 'retired'

-- name: ENDPOINT_SEEN
-- The first authentic delivery came: ?1 endpoint, ?2 now, ?3 subscription as it says, or an empty text.
UPDATE endpoints SET state = 'active', seen_at = ?2, subscription_id = coalesce(subscription_id, nullif(?3, ''))
WHERE endpoint = ?1 AND state <> 'retired' AND seen_at IS NULL

-- name: ENDPOINT_REFUSED
-- The first delivery with a wrong secret came: ?1 endpoint, ?2 now.
UPDATE endpoints SET refused_at = ?2 WHERE endpoint = ?1 AND state <> 'retired' AND refused_at IS NULL

-- name: ENDPOINT_RETIRED
UPDATE endpoints SET state = 'retired', retired_at = ?2 WHERE endpoint = ?1 AND state <> 'retired'

-- name: ENDPOINT_GONE
-- The service has no such subscription any more: endpoint, subscription.
UPDATE endpoints SET subscription_id = NULL WHERE endpoint = ? AND subscription_id = ?

-- name: ABOUT
-- The newest deliveries of a connection ?1 that name ?2, at most ?3.
SELECT id FROM deliveries WHERE connection = ?1 AND instr(body, ?2) > 0 ORDER BY id DESC LIMIT ?3
