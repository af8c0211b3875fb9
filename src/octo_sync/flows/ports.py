"""What the flows are given (R14): the pipeline, clock, randomness, journal, warehouse and one client per connection."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from math import inf
from random import Random
from typing import TYPE_CHECKING, Protocol

from octo_sync.destinations.base import Fence
from octo_sync.destinations.warehouse import Destination
from octo_sync.errors import WriterFenced
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.order import Order
from octo_sync.journal import Journal, Share
from octo_sync.model import Clock, Connection, Horizon, Source, Subject, Window, day_at
from octo_sync.pipeline import Pipeline

if TYPE_CHECKING:
    from octo_sync.octo.client import OctoClient

_BLOCK = 4096
"""Request numbers reserved durably at a time; a kill wastes at most one block."""
_HOUR = 3600.0


class Numbers:
    """Request numbers, given out as requests start; durable and growing across runs, because the journal reserves them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._left: Iterator[int] = iter(())
        self.last = 0
        """The number that was given out last."""

    def next(self) -> int:
        """The next number."""
        number = next(self._left, None)
        if number is None:
            self._left = iter(self._journal.numbers.reserve(_BLOCK))
            number = next(self._left)
        self.last = number
        return number

    def renew(self) -> None:
        """Have the next number be higher than all that anybody was given."""
        self._left = iter(())


@dataclass(slots=True)
class Progress:
    """How far a run is, for a person who watches; `changed` is called after each update."""

    done: dict[str, int] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    ends_at: datetime | None = None
    """When all of it is expected to be done, where a pace that must be kept decides that."""
    pace: str = ""
    """Which pace that is, or what is done where nothing is counted."""
    changed: Callable[["Progress"], None] = lambda _: None

    def plan(self, kind: str, count: int) -> None:
        """More subjects of a kind are to be made clean."""
        self.total[kind] = self.total.get(kind, 0) + count
        self.changed(self)

    def landed(self, kind: str, count: int, rows: int) -> None:
        """Subjects of a kind were made clean."""
        self.done[kind] = self.done.get(kind, 0) + count
        self.rows += rows
        self.changed(self)

    def expect(self, ends_at: datetime | None, pace: str) -> None:
        """It is expected to be done then, because of this pace; None: as fast as it goes."""
        self.ends_at, self.pace = ends_at, pace
        self.changed(self)


def booking_dates_mean(connection: Connection, journal: Journal | None) -> str:
    """What days of bookings mean at a service: `travel` or `creation`, as configured, or as its answers showed."""
    means = connection.booking_date_means
    if means == "auto":
        means = (journal and journal.settings.get("booking_date_means", connection=connection.name)) or "travel"
    return means


def adopt_meanings(connections: Iterable[str], known: Journal, into: Journal) -> None:
    """Let another journal know what the days of bookings mean, as far as answers showed it: a few of them may not."""
    for name in connections:
        if means := known.settings.get("booking_date_means", connection=name):
            into.settings.set("booking_date_means", means, connection=name)


def booking_days(horizon: Horizon, today: date, means: str, travel: Window | None = None) -> Window:
    """The days of bookings to ask for: those of the horizon, or of `travel` that a user asked for.

    Where they are the days of booking, whoever travels then may have booked on any of them, but nobody later than today. It
    may be tomorrow already where the service is.
    """
    window = horizon.window(today)
    if means != "creation":
        return travel or window
    return window.clip(Window(date.min, today).wider(0, 1)) or window


class Beside(Protocol):
    """A second place for what readers have."""

    def publish(self) -> None:
        """Write what they have now.

        Raises:
            WriterFenced: A newer writer took over.
            WarehouseError: It cannot be written; who reads there sees what was there before.
        """

    def shed(self) -> None:
        """Have the bytes go of what the last publish took from it."""


@dataclass(slots=True, kw_only=True)
class Ports:
    """Everything a flow may touch."""

    pipeline: Pipeline
    clock: Clock
    random: Random
    journal: Journal
    warehouse: Destination
    privacy: Privacy
    clients: Mapping[str, "OctoClient"]
    run_id: str
    fence: int
    numbers: Numbers
    share: Share | None = None
    """What this process owns of the project; None: all of it."""
    beside: Beside | None = None
    order: Order = field(default_factory=Order)
    travel: Window | None = None
    """Travel dates a user asked for beyond the horizon."""
    most_days: float = inf
    """Days of departures or bookings to be asked for at once."""
    allow_deletions: bool = False
    progress: Progress = field(default_factory=Progress)
    time_zones: dict[tuple[str, str], str] = field(default_factory=dict)
    """Time zone per (connection, product id), as last landed."""

    def fence_of(self, connections: Collection[str] = ("",)) -> Fence:
        """What a write of these connections' rows shows the warehouse; of none: of the copy as a whole.

        Raises:
            WriterFenced: One of them is somebody else's.
        """
        if self.share is None:
            return self.fence
        owned = {"": self.fence, **self.share.owned} if self.share.keeps else self.share.owned
        if not owned.keys() >= set(connections):
            raise WriterFenced("A connection was given back before its answers had landed; they are asked for again.")
        return {name: owned[name] for name in connections}

    def connection(self, name: str) -> Connection:
        """The connection called `name`."""
        return self.clients[name].connection

    def mark(self, subjects: Collection[Subject], source: Source, *, delay: float = 0.0) -> int:
        """Say "look again" and count it as planned; with `delay` it is due that many seconds from now. How many. Blocking."""
        if subjects:
            due = self.clock.now() + timedelta(seconds=delay) if delay else None
            self.journal.subjects.mark(subjects, source, due_at=due)
            for kind, count in Counter(str(subject.kind) for subject in subjects).items():
                self.progress.plan(kind, count)
        return len(subjects)

    def verify_budget(self, connection: str) -> int:
        """Calls an hour that looking again at its bookings may cost: of what the service permits half, the rest is for news."""
        budget = self.pipeline.sync.verify_budget
        pace = self.clients[connection].budget.permits
        return min(budget, int(pace.requests * _HOUR / pace.seconds) // 2) if pace else budget

    def today(self, time_zone: str | None) -> date:
        """Today at a place; an unknown zone counts as UTC."""
        return day_at(time_zone, self.clock.now())

    def availability_window(self, connection: str, product_id: str) -> Window:
        """The days of a product's availability to keep, in the product's time zone."""
        return self.pipeline.horizons.availability.window(self.today(self.time_zones.get((connection, product_id))))

    def lists_by_booking(self, connection: str) -> bool:
        """Whether the service takes days of bookings for days of booking, as far as is known."""
        return booking_dates_mean(self.connection(connection), self.journal) == "creation"

    def bookings_window(self, connection: str, travel: Window | None = None) -> Window:
        """The days of bookings to ask for, in the connection's business time zone; of `travel` where they mean that."""
        one = self.connection(connection)
        means = booking_dates_mean(one, self.journal)
        return booking_days(self.pipeline.horizons.bookings, self.today(one.business_time_zone), means, travel)

    def bookings_of(self, connection: str, month: str) -> Window | None:
        """The days of a month to ask for bookings of; None when there are none."""
        horizon = self.bookings_window(connection)
        return Window.month(month).clip(horizon) if self.lists_by_booking(connection) else self.ask_for(month, horizon)

    def ask_for(self, month: str, horizon: Window) -> Window | None:
        """The days of a month to ask for: inside the horizon, or beyond it what a user asked for; None when neither."""
        whole = Window.month(month)
        parts = [p for p in (whole.clip(horizon), whole.clip(self.travel) if self.travel else None) if p]
        return Window(min(p.start for p in parts), max(p.end for p in parts)) if parts else None
