"""How the copy is: fresh, covered, owed, held. Reads the journal and the read copy only, so it never waits for a sync.

Fresh means: everything in the horizon was verified within a time. Months that have left the horizon do not count, nor does
what is in quarantine, which is told apart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from octo_sync.flows.ports import booking_dates_mean, booking_days
from octo_sync.flows.privacy.rule import Rule, rule
from octo_sync.flows.sync.breaker import GIVEN_UP
from octo_sync.flows.sync.drift import KEPT
from octo_sync.flows.sync.due import THINNED
from octo_sync.flows.sync.paces import known_pace
from octo_sync.flows.sync.settle import HELD
from octo_sync.flows.webhooks import canary
from octo_sync.flows.webhooks.canary import Canary
from octo_sync.flows.webhooks.silence import silences
from octo_sync.flows.webhooks.steps import REMOVED
from octo_sync.flows.webhooks.subscribe import TOLD_AT
from octo_sync.journal import DifferenceCount, Journal, QuarantineEntry, Run
from octo_sync.model import Clock, SubjectKind, Window, day_at
from octo_sync.pipeline import Horizons, Pipeline

PULLED = (SubjectKind.SUPPLIER, SubjectKind.PRODUCTS, SubjectKind.AVAILABILITY, SubjectKind.BOOKINGS)
"""The kinds a full pull marks; the others are asked for one by one, when something says so."""
UNLISTED = ("open_dated", "unlisted")
"""Bookings that no list by day of travel speaks for, as `marts.sync_freshness` calls them."""
_PULLS = ("sync", "demo", "pull")
"""Commands that fetch what is due; `pull` is one of a schedule."""
SCHEDULED = ("full", "near", "availability", "bookings")
"""What `[schedule]` may name, in the order in which it is shown."""

Ask = Callable[[str], Sequence[tuple[Any, ...]]]
NextTime = Callable[[str, str, datetime], datetime | None]
"""The first instant after another one that a cron expression means, seen from a time zone."""


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
    booked: Window | None = None
    """Days of booking that were asked for, where the service lists bookings by those."""
    incomplete: int = 0
    unverified_since: datetime | None = None
    """Since when the oldest of those that were never verified is wanted."""
    oldest_mark: datetime | None = None
    """Since when the oldest of what is owed is wanted."""

    def staleness(self, now: datetime) -> float | None:
        """How old this may be, in seconds: since the oldest verification, and since what has none yet is wanted.

        Where the clock was ahead when something was verified, as long as it was ahead: nobody knows what changed since.
        """
        since = [at for at in (self.oldest, self.unverified_since) if at is not None]
        return _age(now, since, self.newest)


def _age(now: datetime, since: Sequence[datetime], newest: datetime | None) -> float | None:
    """Seconds since the first of them, or until `newest` where that is still to come; None where there is none."""
    return max((now - min(since)).total_seconds(), (newest - now).total_seconds() if newest else 0.0) if since else None


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
    canary: Canary | None
    """How the last hold that was made to be told went; None without one."""
    thinned_at: datetime | None
    """When the call budget was last too short for all confirming looks."""


@dataclass(slots=True)
class ConnectionStatus:
    """One connection. `age` is how long ago the oldest part of its horizon was verified, in seconds; None = never."""

    name: str
    kinds: dict[str, KindStatus] = field(default_factory=dict)
    age: float | None = None
    verified: bool = False
    """Whether everything in the horizon was verified at least once, as far as it is not in quarantine."""
    open: int = 0
    """What `marts.sync_freshness` says is open, incomplete or missed in what readers have."""
    held: list[str] = field(default_factory=list)
    """Deletions that wait for a person's word."""
    kept: list[str] = field(default_factory=list)
    """Fields that answers have no more; their values wait for it."""
    webhooks: "WebhookStatus | None" = None
    """None where no address is open, so that pulls do the work alone."""
    webhooks_removed_at: datetime | None = None
    """When a person removed the subscription; until `subscriptions ensure` none is made again."""
    was_told: bool = False
    """Whether it ever had a subscription."""
    given_up: tuple[datetime, str] | None = None
    """When and why nothing more was fetched, though something is pending; None once anything was fetched since."""
    wants_webhooks: bool = False
    """Whether the pipeline has an address for them."""
    permits: str | None = None
    """The pace that its service permits, as far as that is known."""
    staleness: float | None = None
    """How old anything of the horizon may be, in seconds; what was never verified counts since it is wanted. None: nothing
    was ever asked for."""

    @property
    def complete(self) -> bool:
        """Whether everything was verified, and nothing of what readers have is open: as `marts.sync_freshness` has it."""
        return self.verified and not self.open

    @property
    def backlog(self) -> int:
        """Subjects that are owed, without the quarantined."""
        return sum(k.owed for k in self.kinds.values())

    @property
    def quarantined(self) -> int:
        """Subjects and records that were left alone."""
        return sum(k.quarantined for k in self.kinds.values())

    @property
    def has_lost_subscription(self) -> bool:
        """Whether it had a subscription and has none, though nobody removed it; what cannot be asked now counts as there."""
        return self.was_told and not self._has_subscription and self.webhooks_removed_at is None

    @property
    def lacks_subscription(self) -> bool:
        """Whether it is to have a subscription and has none: it was lost, or the service was asked and refuses it."""
        asked = self.kinds.get(SubjectKind.SUBSCRIPTION, KindStatus("")).verified and self.webhooks_removed_at is None
        return self.wants_webhooks and (self.has_lost_subscription or bool(asked and not self._has_subscription))

    @property
    def _has_subscription(self) -> bool:
        return self.webhooks is not None and self.webhooks.subscription_id is not None

    def stale(self, limit: float) -> bool:
        """Whether something in the horizon was not verified within `limit` seconds."""
        return not self.verified or self.age is None or self.age > limit


