"""The journal's tables, column by column, and the rows that it answers with.

These classes are the schema: a new journal is made from them, in a file and on a server. An older one is brought up to
them by `store.MIGRATIONS`. The bulk statements are in `journal/queries.sql`.

Instants are texts of one width, `2026-11-20T20:05:00.000000Z`, so that they sort as they are and read well in
`sqlite3`. Longer than most modules, so that all tables stand in one place.
"""

import json
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar, Literal

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Computed,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Text,
    TextClause,
    UniqueConstraint,
    text,
)
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

from octo_sync.model import Source, Subject, SubjectKind, Window

RunStatus = Literal["running", "ok", "partial", "failed", "interrupted", "killed"]
EndpointState = Literal["pending", "active", "retired"]
Verdict = Literal["ok", "over", "failed"]
"""Of a comparison: under its limits, over one of them, or it could not compare."""


def to_text(moment: datetime) -> str:
    """The instant as stored; a naive one is a mistake of the caller (ValueError)."""
    if moment.tzinfo is None:
        raise ValueError("the journal stores instants: give it a timezone-aware datetime")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def from_text(stored: str) -> datetime:
    """The inverse of `to_text`."""
    return datetime.fromisoformat(stored)


def as_json(values: Collection[Any]) -> str:
    """As `Subject.key` spells JSON."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def key_of(subject: Subject) -> tuple[str, str, str]:
    """Connection, kind and key of a subject, as stored."""
    return subject.connection, subject.kind.value, subject.key


Words: Any = Text().with_variant(Text(collation="C"), "postgresql")
"""Compared byte by byte, as SQLite does by itself: ranges of keys depend on it."""


class _AsText(TypeDecorator[Any]):
    """A value of Python that the database keeps as a text."""

    impl = Words
    cache_ok = True

    def __init__(self, write: Callable[[Any], str], read: Callable[[str], Any]) -> None:
        super().__init__()
        self.write = write
        self.read = read

    def process_bind_param(self, value: Any | None, _dialect: Dialect) -> str | None:  # noqa: ANN401 - any value
        """Python to database."""
        return None if value is None else self.write(value)

    def process_result_value(self, value: str | None, _dialect: Dialect) -> Any:  # noqa: ANN401 - any value
        """Database to Python."""
        return None if value is None else self.read(value)


Instant = _AsText(to_text, from_text)
Day = _AsText(date.isoformat, date.fromisoformat)
Exact = _AsText(str, Decimal)
"""SQLite's numbers would go through floats."""
Json = _AsText(partial(json.dumps, ensure_ascii=False, default=str), json.loads)
Number: Any = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite's integers have eight bytes, and only one called `INTEGER` numbers rows by itself."""

metadata = MetaData()
_STRICT = {"sqlite_strict": True}


def _json(name: str, *names: str) -> Iterator[CheckConstraint]:
    """These columns hold JSON, as each engine says it."""
    for dialect, valid in ("sqlite", "json_valid({})"), ("postgresql", "CAST({} AS json) IS NOT NULL"):
        yield CheckConstraint(" AND ".join(map(valid.format, names)), name=name).ddl_if(dialect=dialect)


def _partial(name: str, *columns: str | TextClause, where: str) -> Index:
    """An index of the rows of which `where` is true; a server is told so by `postgres.py`."""
    return Index(name, *columns, sqlite_where=text(where))


class _Base(SQLModel):
    """Own metadata: the journal's tables and nobody else's."""

    metadata: ClassVar[MetaData] = metadata


class _Numbered(_Base):
    """Rows that are numbered as they come.

    Numbers of deliveries grow for ever, also when old ones are gone: whoever follows them goes on after the last that it
    saw. Of endpoints they are the order: of two subscriptions too many the older row's stays, in every process alike.
    """

    id: int = Field(default=None, primary_key=True, sa_type=Number)


class SchemaVersion(_Base, table=True):
    """One row per migration that was applied; the largest is the schema's version."""

    __tablename__ = "schema_version"
    __table_args__ = (_STRICT,)

    version: int = Field(primary_key=True, sa_type=Number, sa_column_kwargs={"autoincrement": False})
    applied_at: datetime = Field(sa_type=Instant)


class Counter(_Base, table=True):
    """`seq` is the one counter of octo-sync: marks, request numbers (R6). It only grows, also when rebuilt."""

    __tablename__ = "counters"
    __table_args__ = (CheckConstraint("value >= 0", name="counter_not_negative"), _STRICT)

    name: str = Field(primary_key=True, sa_type=Words)
    value: int = Field(sa_type=Number)
    """The last number given out."""


