"""The program's own records: connections, coverage, runs, quarantine, drift, absences, payloads.

They are in the warehouse, not only in the journal, so that a BI tool sees how much the copy is worth.
"""

from octo_sync.tables.base import log
from octo_sync.tables.schema import Column

_CONNECTION = Column("connection_id", "text", "The connection.")

CONNECTIONS = log(
    "core.connections",
    "One token at one OCTO service.",
    "One connection of the pipeline.",
    ("connection_id",),
    _CONNECTION,
    Column("role", "text", "supplier or reseller."),
    Column("channel", "text", "Sales channel, as named in the pipeline."),
    Column("base_url", "text", "The service's base URL."),
    Column("supplier_id", "text", "OCTO supplier id behind the token."),
    Column("business_time_zone", "text", "IANA zone in which booking dates are counted."),
    Column("capabilities", "text", "Capabilities asked for, comma-separated."),
    Column("is_active", "boolean", "Whether the pipeline still has it."),
)

COVERAGE = log(
    "ops.coverage",
    "What was verified, when and how: the proof of completeness.",
    "One subject: the smallest thing that can be fetched again on its own.",
    ("connection_id", "resource", "key"),
    _CONNECTION,
    Column(
        "resource",
        "text",
        "supplier, products, product, availability, bookings or booking; open_dated: a booking without a day of travel "
        "that a list showed.",
    ),
    Column("key", "text", "JSON array of ids and months, as in the journal."),
    Column("product_id", "text", "OCTO product id, where the subject has one."),
    Column("option_id", "text", "OCTO option id, where the subject has one."),
    Column(
        "travel_month",
        "text",
        "YYYY-MM that was asked for; of bookings the month of booking where the service lists by that: "
        "marts.booking_lists says which. Of an open-dated booking the month whose list shows it.",
    ),
    Column("window_start", "date", "First day asked for."),
    Column("window_end", "date", "Last day asked for."),
    Column("verified_at_utc", "timestamptz", "When the answer was asked for."),
    Column("source", "text", "notification, schedule, confirm, repair or user."),
    Column("row_count", "bigint", "Records in the answer."),
    Column("is_complete", "boolean", "Every record of the answer was stored."),
    Column("missing_capabilities", "text", "Capabilities asked for but not served; their columns kept old values."),
    Column("request_seq", "bigint", "Journal number of the request; a lower one never overwrites a higher one."),
    Column("answer_hash", "text", "Hash of the answer's bytes; an equal answer only renews this row."),
    Column("run_id", "text", "The run that stored it."),
)

UNANSWERED = log(
    "ops.unanswered",
    "What was requested and never answered, as of the last publish.",
    "One subject without a row in ops.coverage.",
    ("connection_id", "resource", "key"),
    _CONNECTION,
    Column("resource", "text", "supplier, products, product, availability, bookings or booking."),
    Column("key", "text", "JSON array of ids and months, as in the journal."),
    Column("product_id", "text", "OCTO product id, where the subject has one."),
    Column("option_id", "text", "OCTO option id, where the subject has one."),
    Column("travel_month", "text", "YYYY-MM, where the subject has one."),
)

ABSENCES = log(
    "ops.absences",
    "Rows that complete answers no longer had; two misses by different requests prove a deletion.",
    "One row of one table.",
    ("connection_id", "table_name", "key"),
    _CONNECTION,
    Column("table_name", "text", "The table, with schema."),
    Column("key", "text", "JSON array of the row's key, without the connection."),
    Column("resource", "text", "Kind of the subject that is asked again."),
    Column("subject_key", "text", "Key of the subject that is asked again."),
    Column("misses", "integer", "How many different requests did not show it."),
    Column("request_seq", "bigint", "The last of them."),
    Column("first_missed_at_utc", "timestamptz", "When it was first missed."),
)