@dataclass(frozen=True, slots=True)
class Running:
    """Who works on the project now."""

    owner: str
    pid: int
    host: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Working:
    """A worker of several, and the connections that it works on now; none while nothing is pending for it."""

    pid: int
    host: str
    connections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NextRun:
    """One schedule: when `serve` runs it next (None: never), when it ran last, and whether a time has passed since then."""

    name: str
    expression: str
    at: datetime | None
    last_at: datetime | None
    late: bool
    time_zone: str = "UTC"


@dataclass(slots=True)
class Status:
    """The whole project."""

    connections: list[ConnectionStatus]
    runs: list[Run]
    """The last run of each command, and the last of it that ended well, newest first."""
    running: Running | None
    quarantine: list[QuarantineEntry]
    pii: Rule | None
    """None where there is no pipeline file to say it."""
    next_runs: list[NextRun] = field(default_factory=list)
    differences: list[DifferenceCount] = field(default_factory=list)
    """What comparisons with other systems found and is open, per reconciliation and bucket."""
    workers: list[Working] = field(default_factory=list)
    """Who works on which connections, where several share the project."""

    @property
    def last_run(self) -> Run | None:
        """The run that began last."""
        return next(iter(self.runs), None)

    @property
    def failures(self) -> list[Run]:
        """Runs that did not end well and that nothing has made good.

        Of each command the last one, up to the one that last pulled well: whatever failed before it was done again. But one
        that nobody carries on was cut off, however many pulls it had begun and ended itself.
        """
        pulled = next((n for n, run in enumerate(self.runs) if run.status == "ok" and run.command in _PULLS), None)
        # Of several workers there is none that keeps, for a moment.
        going_on = bool(self.running or self.workers)
        return [
            run
            for n, run in enumerate(self.runs)
            if (not going_on if run.status == "running" else run.status != "ok" and (pulled is None or n < pulled))
        ]