_KIND_RANK = (
    "CASE kind WHEN 'subscription' THEN 0 WHEN 'supplier' THEN 1 WHEN 'products' THEN 2 WHEN 'product' THEN 3 "
    "WHEN 'availability' THEN 4 WHEN 'bookings' THEN 5 WHEN 'booking' THEN 6 ELSE 7 END"
)
_MONTH = "CASE WHEN kind IN ('availability', 'bookings') THEN substr(\"key\", length(\"key\") - 8, 7) ELSE '' END"
"""What the key ends with: `…"2026-11"]`."""
_HANDED_OUT = ("connection", text("priority DESC"), "kind_rank", "month", "key", "kind", "due_at")
"""The order in which a connection's work is handed out, with all that a claim filters on."""


class SubjectRow(_Numbered, table=True):
    """One subject and what is owed to it.

    ```
               mark                    claim (memory only)          landed, wanted_seq unchanged
    (no row) ────────▶ dirty, due ──────────────────────▶ in work ───────────────────────────────▶ clean ──mark──▶ dirty
                         ▲   ▲ │ due_at in the future       │ │ landed, but marked meanwhile (R2) ──▶ dirty
                         │   │ ▼                            │ └ release, or the process died ───────▶ dirty, as before
                         │  dirty, not yet due ◀────────────┘ failed: attempts + 1, due_at = retry_at
                         │                                  │
                         └── mark by a person, a ──── quarantined ◀── failed with quarantine=True
                             notification, a repair
    ```

    dirty: `wanted_seq > landed_seq`. due: dirty and `due_at` is null or past. quarantined: `quarantined_at` is set.
    "In work" is deliberately not in the database: a killed process takes its claims with it.
    """

    __tablename__ = "subjects"
    __table_args__ = (
        UniqueConstraint("connection", "kind", "key", name="subject_once"),
        CheckConstraint("length(connection) > 0 AND length(kind) > 0 AND length(source) > 0", name="subject_named"),
        *_json("key_is_json", '"key"'),
        CheckConstraint("landed_seq >= 0 AND wanted_seq >= landed_seq", name="landed_at_most_wanted"),
        CheckConstraint("attempts >= 0", name="attempts_not_negative"),
        CheckConstraint(
            "wanted_seq > landed_seq OR "
            "(attempts = 0 AND due_at IS NULL AND error_code IS NULL AND quarantined_at IS NULL)",
            name="clean_has_no_trouble",
        ),
        CheckConstraint("quarantined_at IS NULL OR error_code IS NOT NULL", name="quarantine_has_a_reason"),
        # Only what can be claimed.
        _partial("subjects_dirty", *_HANDED_OUT, where="wanted_seq > landed_seq AND quarantined_at IS NULL"),
        _partial("subjects_quarantined", "quarantined_at", where="quarantined_at IS NOT NULL"),
        _STRICT,
    )

    connection: str = Field(sa_type=Words)
    """The connection's name; ids are unique per connection only."""
    kind: SubjectKind = Field(sa_type=_AsText(str, SubjectKind))
    """`SubjectKind`. Not a closed list in the database, so that a new kind needs no migration."""
    key: str = Field(sa_type=Words)
    """`Subject.key`: the parts as a JSON array."""
    wanted_seq: int = Field(sa_type=Number)
    """The number of the last mark."""
    landed_seq: int = Field(sa_type=Number, sa_column_kwargs={"server_default": text("0")})
    """The `wanted_seq` read before the fetch whose result is committed in the warehouse; 0: never landed."""
    priority: int = Field(sa_type=Number, sa_column_kwargs={"server_default": text("0")})
    """Higher is handed out first; the highest of all unanswered marks."""
    source: Source = Field(sa_type=_AsText(str, Source))
    """`Source`; of several unanswered marks the one that asks for most (`sql.SOURCE_RANK`)."""
    marked_at: datetime = Field(sa_type=Instant)
    """When the oldest unanswered mark was made (never younger than that); of a clean subject, its last one's."""
    due_at: datetime | None = Field(default=None, sa_type=Instant)
    """Not to be fetched before; null: at once. The earliest of all unanswered marks, or the retry's time."""
    landed_at: datetime | None = Field(default=None, sa_type=Instant)
    """When it last landed: the verification time that coverage shows."""
    attempts: int = Field(sa_type=Number, sa_column_kwargs={"server_default": text("0")})
    """Failures in a row. Back to 0 by a landing or by a person's mark, not by any other mark."""
    failed_at: datetime | None = Field(default=None, sa_type=Instant)
    """When it last failed; kept after a landing."""
    error_code: str | None = Field(default=None, sa_type=Words)
    """What the last failure was, one word; null once landed."""
    error_message: str | None = Field(default=None, sa_type=Words)
    """The same as a sentence; never a payload or a token."""
    quarantined_at: datetime | None = Field(default=None, sa_type=Instant)
    """Since when it is left alone (R11)."""
    run_id: str | None = Field(default=None, sa_type=Words)
    """The run that last landed, failed or quarantined it."""
    kind_rank: int | None = Field(default=None, sa_type=Number, sa_column_args=(Computed(_KIND_RANK, persisted=True),))
    """The order of the kinds: what others need comes first. Subscriptions lead: one request every delivery hangs on."""
    month: str | None = Field(default=None, sa_type=Words, sa_column_args=(Computed(_MONTH, persisted=True),))
    """`YYYY-MM` of those kinds that have one: landings are clustered by travel month, then product and option."""

    @property
    def subject(self) -> Subject:
        """Which subject it is about."""
        return Subject.from_key(self.connection, self.kind, self.key)

    @property
    def dirty(self) -> bool:
        """Whether something is owed to it."""
        return self.wanted_seq > self.landed_seq


