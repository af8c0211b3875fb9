"""How the copy is: fresh, covered, owed, held. Reads the journal and the read copy only, so it never waits for a sync.

Fresh means: everything in the horizon was verified within a time. Months that have left the horizon do not count, nor does
what is in quarantine, which is told apart.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from octo_sync.flows.privacy_rule import Rule, rule
from octo_sync.flows.settle import HELD
from octo_sync.flows.silence import silences
from octo_sync.flows.subscription_steps import REMOVED
from octo_sync.flows.upkeep import THINNED
from octo_sync.journal import Journal, QuarantineEntry, Run, SubjectRow
from octo_sync.model import Clock, Horizon, SubjectKind, Window
from octo_sync.pipeline import Horizons, Pipeline

__all__ = [
    "ConnectionStatus",
    "KindStatus",
    "Running",
    "Status",
    "WebhookStatus",
    "as_document",
    "run_document",
    "status",
]

_PULLED = (SubjectKind.SUPPLIER, SubjectKind.PRODUCTS, SubjectKind.AVAILABILITY, SubjectKind.BOOKINGS)
"""The kinds a full pull marks; the others are asked for one by one, when something says so."""
_DEFAULT = Horizons(bookings=Horizon(-90, 365), availability=Horizon(0, 365), near=Horizon(0, 30))

Ask = Callable[[str], Sequence[tuple[Any, ...]]]


@dataclass(slots=True)
class KindStatus:
    """One kind of subject of one connection. `oldest` and `newest` are when subjects of the horizon were last verified."""

    kind: str
    subjects: int = 0
    verified: int = 0
    owed: int = 0
    due: int = 0
    quarantined: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    covered: Window | None = None
    incomplete: int = 0


@dataclass(frozen=True, slots=True)
class WebhookStatus:
    """How a connection's webhooks are. `silent` is how long it has been quieter than usual, in seconds, or None."""

    subscription_id: str | None
    last_delivery_at: datetime | None
    last_day: int
    """Deliveries of the last 24 hours."""
    odd: int
    """Those of them that were not as agreed."""
    silent: float | None
    thinned_at: datetime | None
    """When the call budget was last too short for all confirming looks."""


@dataclass(slots=True)
class ConnectionStatus:
    """One connection. `age` is how long ago the oldest part of its horizon was verified, in seconds; None = never."""

    name: str
    kinds: dict[str, KindStatus] = field(default_factory=dict)
    age: float | None = None
    complete: bool = False
    """Whether everything in the horizon was verified at least once."""
    held: list[str] = field(default_factory=list)
    webhooks: "WebhookStatus | None" = None
    """None where no address is open, so that pulls do the work alone."""
    webhooks_removed_at: datetime | None = None
    """When a person removed the subscription; until `subscriptions ensure` none is made again."""

    @property
    def backlog(self) -> int:
        """Subjects that are owed, without the quarantined."""
        return sum(k.owed for k in self.kinds.values())

    @property
    def quarantined(self) -> int:
        """Subjects and records that were left alone."""
        return sum(k.quarantined for k in self.kinds.values())

    def stale(self, limit: float) -> bool:
        """Whether something in the horizon was not verified within `limit` seconds."""
        return not self.complete or self.age is None or self.age > limit


@dataclass(frozen=True, slots=True)
class Running:
    """Who works on the project now."""

    owner: str
    pid: int
    host: str
    since: datetime


@dataclass(slots=True)
class Status:
    """The whole project."""

    connections: list[ConnectionStatus]
    last_run: Run | None
    running: Running | None
    quarantine: list[QuarantineEntry]
    pii: Rule | None
    """None where there is no pipeline file to say it."""


def status(
    pipeline: Pipeline | None,
    journal: Journal | None,
    ask: Ask | None,
    *,
    clock: Clock,
    alive: Callable[[int, str], bool],
) -> Status:
    """Look at everything.

    Args:
        pipeline: The pipeline; None where only its files are there: then connections are those the journal knows.
        journal: None before the first run.
        ask: Runs SQL on the read copy; None when there is none.
        clock: Now.
        alive: Whether a process (id, host) still runs; an owner that was killed is none.
    """
    found: dict[str, ConnectionStatus] = {}
    if pipeline is not None:
        found = {c.name: ConnectionStatus(c.name) for c in pipeline.connections}
    quarantine = journal.quarantined() if journal else []
    if journal is not None:
        _subjects(pipeline, journal, found, clock)
        _quarantine(quarantine, found)
        _webhooks(pipeline, journal, found, clock)
    if ask is not None:
        _coverage(ask, found)
    runs = journal.runs(1) if journal else []
    lease = journal.lease() if journal else None
    running = None
    if lease and lease.released_at is None and alive(lease.pid, lease.host):
        running = Running(lease.owner, lease.pid, lease.host, lease.acquired_at)
    pii = rule(pipeline, journal) if pipeline else None
    return Status(list(found.values()), runs[0] if runs else None, running, quarantine, pii)