RUNS = log(
    "ops.runs",
    "Runs of octo-sync that stored something.",
    "One run.",
    ("run_id",),
    Column("run_id", "text", "The run."),
    Column("command", "text", "What was called."),
    Column("pipeline", "text", "The pipeline's name."),
    Column("status", "text", "running, ok, partial, failed, interrupted or killed."),
    Column("started_at_utc", "timestamptz", "Start."),
    Column("ended_at_utc", "timestamptz", "End; null while running."),
    Column("requests", "bigint", "Calls to services, retries included."),
    Column("subjects", "bigint", "Subjects fetched."),
    Column("unchanged", "bigint", "Of these, answers equal to the last ones."),
    Column("rows_written", "bigint", "Rows inserted, changed or marked deleted."),
    Column("error", "text", "What went wrong, in a sentence."),
)

QUARANTINE = log(
    "ops.quarantine",
    "Subjects that keep failing and records that do not fit, with the reason; everything else went on.",
    "One subject or one field of one record.",
    ("connection_id", "resource", "key", "path"),
    _CONNECTION,
    Column("resource", "text", "Kind of the subject or record."),
    Column("key", "text", "Its key."),
    Column("path", "text", "Where in the record; '' for a whole subject."),
    Column("reason", "text", "Why, in a sentence; never a value."),
    Column("seen_count", "bigint", "How often."),
    Column("first_at_utc", "timestamptz", "First seen."),
    Column("last_at_utc", "timestamptz", "Last seen."),
)

SCHEMA_DRIFT = log(
    "ops.schema_drift",
    "What services send that no table expects, or send no more: new fields and values, fields that are missing, "
    "ignored capabilities, lists and ids that contradict each other.",
    "One finding of one connection.",
    ("connection_id", "resource", "kind", "name"),
    _CONNECTION,
    Column("resource", "text", "Noun."),
    Column("kind", "text", "field, missing, value, capability, meaning, count, contradiction or hidden."),
    Column("name", "text", "The field's path, field=value, capability or remark."),
    Column("seen_count", "bigint", "How many answers or rows showed it."),
    Column("first_seen_at_utc", "timestamptz", "First seen."),
    Column("last_seen_at_utc", "timestamptz", "Last seen."),
    Column(
        "accepted_at_utc",
        "timestamptz",
        "Of what is missing: when `octo-sync drift --accept` let it through. Null: the former values are kept.",
    ),
)

WRITER = log(
    "ops.writer",
    "The fencing token of the last writer; a write with a lower one is refused.",
    "One row, and where several workers share a project one for each connection.",
    ("fence",),
    Column("fence", "bigint", "The token."),
    Column("owner", "text", "Who holds it."),
    Column("landed", "bigint", "Number of the last landing in the private file; must equal private.landed there."),
    Column("connection_id", "text", "The connection whose rows it lets its owner write; empty or null: all."),
)

LANDED = log(
    "private.landed",
    "How far this file is: it is written before the warehouse, and a kill may come between the two.",
    "One row.",
    ("number",),
    Column("number", "bigint", "Number of the last landing; where ops.writer has another, all is read anew."),
    private=True,
)

MIGRATIONS = log(
    "ops.schema_migrations",
    "Versions of the warehouse's schema that were applied.",
    "One version.",
    ("version",),
    Column("version", "integer", "Number of the version."),
    Column("applied_at_utc", "timestamptz", "When."),
    Column("program_version", "text", "By which octo-sync."),
)

RECORDS = log(
    "raw.records",
    "Payloads as received, one row per changed payload: personal data, only in the private file.",
    "One payload of one supplier, product or booking.",
    ("connection_id", "resource", "key", "fetched_at_utc"),
    _CONNECTION,
    Column("resource", "text", "supplier, product or booking."),
    Column("key", "text", "Its id; for a product with the language."),
    Column("payload", "text", "JSON as received."),
    Column("payload_hash", "text", "Hash of its bytes."),
    Column("fetched_at_utc", "timestamptz", "When it was received."),
    Column("source", "text", "notification, schedule, confirm, repair or user."),
    private=True,
)