class QuarantinedRecord(_Numbered, table=True):
    """One record of an answer that did not land, though its neighbours did (R11)."""

    __tablename__ = "quarantined_records"
    __table_args__ = (
        UniqueConstraint("connection", "resource", "key", "path", name="record_once"),
        CheckConstraint("length(connection) > 0 AND length(resource) > 0", name="record_named"),
        CheckConstraint("count >= 1", name="record_counted"),
        CheckConstraint("(subject_kind IS NULL) = (subject_key IS NULL)", name="record_subject_whole"),
        _STRICT,
    )

    connection: str = Field(sa_type=Words)
    resource: str = Field(sa_type=Words)
    """What it is a record of: `bookings`, `availability`, …"""
    key: str = Field(sa_type=Words)
    """Its own id or ids, as text."""
    path: str = Field(sa_type=Words)
    """Where in the record the trouble is, e.g. `$.unitItems[3].status`."""
    reason: str = Field(sa_type=Words)
    payload_digest: str = Field(sa_type=Words)
    """Empty, and read by nobody; only journals that were made with it need it."""
    subject_kind: str | None = Field(default=None, sa_type=Words)
    """The subject to mark for a retry; null when the caller named none."""
    subject_key: str | None = Field(default=None, sa_type=Words)
    count: int = Field(sa_type=Number, sa_column_kwargs={"server_default": text("1")})
    """How often it was seen."""
    first_at: datetime = Field(sa_type=Instant)
    last_at: datetime = Field(sa_type=Instant)
    run_id: str = Field(sa_type=Words)
    """The run that saw it last."""


class Run(_Numbered, table=True):
    """One run of a command that may write.

    `running` → `ok` | `partial` (some subjects failed) | `failed` | `interrupted` (Ctrl-C, SIGTERM), said by the run
    itself;
    `running` → `killed`, said by the next owner of the lease. An ended run never changes again.
    """

    __tablename__ = "runs"
    __table_args__ = (
        UniqueConstraint("run_id", name="run_once"),
        CheckConstraint(
            "status IN ('running', 'ok', 'partial', 'failed', 'interrupted', 'killed')", name="run_status_known"
        ),
        CheckConstraint("(status = 'running') = (ended_at IS NULL)", name="run_ends_once"),
        *_json("run_json", "options", "counts"),
        _partial("runs_open", "id", where="status = 'running'"),
        _STRICT,
    )

    run_id: str = Field(sa_type=Words)
    command: str = Field(sa_type=Words)
    pipeline: str = Field(sa_type=Words)
    fence: int = Field(sa_type=Number)
    """The lease it ran under (R9)."""
    options: dict[str, Any] = Field(sa_type=Json)
    status: RunStatus = Field(sa_type=Words, sa_column_kwargs={"server_default": text("'running'")})
    started_at: datetime = Field(sa_type=Instant)
    ended_at: datetime | None = Field(default=None, sa_type=Instant)
    counts: dict[str, Any] = Field(sa_type=Json, sa_column_kwargs={"server_default": text("'{}'")})
    """E.g. `{"landed": 120, "failed": 1}`."""
    error: str | None = Field(default=None, sa_type=Words)
    """One sentence."""