def _subjects(pipeline: Pipeline | None, journal: Journal, found: dict[str, ConnectionStatus], clock: Clock) -> None:
    now = clock.now()
    by_connection: dict[str, list[SubjectRow]] = defaultdict(list)
    for row in journal.subjects():
        by_connection[row.subject.connection].append(row)
    for name, rows in sorted(by_connection.items()):
        if pipeline is not None and name not in found:
            continue  # a connection that the pipeline no longer has
        connection = found.setdefault(name, ConnectionStatus(name))
        windows = _windows(pipeline, name, now)
        for row in rows:
            if not _kept(pipeline, row):
                continue
            kind = connection.kinds.setdefault(str(row.subject.kind), KindStatus(str(row.subject.kind)))
            if row.dirty and row.quarantined_at is None:
                kind.owed += 1
                kind.due += row.due_at is None or row.due_at <= now
            if row.quarantined_at is None and _in_horizon(row, windows):
                kind.subjects += 1
                _verified(kind, row.landed_at)
    for connection in found.values():
        pulled = [connection.kinds[k] for k in _PULLED if k in connection.kinds]
        oldest = [k.oldest for k in pulled if k.oldest]
        connection.age = (now - min(oldest)).total_seconds() if oldest else None
        connection.complete = bool(oldest) and all(k.verified == k.subjects for k in pulled)


def _webhooks(pipeline: Pipeline | None, journal: Journal, found: Mapping[str, ConnectionStatus], clock: Clock) -> None:
    now = clock.now()
    silent = silences(journal, list(found), clock, after=pipeline.webhooks.silence_after if pipeline else 0.0)
    for name, each in found.items():
        removed = journal.setting(REMOVED, connection=name)
        each.webhooks_removed_at = datetime.fromisoformat(removed) if removed else None
    for row in journal.endpoints():
        if row.connection not in found:
            continue
        counts = journal.delivery_counts(now - timedelta(days=1), connection=row.connection)
        thinned = journal.setting(THINNED, connection=row.connection)
        pause = silent.get(row.connection)
        found[row.connection].webhooks = WebhookStatus(
            subscription_id=row.subscription_id,
            last_delivery_at=journal.last_delivery_at(row.connection),
            last_day=sum(c.deliveries for c in counts),
            odd=sum(c.odd for c in counts),
            silent=pause.total_seconds() if pause else None,
            thinned_at=datetime.fromisoformat(thinned) if thinned else None,
        )


def _verified(kind: KindStatus, at: datetime | None) -> None:
    if at is None:
        return
    kind.verified += 1
    kind.oldest = min(kind.oldest or at, at)
    kind.newest = max(kind.newest or at, at)


def _windows(pipeline: Pipeline | None, connection: str, now: datetime) -> Mapping[SubjectKind, Window]:
    zone = (
        next((c.business_time_zone for c in pipeline.connections if c.name == connection), "UTC") if pipeline else "UTC"
    )
    try:
        today: date = now.astimezone(ZoneInfo(zone)).date()
    except (ZoneInfoNotFoundError, ValueError, OSError):
        today = now.date()
    horizons = pipeline.horizons if pipeline else _DEFAULT
    return {
        SubjectKind.AVAILABILITY: horizons.availability.window(today),
        SubjectKind.BOOKINGS: horizons.bookings.window(today),
    }


def _kept(pipeline: Pipeline | None, row: SubjectRow) -> bool:
    keeps = pipeline.products.get(row.subject.connection) if pipeline else None
    return row.subject.kind is not SubjectKind.AVAILABILITY or keeps is None or keeps.keeps(row.subject.parts[0])


def _in_horizon(row: SubjectRow, windows: Mapping[SubjectKind, Window]) -> bool:
    window = windows.get(row.subject.kind)
    return window is None or Window.month(row.subject.parts[-1]).clip(window) is not None


def _quarantine(entries: Sequence[QuarantineEntry], found: dict[str, ConnectionStatus]) -> None:
    for entry in entries:
        connection = found.get(entry.connection)
        if connection is None:
            continue
        if entry.resource == HELD:
            connection.held.append(entry.reason)
        else:
            connection.kinds.setdefault(entry.resource, KindStatus(entry.resource)).quarantined += 1


def _coverage(ask: Ask, found: dict[str, ConnectionStatus]) -> None:
    rows = ask(
        "select connection_id, resource, min(window_start), max(window_end), count(*) filter (where not is_complete) "
        "from ops.coverage group by 1, 2"
    )
    for name, resource, first, last, incomplete in rows:
        connection = found.get(name)
        if connection is None:
            continue
        kind = connection.kinds.setdefault(resource, KindStatus(resource))
        kind.covered = Window(first, last) if first else None
        kind.incomplete = incomplete


def as_document(found: Status) -> dict[str, Any]:
    """The status for machines; times are instants, ages seconds."""
    run = found.last_run
    return {
        "connections": [
            {
                "name": c.name,
                "age_seconds": c.age,
                "complete": c.complete,
                "backlog": c.backlog,
                "quarantined": c.quarantined,
                "held_deletions": c.held,
                "webhooks": None if c.webhooks is None else asdict(c.webhooks),
                "webhooks_removed_at": c.webhooks_removed_at,
                "kinds": [
                    {
                        "kind": k.kind,
                        "subjects": k.subjects,
                        "verified": k.verified,
                        "owed": k.owed,
                        "due": k.due,
                        "quarantined": k.quarantined,
                        "oldest_verified_at": k.oldest,
                        "newest_verified_at": k.newest,
                        "covered_from": k.covered.start if k.covered else None,
                        "covered_to": k.covered.end if k.covered else None,
                        "incomplete": k.incomplete,
                    }
                    for k in c.kinds.values()
                ],
            }
            for c in found.connections
        ],
        "pii": None if found.pii is None else asdict(found.pii),
        "last_run": None if run is None else run_document(run),
        "running": None if found.running is None else asdict(found.running),
    }


def run_document(run: Run) -> dict[str, Any]:
    """One run for machines."""
    return {
        "run_id": run.run_id,
        "command": run.command,
        "pipeline": run.pipeline,
        "status": run.status,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "options": json.loads(json.dumps(dict(run.options), default=str)),
        "counts": dict(run.counts),
        "error": run.error,
    }
