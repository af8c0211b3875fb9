"""What the journal takes and counts. What it keeps is in `models.py`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from octo_sync.model import Source, Subject, SubjectKind

EndStatus = Literal["ok", "partial", "failed", "interrupted"]


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
class DifferenceCount:
    """What is open in one bucket of one reconciliation."""

    name: str
    bucket: str
    open: int
    accepted: int
    """Of these: somebody lets them be."""
    oldest: datetime
    """When the oldest that nobody lets be was first found; of all, where each is let be."""


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
    subject_kind: str | None = None
    subject_key: str | None = None

    @property
    def subject(self) -> Subject | None:
        """What a retry marks; None for a record whose subject was not told."""
        return (
            Subject.from_key(self.connection, self.subject_kind, self.subject_key or "") if self.subject_kind else None
        )


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