class LeaseRow(_Base, table=True):
    """Who writes, or wrote last. The lock itself is the operating system's; this is its number and its name-plate."""

    __tablename__ = "leases"
    __table_args__ = (CheckConstraint("fence >= 0", name="fence_not_negative"), _STRICT)

    name: str = Field(primary_key=True, sa_type=Words)
    fence: int = Field(sa_type=Number)
    """Grows by one with every owner, for ever."""
    owner: str = Field(sa_type=Words)
    """What the owner is doing, e.g. `octo-sync run sandbox`."""
    pid: int = Field(sa_type=Number)
    host: str = Field(sa_type=Words)
    acquired_at: datetime = Field(sa_type=Instant)
    released_at: datetime | None = Field(default=None, sa_type=Instant)
    """Null while held, and after a kill."""


class Setting(_Base, table=True):
    """What was found out and is worth keeping, e.g. what a service means by a booking's date."""

    __tablename__ = "settings"
    __table_args__ = (CheckConstraint("length(name) > 0", name="setting_named"), _STRICT)

    connection: str = Field(primary_key=True, sa_type=Words)
    """The connection's name; empty: of the whole project."""
    name: str = Field(primary_key=True, sa_type=Words)
    value: str = Field(sa_type=Words)
    changed_at: datetime = Field(sa_type=Instant)


class Delivery(_Numbered, table=True):
    """One notification as it came, authentic by its header; never changed, and gone after `webhooks.keep`.

    Nothing but identifiers and dates is ever taken from a body (R4), and deliveries are never dropped, ordered or told
    apart by what they say (R3).
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        CheckConstraint("length(connection) > 0", name="delivery_named"),
        CheckConstraint("marks >= 0 AND seq >= 0", name="delivery_counted"),
        # How long nothing came, the rhythm, and what is old enough to go.
        Index("deliveries_by_time", "connection", "received_at"),
        _STRICT | {"sqlite_autoincrement": True},
    )

    connection: str = Field(sa_type=Words)
    """Whose address it came to."""
    endpoint: str = Field(sa_type=Words)
    """The last part of that address."""
    received_at: datetime = Field(sa_type=Instant)
    type: str = Field(sa_type=Words)
    """What it says it is, in capitals; empty when it does not say."""
    reading: str = Field(sa_type=Words)
    """Empty when it is as agreed, otherwise what is odd about it."""
    subscription: str = Field(sa_type=Words)
    """The subscription's id as the body says it; empty when it does not."""
    marks: int = Field(sa_type=Number)
    """How many subjects it marked."""
    seq: int = Field(sa_type=Number)
    """The number of that mark; deliveries committed together share it."""
    body: bytes = Field(sa_type=LargeBinary)
    """As received. Last, so that reading the rest of a row does not read it."""


class TimerRow(_Base, table=True):
    """A mark that is to be made later.

    ```
    (no row) ──set, or a delivery──▶ waiting ──due, fired──▶ (no row, its subject is marked)
                                      │  ▲ └──dropped──▶ (no row)
                                      └──┘ set again: moved, never doubled
    ```
    """

    __tablename__ = "timers"
    __table_args__ = (
        CheckConstraint(
            "length(connection) > 0 AND length(kind) > 0 AND length(name) > 0 AND length(source) > 0",
            name="timer_named",
        ),
        *_json("timer_key_is_json", '"key"'),
        Index("timers_due", "due_at"),
        _STRICT,
    )

    connection: str = Field(primary_key=True, sa_type=Words)
    kind: str = Field(primary_key=True, sa_type=Words)
    key: str = Field(primary_key=True, sa_type=Words)
    name: str = Field(primary_key=True, sa_type=Words)
    """Why: `confirm-1`, `confirm-2` … after a notification (R5), `hold`, `verify`."""
    due_at: datetime = Field(sa_type=Instant)
    source: str = Field(sa_type=Words)
    """`Source` of the mark that it makes."""