def status(
    pipeline: Pipeline | None,
    journal: Journal | None,
    ask: Ask | None,
    *,
    clock: Clock,
    alive: Callable[[int, str], bool],
    next_time: NextTime | None = None,
    silent: Mapping[str, timedelta] | None = None,
) -> Status:
    """Look at everything.

    Args:
        pipeline: The pipeline; None where only its files are there: then connections are those the journal knows.
        journal: None before the first run.
        ask: Runs SQL on the read copy; None when there is none.
        clock: Now.
        alive: Whether a process (id, host) still runs; an owner that was killed is none.
        next_time: What cron expressions mean; None leaves out when schedules run next.
        silent: Which webhooks are quiet and for how long, where somebody knows; None: it is looked up, in two weeks of
            deliveries.
    """
    found: dict[str, ConnectionStatus] = {}
    if pipeline is not None:
        found = {c.name: ConnectionStatus(c.name) for c in pipeline.connections}
    quarantine = journal.quarantine.entries() if journal else []
    if journal is not None:
        _subjects(pipeline, journal, found, clock)
        _quarantine(quarantine, found)
        _webhooks(pipeline, journal, found, clock, silent)
    if ask is not None:
        _coverage(ask, found, clock.now())
    runs = journal.runs.last_of_each() if journal else []
    lease = journal.leases.last() if journal else None
    running = None
    if lease and lease.released_at is None and alive(lease.pid, lease.host):
        running = Running(lease.owner, lease.pid, lease.host, lease.acquired_at)
    pii = rule(pipeline, journal) if pipeline else None
    next_runs = _next_runs(pipeline, journal, clock.now(), next_time) if pipeline and next_time else []
    differences = journal.reconciliations.counts() if journal else []
    workers = _workers(journal, alive) if journal else []
    return Status(list(found.values()), runs, running, quarantine, pii, next_runs, differences, workers)


def _workers(journal: Journal, alive: Callable[[int, str], bool]) -> list[Working]:
    owned: dict[tuple[int, str], list[str]] = {(row.pid, row.host): [] for row in journal.leases.workers()}
    for name, row in sorted(journal.leases.owners().items()):
        owned.setdefault((row.pid, row.host), []).append(name)
    return [Working(pid, host, tuple(names)) for (pid, host), names in owned.items() if alive(pid, host)]


def _subjects(pipeline: Pipeline | None, journal: Journal, found: dict[str, ConnectionStatus], clock: Clock) -> None:
    now = clock.now()
    if pipeline is None:
        found.update({name: ConnectionStatus(name) for name in journal.subjects.connection_names()})
    for name, connection in found.items():
        pace = known_pace(journal, name, clock)
        connection.permits = str(pace) if pace else None
        availability, bookings = _months(pipeline, journal, name, now)
        keeps = pipeline.products.get(name) if pipeline else None
        only = {"include": keeps.include, "exclude": keeps.exclude} if keeps else {}
        counts = journal.subjects.kind_counts(name, now, availability=availability, bookings=bookings, **only)
        for count in counts:
            connection.kinds[str(count.kind)] = KindStatus(**asdict(count) | {"kind": str(count.kind)})
        pulled = [connection.kinds[k] for k in PULLED if k in connection.kinds]
        oldest = [k.oldest for k in pulled if k.oldest]
        connection.age = _age(now, oldest, max((k.newest for k in pulled if k.newest), default=None))
        connection.verified = bool(oldest) and all(k.verified == k.subjects for k in pulled)
        if connection.backlog and (noted := journal.settings.get(GIVEN_UP, connection=name)):
            text, _, why = noted.partition(" ")
            at = datetime.fromisoformat(text)
            if all(k.newest is None or k.newest <= at for k in connection.kinds.values()):
                connection.given_up = at, why
        connection.staleness = max((s for k in pulled if (s := k.staleness(now)) is not None), default=None)


def _next_runs(pipeline: Pipeline, journal: Journal | None, now: datetime, next_time: NextTime) -> list[NextRun]:
    found, zone = [], pipeline.schedule.time_zone
    for name in SCHEDULED:
        expression = getattr(pipeline.schedule, name)
        if not expression:
            continue
        last = _noted_at(journal, f"schedule {name}") if journal else None
        after = next_time(expression, zone, last) if last else None
        late = after is not None and after <= now
        found.append(NextRun(name, expression, next_time(expression, zone, now), last, late, zone))
    return found


def _noted_at(journal: Journal, name: str, *, connection: str = "") -> datetime | None:
    noted = journal.settings.get(name, connection=connection)
    return datetime.fromisoformat(noted) if noted else None


