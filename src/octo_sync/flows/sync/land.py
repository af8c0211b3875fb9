"""Land what was fetched: batches into one warehouse transaction each, then the journal.

The order is the promise. The warehouse commits rows and watermark together (R8); only then does the journal learn that the
subjects are clean (R2). A kill between the two costs one repeated fetch whose answer changes nothing.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from octo_sync.destinations.base import Landing, LandingReport
from octo_sync.destinations.gate import Guard
from octo_sync.errors import JournalError, RowsRefused, WarehouseError
from octo_sync.flows.ports import Ports
from octo_sync.flows.sync.fetch import Fetched
from octo_sync.flows.sync.losses import note_values_lost, values_lost
from octo_sync.model import Claim, Source, Subject, SubjectKind

log = logging.getLogger("octo_sync")


_PRODUCTS = (SubjectKind.PRODUCTS, SubjectKind.PRODUCT)
_LONG = 5.0
"""Seconds after which an answer is landed, however small the batch."""


@dataclass(slots=True)
class Totals:
    """What a run has landed so far."""

    subjects: int = 0
    unchanged: int = 0
    rows: int = 0
    by_table: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """The same as the list of runs says it."""
        return {"subjects": self.subjects, "unchanged": self.unchanged, "rows_written": self.rows}


class Lander:
    """Collects fetched subjects and lands them, one batch at a time, in a thread of its own.

    Lists that are compared with what is landed are read as they come, so that what did not change in them is held no longer.
    Nothing lands between their reading and their landing: what they were compared with would be there no more.

    `broke` is told of an answer that could not be read. `products`, where several workers share the project, is called with
    the connections of product documents before these are clean: another worker may find nothing owed and take it for the end.
    """

    def __init__(
        self,
        ports: Ports,
        broke: Callable[[Claim, Exception], object],
        products: Callable[[set[str]], object] | None = None,
    ) -> None:
        self._ports, self._broke, self._products = ports, broke, products
        self._waiting: deque[Fetched] = deque()
        self._compared: list[Fetched] = []
        """Lists that were compared with what is landed."""
        self._size, self._since, self._is_urgent, self._is_unread = 0, 0.0, False, False
        self.landing: asyncio.Task[None] | None = None
        """The batch being landed, to wait for."""
        self.totals = Totals()
        self.refused: dict[Subject, str] = {}
        """Subjects with a value that the warehouse cannot hold."""
        self.products_changed: set[str] = set()
        """Connections whose product documents landed since it was last cleared."""
        self._lands_products = False
        self._landed_of: frozenset[str] = frozenset()

    @property
    def connections(self) -> set[str]:
        """The connections of which something waits, is being landed, or has landed and was not told of."""
        landing = self._landed_of if self.busy else ()
        return (
            {f.claim.subject.connection for f in (*self._waiting, *self._compared)}
            | set(landing)
            | self.products_changed
        )

    @property
    def full(self) -> bool:
        """Whether the batch is worth a transaction of its own."""
        settings = self._ports.pipeline.sync
        return self._size >= settings.batch_bytes or len(self._waiting) + len(self._compared) >= settings.batch_bodies

    @property
    def worthwhile(self) -> bool:
        """Whether to start now if nothing else is being landed: enough for one transaction, waiting for long, or waited for."""
        # A service that permits little would fill a batch in hours, and who is stopped meanwhile asks for it all again.
        waits_for_long = asyncio.get_running_loop().time() - self._since >= _LONG
        return (
            self.full
            or self._is_unread
            or (bool(self._waiting or self._compared) and (waits_for_long or self._is_urgent))
        )

    @property
    def busy(self) -> bool:
        """Whether a batch is being landed right now."""
        return self.landing is not None and not self.landing.done()

    @property
    def brings_products(self) -> bool:
        """Whether product documents land, or have landed of which `products_changed` still tells."""
        return bool(self.products_changed) or (self.busy and self._lands_products)

    def add(self, fetched: Fetched) -> None:
        """Put a checked answer among those that wait."""
        if not (self._waiting or self._compared):
            self._since = asyncio.get_running_loop().time()
        self._waiting.append(fetched)
        self._size += fetched.size
        self._is_urgent |= fetched.is_urgent
        self._is_unread |= fetched.read is not None

    def start(self) -> None:
        """Begin to read what has to be read, or else to land what waits, a batch of it; call only when not busy."""
        self.check()
        if not (self._waiting or self._compared):
            return
        settings, batch = self._ports.pipeline.sync, list[Fetched]()
        if self._is_unread:
            batch = [f for f in self._waiting if f.read]
            self._waiting = deque(f for f in self._waiting if not f.read)
            work, self._is_unread = self._compare(batch), False
        else:
            batch, self._compared = self._compared, []
            size = sum(f.size for f in batch)
            while self._waiting and len(batch) < settings.batch_bodies and size < settings.batch_bytes:
                batch.append(self._waiting.popleft())
                size += batch[-1].size
            work = self._land_to_the_end(batch)
        self._size -= sum(f.size for f in batch)
        self._is_urgent = any(f.is_urgent for f in (*self._waiting, *self._compared))
        self._landed_of = frozenset(f.claim.subject.connection for f in batch)
        self._lands_products = any(f.claim.subject.kind in _PRODUCTS for f in batch)
        self.landing = asyncio.create_task(work)

    def forget(self) -> None:
        """Let go of what has not landed."""
        self._end((*self._waiting, *self._compared))
        self._waiting.clear()
        self._compared.clear()
        self._size, self._is_urgent, self._is_unread = 0, False, False

    def check(self) -> None:
        """Raise what the last landing raised."""
        if self.landing is not None and self.landing.done():
            done, self.landing = self.landing, None
            done.result()

    async def _land_to_the_end(self, batch: Sequence[Fetched]) -> None:
        try:
            await self._land(batch)
        finally:
            self._end(batch)

    def _end(self, batch: Iterable[Fetched]) -> None:
        self._ports.order.end(*((f.claim.subject.connection, f.began) for f in batch))

    async def _compare(self, batch: Sequence[Fetched]) -> None:
        """Read what had to wait for those before it to land; what cannot be read does not stop the others (R11)."""
        found: list[Fetched] = []
        try:
            found, broken = await asyncio.to_thread(read, self._ports, batch)
        finally:
            claims = {f.claim.subject for f in found}
            self._end(f for f in batch if f.claim.subject not in claims)
        for claim, why in broken:
            self._broke(claim, why)
        self._compared += found
        self._size += sum(f.size for f in found)
        self._is_urgent |= any(f.is_urgent for f in found)

    async def _land(self, batch: Sequence[Fetched]) -> None:
        try:
            report, batch = await asyncio.to_thread(land, self._ports, batch, self._products)
        except RowsRefused as error:
            await self._find_refused(batch, error)
            return
        self.totals.subjects += len(batch)
        self.totals.unchanged += sum(f.answered.unchanged for f in batch)
        self.totals.rows += report.rows
        for table, rows in report.written.items():
            self.totals.by_table[table] = self.totals.by_table.get(table, 0) + rows
        for f in batch:
            self._ports.progress.landed(str(f.claim.subject.kind), 1, f.answered.row_count)
            if f.claim.subject.kind in _PRODUCTS:
                self.products_changed.add(f.claim.subject.connection)

    async def _find_refused(self, batch: Sequence[Fetched], error: RowsRefused) -> None:
        """A value that no column holds: land the others without it, and say which subject it is in (R11)."""
        # One that was compared with what is landed goes first. Once it has landed, others were compared with what is no more.
        batch = sorted(batch, key=lambda f: not f.answered.seen)
        if again := [f for f in batch if f.answered.seen][1:]:
            await asyncio.to_thread(self._ports.journal.subjects.release, [f.claim for f in again])
            await self._land([f for f in batch if f not in again])
            return
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._land(batch[:middle])
            await self._land(batch[middle:])
            return
        log.warning("action=rows_refused run=%s subject=%s", self._ports.run_id, batch[0].claim.subject)
        self.refused[batch[0].claim.subject] = str(error)
        await asyncio.to_thread(
            self._ports.journal.subjects.failed,
            batch[0].claim,
            error_code=type(error).__name__,
            message=str(error),
            retry_at=None,
            quarantine=True,
            run_id=self._ports.run_id,
        )


def land(
    ports: Ports, batch: Sequence[Fetched], products: Callable[[set[str]], object] | None = None
) -> tuple[LandingReport, list[Fetched]]:
    """Commit one batch: warehouse first, journal after; what of it landed. Blocking.

    Raises:
        WriterFenced: A newer writer took over; the subjects stay dirty for it.
        WarehouseError: Nothing was kept; the subjects stay dirty.
    """
    with ports.privacy.lock:
        batch = _without_erased(ports, batch)
        settings = ports.pipeline.sync
        landing = Landing(
            run_id=ports.run_id,
            fence=ports.fence_of({f.claim.subject.connection for f in batch}),
            now=ports.clock.now(),
            answered=ports.order.apply([f.answered for f in batch]),
            guard=Guard(settings.deletion_rows, settings.deletion_share),
            lost_lately=lambda: values_lost(ports),
        )
        report = ports.warehouse.land(landing)
        ports.order.landed(landing.answered)
    if report.lost:
        note_values_lost(ports, report.lost)
    _note_records(ports, batch)
    # Before the others are clean: a kill in between must not lose it.
    ports.mark(report.differing, Source.REPAIR)
    of_products = {f.claim.subject.connection for f in batch if f.claim.subject.kind in _PRODUCTS}
    if products and of_products:
        products(of_products)
    ports.journal.subjects.landed([f.claim for f in batch], run_id=ports.run_id)
    log.info(
        "action=land run=%s subjects=%d unchanged=%d rows=%d stale=%d differing=%d",
        ports.run_id,
        len(batch),
        sum(f.answered.unchanged for f in batch),
        report.rows,
        len(report.stale),
        len(report.differing),
    )
    return report, batch


def read(ports: Ports, batch: Sequence[Fetched]) -> tuple[list[Fetched], list[tuple[Claim, Exception]]]:
    """The answers as they compare with what is landed, and what could not be read of them. Blocking."""
    found: list[Fetched] = []
    broken: list[tuple[Claim, Exception]] = []
    with ports.privacy.lock:
        for f in batch:
            try:
                found.append(replace(f.read(), began=f.began) if f.read else f)
            except (WarehouseError, JournalError):
                raise
            except Exception as error:  # noqa: BLE001 - the worker says what it is
                broken.append((f.claim, error))
    return found, broken


def _without_erased(ports: Ports, batch: Sequence[Fetched]) -> list[Fetched]:
    """Without answers that were read before an erasure: they may hold the erased, and are asked for again."""
    number = ports.privacy.number
    late = [
        f
        for f in batch
        if f.answered.noun == "bookings" and (f.answered.lines or f.answered.seen) and f.screened != number
    ]
    if not late:
        return list(batch)
    ports.journal.subjects.release([f.claim for f in late])
    released = {f.claim.subject for f in late}
    return [f for f in batch if f.claim.subject not in released]


def _note_records(ports: Ports, batch: Sequence[Fetched]) -> None:
    """Records that do not fit go to quarantine; those leave it that fit now, or are in their subject's answer no longer."""
    quarantine = ports.journal.quarantine
    for f in batch:
        for bad in f.bad:
            where = f.claim.subject.connection, f.answered.noun, bad.key, bad.path
            quarantine.add_record(*where, bad.reason, ports.run_id, subject=f.claim.subject)
    noted = [entry for entry in quarantine.entries() if entry.what == "record"]
    if not noted:
        return
    # Of each record, whether it fits in what was asked for last; of each subject, what does not.
    fits: dict[tuple[str, ...], bool] = {}
    bad_keys: dict[Subject, set[str]] = {}
    for f in sorted(batch, key=lambda f: f.answered.request_seq):
        subject, own = f.claim.subject, {bad.key for bad in f.bad}
        if not f.answered.unchanged:
            bad_keys[subject] = own
        fits |= {_record(subject, f.answered.noun, key): key not in own for key in {*f.good} | own}
    quarantine.clear(
        entry
        for entry in noted
        if entry.subject
        # One whose id could not be read has a key of its own, and leaves with its subject.
        and (
            (entry.subject in bad_keys and entry.key not in bad_keys[entry.subject])
            or fits.get(_record(entry.subject, entry.resource, entry.key))
        )
    )


def _record(subject: Subject, noun: str, key: str) -> tuple[str, ...]:
    """Which record a key is of: a departure's id is one of its option only."""
    return subject.connection, noun, *(subject.parts[:2] if noun == "availability" else ()), key
