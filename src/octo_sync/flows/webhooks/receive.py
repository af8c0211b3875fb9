"""Receive: a delivery becomes durable marks before it is acknowledged (R1).

`Routing` decides what a delivery says to look at again; pure but for the clock it is given. `Inbox` commits what has
arrived together: while one transaction is on its way to the disk the next one gathers, so that everybody who waits shares
the disk's sync, and nobody waits for company.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from octo_sync.errors import JournalError
from octo_sync.journal import Journal, Months, Received
from octo_sync.model import Clock, Subject, SubjectKind, Window, day_at
from octo_sync.octo.notifications import About, Notification, parted
from octo_sync.pipeline import Pipeline

log = logging.getLogger("octo_sync")

_LARGEST_BATCH = 512
"""Deliveries in one transaction: more would make the first of them wait for the last."""
_MOST_WAITING = 10_000
"""Deliveries that wait for the disk (R12); at 64 KB each, and more connections than a receiver takes."""
_CHECKPOINT_AFTER = 500
"""Deliveries between two checkpoints of the journal: a few megabytes of its write-ahead log."""
_REPLAYED_AT_ONCE = 500

Marks = tuple[tuple[Subject, ...], tuple[Months, ...]]


class InboxFull(Exception):  # noqa: N818 - what happened, for the receiver alone
    """More deliveries wait for the disk than may; the sender is to try again."""


def routed(notification: Notification, connection: str, *, horizon: Window, keeps: bool = True) -> Marks:
    """What to look at again: subjects, and months of availability whose options the journal knows. Pure.

    Args:
        notification: What was delivered.
        connection: Whose address it came to.
        horizon: The days of the product's availability that are kept.
        keeps: Whether the pipeline keeps the product.

    Days beyond the horizon are cut off; no option means all of them. A product's update is about its document and all of
    its availability, of which only the last confirming look is worth its price.
    """
    product = notification.product
    match notification.about:
        case About.BOOKING if notification.booking is not None:
            return (Subject(connection, SubjectKind.BOOKING, (notification.booking,)),), ()
        case About.PRODUCT if product is None:
            return (Subject(connection, SubjectKind.PRODUCTS),), ()
        case About.PRODUCT if product is not None and keeps:
            everything = Months(product=product, option=None, months=tuple(horizon.months()), last_look_only=True)
            return (Subject(connection, SubjectKind.PRODUCT, (product,)),), (everything,)
        case About.AVAILABILITY if product is not None and keeps:
            days: Window | None = horizon
            if notification.first is not None and notification.last is not None:
                days = horizon.clip(Window(notification.first, notification.last))
            months = tuple(days.months()) if days else ()
            return (), (Months(product=product, option=notification.option, months=months),)
        case _:
            return (), ()


@dataclass(slots=True)
class Routing:
    """From a body to what is stored and marked."""

    pipeline: Pipeline
    clock: Clock
    """When a delivery came, and which day it is at the venue."""
    time_zones: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Time zone per (connection, product id), as last landed; read anew each time, so it may be shared."""

    def received(self, connection: str, endpoint: str, body: bytes, *, odd: str = "") -> Received:
        """A delivery that came just now; with `odd`, which says why, its body is not read.

        Of the body only what was read is stored: whatever else a service sends may be about persons. One that nobody can
        read is stored as it came, so that somebody can find out what it is, unless nothing of persons is to be kept.
        """
        now = self.clock.now()
        notification, kept = (Notification(reading=odd), None) if odd else parted(body)
        if kept is None:
            kept = body if self.pipeline.pii == "keep" else b""
        subjects, months = self.marks(notification, connection, now)
        return Received(
            connection=connection,
            endpoint=endpoint,
            received_at=now,
            body=kept,
            type=notification.type,
            reading=notification.reading,
            subscription=notification.subscription,
            subjects=subjects,
            months=months,
            confirm_at=tuple(now + timedelta(seconds=after) for after in self.pipeline.sync.confirm_after),
        )

    def marks(self, notification: Notification, connection: str, now: datetime) -> Marks:
        """What a notification says to look at again, seen from `now`."""
        product = notification.product or ""
        keeps = self.pipeline.products.get(connection)
        today = day_at(self.time_zones.get((connection, product)), now)
        horizon = self.pipeline.horizons.availability.window(today)
        return routed(notification, connection, horizon=horizon, keeps=keeps is None or keeps.keeps(product))