class EndpointRow(_Numbered, table=True):
    """One address that was given to a service, and the hash of the secret that its deliveries carry.

    ```
    (no row) ──before POST or PATCH──▶ pending ──answered, listed, or a delivery came──▶ active ──▶ retired
                                          └──────────── nothing came of it ───────────────────────────▲
    ```

    Everything but a retired row is accepted, because a delivery may come before the answer to the request that asked
    for it, and until some time after the subscription has moved on to its next address. A row is never used twice: a new
    secret is a new address, so that the address which a service shows tells which secret it was given.
    """

    __tablename__ = "endpoints"
    __table_args__ = (
        UniqueConstraint("endpoint", name="endpoint_once"),
        CheckConstraint("length(endpoint) >= 32 AND length(connection) > 0", name="endpoint_named"),
        CheckConstraint(
            "length(secret_hash) = 64 AND ltrim(secret_hash, '0123456789abcdef') = ''", name="endpoint_secret_hashed"
        ),
        CheckConstraint("state IN ('pending', 'active', 'retired')", name="endpoint_state_known"),
        CheckConstraint("(state = 'retired') = (retired_at IS NOT NULL)", name="endpoint_retires_once"),
        _STRICT,
    )

    endpoint: str = Field(sa_type=Words)
    """The last segment of the address: 32 url-safe characters that nobody can guess."""
    connection: str = Field(sa_type=Words)
    secret_hash: str = Field(sa_type=Words)
    """SHA-256 of the secret header's bytes, hexadecimal. The secret itself is kept nowhere."""
    state: EndpointState = Field(sa_type=Words, sa_column_kwargs={"server_default": text("'pending'")})
    subscription_id: str | None = Field(default=None, sa_type=Words)
    """What the service calls the subscription that has, or last had, this address; null until it is known."""
    created_at: datetime = Field(sa_type=Instant)
    seen_at: datetime | None = Field(default=None, sa_type=Instant)
    """When the first authentic delivery came here."""
    refused_at: datetime | None = Field(default=None, sa_type=Instant)
    """When the first delivery with a wrong secret came here; the next check then moves the subscription."""
    retired_at: datetime | None = Field(default=None, sa_type=Instant)


class ReconciliationRun(_Numbered, table=True):
    """One comparison with a ledger or another system, and what it came to. Never changed."""

    __tablename__ = "reconciliation_runs"
    __table_args__ = (
        UniqueConstraint("name", "run_id", name="reconciliation_once"),
        CheckConstraint("length(name) > 0 AND length(run_id) > 0", name="reconciliation_named"),
        CheckConstraint("verdict IN ('ok', 'over', 'failed')", name="reconciliation_verdict_known"),
        *_json("reconciliation_json", "counts", "totals"),
        _STRICT,
    )

    name: str = Field(sa_type=Words)
    """The reconciliation, as the pipeline names it."""
    run_id: str = Field(sa_type=Words)
    """The run of the command; it may have made several comparisons."""
    started_at: datetime = Field(sa_type=Instant)
    ended_at: datetime = Field(sa_type=Instant)
    """When its results were stored: the `last_seen_at` of what it found."""
    window_start: date = Field(sa_type=Day)
    window_end: date = Field(sa_type=Day)
    """The last day that it looked at."""
    here_origin: str = Field(sa_type=Words)
    there_origin: str = Field(sa_type=Words)
    """The sides, e.g. the name of a file; never an address with a password."""
    counts: dict[str, int] = Field(sa_type=Json)
    """Per bucket, as `Outcome.counts`."""
    totals: list[dict[str, Any]] = Field(sa_type=Json)
    """The control totals."""
    verdict: Verdict = Field(sa_type=Words)
    """`ok`, `over` (a limit was passed) or `failed` (could not compare; no difference was touched)."""
    differences: int = Field(default=0, sa_type=Number)
    """How many it found."""
    new_differences: int = Field(default=0, sa_type=Number)
    """Of these: those that were not open before."""
    resolved_differences: int = Field(default=0, sa_type=Number)
    """Those that were open before, whose day it looked at, and that it did not find."""
    open_differences: int = Field(default=0, sa_type=Number)
    """Those that are open afterwards and not accepted, also those whose day it did not look at."""

    @property
    def window(self) -> Window:
        """The days that it looked at."""
        return Window(self.window_start, self.window_end)


