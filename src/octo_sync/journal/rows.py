"""What the journal answers with: plain values, no database behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

from octo_sync.model import Source, Subject, SubjectKind, Window

__all__ = [
    "AcceptanceRow",
    "Backlog",
    "Delivery",
    "DeliveryCount",
    "DifferenceCount",
    "EndStatus",
    "EndpointRow",
    "FoundDifference",
    "Freshness",
    "KindCount",
    "LeaseRow",
    "Months",
    "QuarantineCount",
    "QuarantineEntry",
    "Received",
    "ReconciliationRun",
    "Run",
    "RunStatus",
    "StoredDifference",
    "SubjectRow",
    "Timer",
    "Verdict",
]

EndStatus = Literal["ok", "partial", "failed", "interrupted"]
RunStatus = Literal["running", "ok", "partial", "failed", "interrupted", "killed"]
Verdict = Literal["ok", "over", "failed"]
"""Of a comparison: under its limits, over one of them, or it could not compare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRow:
    """One subject as the journal knows it; `journal/models.py` explains every field."""

    subject: Subject
    wanted_seq: int
    landed_seq: int
    priority: int
    source: Source
    marked_at: datetime
    due_at: datetime | None
    landed_at: datetime | None
    attempts: int
    error_code: str | None
    error_message: str | None
    failed_at: datetime | None
    quarantined_at: datetime | None
    run_id: str | None

    @property
    def dirty(self) -> bool:
        """Whether something is owed to it."""
        return self.wanted_seq > self.landed_seq

    @property
    def last_error(self) -> str | None:
        """The failure since the last landing as `code: sentence`, or None."""
        return None if self.error_code is None else f"{self.error_code}: {self.error_message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What is owed to one kind of subject at one connection."""

    connection: str
    kind: SubjectKind
    dirty: int
    """Can be worked on, now or later; without the quarantined."""
    due: int
    """Of these: now."""
    quarantined: int
    oldest_marked_at: datetime
    """Age of the oldest unanswered mark, the quarantined included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How fresh the copy of one kind of subject at one connection is."""

    connection: str
    kind: SubjectKind
    subjects: int
    landed: int
    """Of these: landed at least once."""
    last_landed_at: datetime | None
    oldest_landed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCount:
    """What the subjects of one kind at one connection come to; the first five inside the horizon, without the quarantined."""

    kind: SubjectKind
    subjects: int
    verified: int
    """Of these: landed at least once."""
    oldest: datetime | None
    newest: datetime | None
    """When the one longest ago, and the last one, was verified."""
    unverified_since: datetime | None
    """Since when the oldest of those that never landed is wanted."""
    owed: int
    due: int
    oldest_mark: datetime | None
    """Of what is owed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineCount:
    """How many entries one resource of one connection has in quarantine."""

    connection: str
    resource: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceCount:
    """What is open in one bucket of one reconciliation."""

    name: str
    bucket: str
    open: int
    accepted: int
    """Of these: somebody lets them be."""
    oldest: datetime
    """When the oldest was first found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineEntry:
    """A subject that keeps failing, or a record that did not land though its neighbours did."""

    id: str
    """`subject-<n>` or `record-<n>`; for `quarantine_retry` and `quarantine_drop`."""
    what: Literal["subject", "record"]
    connection: str
    resource: str
    """The subject's kind, or what the record is one of."""
    key: str
    path: str
    """Where in the record; empty for a subject."""
    reason: str
    count: int
    """Failed attempts, or how often the record was seen."""
    first_at: datetime
    last_at: datetime
    run_id: str | None
    payload_digest: str
    """Empty for a subject."""
    subject: Subject | None
    """What a retry marks; None for a record whose subject was not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a command."""

    run_id: str
    command: str
    pipeline: str
    fence: int
    options: Mapping[str, object]
    status: RunStatus
    started_at: datetime
    ended_at: datetime | None
    counts: Mapping[str, object]
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRow:
    """Who writes, or wrote last."""

    name: str
    fence: int
    owner: str
    pid: int
    host: str
    acquired_at: datetime
    released_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRow:
    """One address that was given to a service; `EndpointRecord` explains every field."""

    id: int
    endpoint: str
    connection: str
    secret_hash: str
    state: Literal["pending", "active", "retired"]
    subscription_id: str | None
    created_at: datetime
    seen_at: datetime | None
    refused_at: datetime | None
    retired_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Months:
    """Availability to mark without knowing the options: these months of a product, at most those of its horizon."""

    product: str
    option: str | None
    """None: all options that are known."""
    months: tuple[str, ...]
    """`YYYY-MM`."""
    last_look_only: bool = False
    """Of the confirming looks only the last one: what is marked is much and the notification was not about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A delivery to be stored, and what it says to look at again."""

    connection: str
    endpoint: str
    received_at: datetime
    body: bytes
    type: str = ""
    reading: str = ""
    subscription: str = ""
    subjects: tuple[Subject, ...] = ()
    months: tuple[Months, ...] = ()
    confirm_at: tuple[datetime, ...] = ()
    """When the confirming looks are due (R5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery that was stored; `journal/models.py` explains every field."""

    id: int
    connection: str
    endpoint: str
    received_at: datetime
    body: bytes
    type: str
    reading: str
    subscription: str
    marks: int
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryCount:
    """How many deliveries one hour brought to one connection."""

    connection: str
    hour: datetime
    deliveries: int
    odd: int
    """Of these: not as agreed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A mark that is to be made later."""

    subject: Subject
    name: str
    due_at: datetime
    source: Source = Source.TIMER


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDifference:
    """One difference as a comparison found it; `DifferenceRecord` explains every field."""

    key: str
    bucket: str
    field: str = ""
    rule: str | None = None
    connection: str | None = None
    booking_uuid: str | None = None
    here_value: str | None = None
    there_value: str | None = None
    delta_amount: Decimal | None = None
    currency: str | None = None
    reason: str = ""
    code: str = ""
    day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDifference(FoundDifference):
    """The same with its age, and whether somebody has accepted its key."""

    name: str
    """The reconciliation."""
    first_seen_at: datetime
    last_seen_at: datetime
    resolved_at: datetime | None
    accepted_note: str | None
    """Null: nobody has. Whether it still holds, `accepted_until` says."""
    accepted_by: str | None
    accepted_until: date | None
    """The last day on which it holds; null: for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceRow:
    """Somebody lets the differences of a key be, until a day (included) or for good."""

    key: str
    note: str
    accepted_by: str
    accepted_at: datetime
    until: date | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciliationRun:
    """One comparison; `ReconciliationRunRecord` explains every field."""

    name: str
    run_id: str
    started_at: datetime
    ended_at: datetime
    window: Window
    here_origin: str
    there_origin: str
    counts: Mapping[str, int]
    totals: Sequence[Mapping[str, Any]]
    verdict: Verdict
    differences: int
    new_differences: int
    resolved_differences: int
    open_differences: int