class Inbox:
    """Group commit.

    Args:
        journal: Where deliveries and marks go, from a thread of this object's own.
        routing: What they mark.
        on_commit: Called on the loop with what a transaction has made durable: to wake the worker, to show deliveries as
            they come.
    """

    def __init__(
        self, journal: Journal, routing: Routing, on_commit: Callable[[Sequence[Received]], object] = lambda _: None
    ) -> None:
        self._journal, self._routing, self._on_commit = journal, routing, on_commit
        self._waiting: deque[tuple[Received, asyncio.Future[None]]] = deque()
        self._committing: asyncio.Task[None] | None = None
        self._checkpointing: asyncio.Task[None] | None = None
        self._since_checkpoint = 0
        # One commits, the other folds the write-ahead log meanwhile.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="octo-sync-inbox")
        self._closed = False
        self.batches: list[Callable[[int], object]] = []
        """Told the size of each transaction."""
        journal.leave_checkpoints()

    @property
    def waiting(self) -> int:
        """How many deliveries have not been given to the disk yet."""
        return len(self._waiting)

    async def receive(self, connection: str, endpoint: str, body: bytes, *, odd: str = "") -> Received:
        """Store a delivery and mark what it says; returns when both are durable.

        Raises:
            InboxFull: Too many wait already; nothing was stored.
            JournalError: Nothing was stored; the disk is full, read-only or broken, or the journal is locked.
        """
        item = self._routing.received(connection, endpoint, body, odd=odd)
        await self._durable(item)
        return item

    async def _durable(self, item: Received) -> None:
        if self._closed:
            raise JournalError("The receiver is stopping; nothing was stored.")
        if len(self._waiting) >= _MOST_WAITING:
            raise InboxFull
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._waiting.append((item, done))
        if self._committing is None or self._committing.done():
            self._committing = loop.create_task(self._commit_all())
        await done

    async def probe(self) -> None:
        """Find out whether the journal can be written, by a transaction like any other, only without a delivery.

        Raises:
            JournalError: It cannot.
        """
        await asyncio.get_running_loop().run_in_executor(self._threads, self._journal.inbox.accept, ())

    async def close(self) -> None:
        """Commit what waits, then let go of the threads. What comes later is refused."""
        self._closed = True
        for task in (self._committing, self._checkpointing):
            if task is not None:
                await asyncio.wait([task])
        self._threads.shutdown(wait=False)

    async def _commit_all(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), _LARGEST_BATCH))]
            await self._commit(batch)

    async def _commit(self, batch: list[tuple[Received, asyncio.Future[None]]]) -> None:
        loop = asyncio.get_running_loop()
        items = [item for item, _ in batch]
        try:
            await loop.run_in_executor(self._threads, self._journal.inbox.accept, items)
        except JournalError as error:
            log.error("action=receive_failed deliveries=%d error=%s", len(batch), error)  # noqa: TRY400 - no trace: a sentence
            _settle(batch, error)
        except Exception as error:
            # A mistake of ours about one delivery must not cost its neighbours theirs.
            log.exception("action=receive_broke deliveries=%d", len(batch))
            if len(batch) == 1:
                _settle(batch, JournalError(f"A delivery could not be stored ({type(error).__name__})."))
                return
            for each in batch:
                await self._commit([each])
        except BaseException:
            for _, done in batch:
                done.cancel()
            raise
        else:
            _settle(batch, None)
            self._committed(items)

    def _committed(self, items: Sequence[Received]) -> None:
        try:
            for told in self.batches:
                told(len(items))
            self._on_commit(items)
        except Exception:  # whoever listens must not keep others from being received
            log.exception("action=listener_broke")
        self._since_checkpoint += len(items)
        is_free = self._checkpointing is None or self._checkpointing.done()
        if self._since_checkpoint >= _CHECKPOINT_AFTER and is_free:
            self._checkpointing = asyncio.get_running_loop().create_task(self._checkpoint())

    async def _checkpoint(self) -> None:
        self._since_checkpoint = 0
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._journal.checkpoint)
        except JournalError as error:
            # Nothing is lost: the log grows, and commits fold it.
            log.warning("action=checkpoint_failed error=%s", error)


def _settle(batch: Sequence[tuple[Received, asyncio.Future[None]]], error: JournalError | None) -> None:
    for _, done in batch:
        if done.done():  # who waited has gone; what it brought is stored all the same
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(JournalError(str(error)))


def replay(journal: Journal, routing: Routing, *, since: datetime, connection: str | None = None) -> tuple[int, int]:
    """Mark again what the deliveries since then said, as a person would; how many deliveries, how many of them marked.

    They are read anew, by what this version understands; nothing is stored twice. Blocking.
    """
    found = marking = 0
    page: list[Received] = []
    for delivery in journal.inbox.all_deliveries(since=since, connection=connection):
        found += 1
        item = routing.received(delivery.connection, delivery.endpoint, delivery.body)
        if item.subjects or item.months:
            marking += 1
            page.append(replace(item, body=b"", confirm_at=()))
        if len(page) >= _REPLAYED_AT_ONCE:
            journal.inbox.apply_again(page)
            page.clear()
    if page:
        journal.inbox.apply_again(page)
    return found, marking