def _webhooks(
    pipeline: Pipeline | None,
    journal: Journal,
    found: Mapping[str, ConnectionStatus],
    clock: Clock,
    silent: Mapping[str, timedelta] | None,
) -> None:
    now = clock.now()
    if silent is None:
        silent = silences(journal, list(found), clock, after=pipeline.webhooks.silence_after if pipeline else 0.0)
    subscriptions: dict[str, str | None] = {}
    for row in journal.endpoints.rows():
        # While a subscription moves to a new address, the former one still has its number.
        subscriptions[row.connection] = row.subscription_id or subscriptions.get(row.connection)
    for name, each in found.items():
        each.webhooks_removed_at = _noted_at(journal, REMOVED, connection=name)
        each.wants_webhooks = pipeline is not None and bool(pipeline.webhooks.url)
        each.was_told = journal.settings.get(TOLD_AT, connection=name) is not None
        if name in subscriptions:
            counts = journal.inbox.counts(now - timedelta(days=1), connection=name)
            pause = silent.get(name)
            each.webhooks = WebhookStatus(
                subscription_id=subscriptions[name],
                last_delivery_at=journal.inbox.last_delivery_at(name),
                last_day=sum(c.deliveries for c in counts),
                odd=sum(c.odd for c in counts),
                silent=pause.total_seconds() if pause else None,
                canary=canary.last(journal, name),
                thinned_at=_noted_at(journal, THINNED, connection=name),
            )


def _months(pipeline: Pipeline | None, journal: Journal, name: str, now: datetime) -> Iterator[tuple[str, str]]:
    """The horizons of availability and of bookings, as the first and the last month that is asked for."""
    connection = next((c for c in pipeline.connections if c.name == name), None) if pipeline else None
    means = booking_dates_mean(connection, journal) if connection else "travel"
    today = day_at(connection.business_time_zone if connection else None, now)
    horizons = pipeline.horizons if pipeline else Horizons()
    for window in (horizons.availability.window(today), booking_days(horizons.bookings, today, means)):
        yield f"{window.start:%Y-%m}", f"{window.end:%Y-%m}"


def _quarantine(entries: Sequence[QuarantineEntry], found: dict[str, ConnectionStatus]) -> None:
    for entry in entries:
        if (connection := found.get(entry.connection)) is None:
            continue
        if entry.resource in (HELD, KEPT):
            (connection.held if entry.resource == HELD else connection.kept).append(entry.reason)
        else:
            connection.kinds.setdefault(entry.resource, KindStatus(entry.resource)).quarantined += 1


def _coverage(ask: Ask, found: dict[str, ConnectionStatus], now: datetime) -> None:
    """What the marts of the read copy say, in their words: what lists speak for, what no list speaks for, what is open."""
    rows = ask(
        "select c.connection_id, c.resource, min(case when l.key is null then c.window_start else l.window_start end), "
        "max(case when l.key is null then c.window_end else l.window_end end), min(l.booked_start), max(l.booked_end), "
        "count(*) filter (where not c.is_complete) from ops.coverage c left join marts.booking_lists l "
        "on l.connection_id = c.connection_id and c.resource = 'bookings' and l.key = c.key "
        "where c.resource <> 'open_dated' group by 1, 2"
    )
    for name, resource, first, last, booked_first, booked_last, incomplete in rows:
        if (connection := found.get(name)) is None:
            continue
        kind = connection.kinds.setdefault(resource, KindStatus(resource))
        kind.covered = Window(first, last) if first else None
        kind.booked = Window(booked_first, booked_last) if booked_first else None
        kind.incomplete = incomplete
    rows = ask(
        "select connection_id, resource, subjects, incomplete_subjects, open_subjects + missed_rows, oldest_verified_at, "
        "last_verified_at, is_complete from marts.sync_freshness"
    )
    for name, resource, subjects, incomplete, more, oldest, newest, is_complete in rows:
        if (connection := found.get(name)) is None:
            continue
        connection.open += 0 if is_complete else max(1, incomplete, more)
        if resource in UNLISTED:
            connection.kinds[resource] = KindStatus(
                resource, subjects, subjects - incomplete, oldest=oldest, newest=newest, incomplete=incomplete
            )
            if oldest and connection.age is not None:
                connection.age = max(connection.age, (now - oldest).total_seconds())