class FoundDifference(_Base):
    """One difference as a comparison found it."""

    key: str = Field(sa_type=Words)
    """What the pair was matched by, or the one side's own key."""
    bucket: str = Field(sa_type=Words)
    """The bucket it was found in; accepting it does not change that."""
    field: str = Field(default="", sa_type=Words)
    """The field that differs; empty where the whole item does."""
    rule: str | None = Field(default=None, sa_type=Words)
    """The pass that made the pair; null without a pair."""
    connection: str | None = Field(default=None, sa_type=Words)
    booking_uuid: str | None = Field(default=None, sa_type=Words)
    """Of our side; null where it has none."""
    here_value: str | None = Field(default=None, sa_type=Words)
    there_value: str | None = Field(default=None, sa_type=Words)
    """The field's values; null also where the booking was erased."""
    delta_amount: Decimal | None = Field(default=None, sa_type=Exact, schema_extra={"allow_inf_nan": True})
    """There minus here; what a ledger holds may be no number."""
    currency: str | None = Field(default=None, sa_type=Words)
    reason: str = Field(default="", sa_type=Words)
    """A sentence."""
    code: str = Field(default="", sa_type=Words)
    """The rule that gave the reason; empty when none did."""
    day: date | None = Field(default=None, sa_type=Day)
    """The day that decides whether a run looked at it; null: a run did whose window is like the last one's."""
    both_rows: str | None = Field(default=None, sa_type=Words)
    """The rows side by side, as JSON: [label, values here, values there, whether they differ] each. Null where the booking was
    erased, and but for one difference of a key."""


class AgedDifference(FoundDifference):
    """The same with its age."""

    name: str = Field(sa_type=Words)
    """The reconciliation."""
    first_seen_at: datetime = Field(sa_type=Instant)
    last_seen_at: datetime = Field(sa_type=Instant)
    resolved_at: datetime | None = Field(default=None, sa_type=Instant)
    """When it was first looked for and not found; null while it is open."""


class StoredDifference(AgedDifference):
    """The same, and whether somebody has accepted its key."""

    accepted_note: str | None
    """Null: nobody has. Whether it still holds, `accepted_until` says."""
    accepted_by: str | None
    accepted_until: date | None
    """The last day on which it holds; null: for good."""


class DifferenceRow(AgedDifference, table=True):
    """One difference, from the day it was first found on.

    ```
    (no row) ──found──▶ open ──looked for and not found──▶ resolved ──found──▶ open, as if never seen before
                        │  ▲                                  └── older than retention.runs ──▶ (no row)
                        └──┘ found again: its values are renewed, `first_seen_at` stays; too fresh to tell: only seen;
                             its day is outside of what the run looked at: untouched
    ```
    """

    __tablename__ = "differences"
    __table_args__ = (
        UniqueConstraint("name", "key", "bucket", "field", name="difference_once"),
        CheckConstraint("length(name) > 0 AND length(bucket) > 0", name="difference_named"),
        _partial("differences_open", "name", where="resolved_at IS NULL"),
        _STRICT,
    )

    id: int = Field(default=None, primary_key=True, sa_type=Number)
    run_id: str = Field(sa_type=Words)
    """The run that last found it."""


class AcceptanceRow(_Numbered, table=True):
    """Somebody lets the differences of one key be: those of now and those to come, until a day or for good."""

    __tablename__ = "acceptances"
    __table_args__ = (
        UniqueConstraint("name", "key", name="acceptance_once"),
        CheckConstraint("length(note) > 0 AND length(accepted_by) > 0", name="acceptance_has_a_reason"),
        _STRICT,
    )

    name: str = Field(sa_type=Words)
    """The reconciliation."""
    key: str = Field(sa_type=Words)
    note: str = Field(sa_type=Words)
    """Why."""
    accepted_by: str = Field(sa_type=Words)
    accepted_at: datetime = Field(sa_type=Instant)
    until: date | None = Field(default=None, sa_type=Day)
    """The last day on which it holds; null: for good."""


class Act(_Numbered, table=True):
    """What a person did on a page of the dashboard. What the worker has to do for it is open until `done_at`."""

    __tablename__ = "acts"
    __table_args__ = (
        CheckConstraint("length(act) > 0 AND length(who) > 0", name="act_of_somebody"),
        _partial("acts_open", "id", where="done_at IS NULL"),
        _STRICT,
    )

    at: datetime = Field(sa_type=Instant)
    who: str = Field(sa_type=Words)
    act: str = Field(sa_type=Words)
    """One of `flows.acts.ACTS`."""
    about: str = Field(sa_type=Words)
    """The reconciliation or the connection; empty where it is about all of them."""
    key: str = Field(sa_type=Words)
    """Which difference or which table of it."""
    text: str = Field(sa_type=Words)
    """What the person wrote, or was shown."""
    outcome: str = Field(sa_type=Words)
    """A sentence; empty while it is open."""
    done_at: datetime | None = Field(default=None, sa_type=Instant)


def columns(record: type[SQLModel]) -> Any:  # noqa: ANN401 - SQLAlchemy's own column collection
    """The table's columns, for statements."""
    return record.__table__.c  # type: ignore[attr-defined]
