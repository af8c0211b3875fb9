"""Verify: does the copy say what the service says?

Live, everything (or a sample) is fetched again through the same worker into a scratch warehouse, by half a month where a pull
asks for a whole one, and compared with the read copy row for row, column for column, in both directions. Without the network,
the copy's own claims are checked: that every subject of the horizon is covered, complete and clean, and that every check
passes.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from octo_sync.destinations.base import Scripted
from octo_sync.destinations.compare import (
    Comparison,
    bookings_in,
    bookings_unlisted,
    compare,
    products_in,
    windows_asked,
)
from octo_sync.flows import horizon
from octo_sync.flows.ports import Ports
from octo_sync.flows.sync.breaker import Trouble
from octo_sync.flows.sync.due import unshown
from octo_sync.flows.sync.pull import Pull, Scope
from octo_sync.flows.sync.work import Worker
from octo_sync.flows.wording import plural
from octo_sync.model import Source, Subject, SubjectKind, Window
from octo_sync.tables import all_tables

_MOST_DAYS = 18
"""Half a month and a day on each side: what a service cuts from long answers, a pull's may lack as well."""
_COVERED = "select connection_id, resource, key, verified_at_utc, is_complete, missing_capabilities from ops.coverage"
_INCOMPLETE = "select connection_id, resource, key from ops.coverage where not is_complete order by 1, 2, 3"
_KEPT = "select connection_id, resource, name from ops.schema_drift where kind = 'missing' and accepted_at_utc is null"


@dataclass(slots=True)
class LiveResult:
    """What a live verification found; `troubles` and `failed` say what could not be asked, or not be compared."""

    comparison: Comparison
    subjects: int
    requests: int
    troubles: tuple[Trouble, ...] = ()
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether everything was asked that should be, and all of the answers compared."""
        return not self.troubles and not self.failed


async def verify_live(own: Ports, *, here: Path, scratch: Path, scope: Scope, sample: int | None = None) -> LiveResult:
    """Fetch again into a warehouse and a journal of its own, and compare with the read copy `here`.

    `scratch` is the file of that warehouse, which is closed so that it can be compared.
    """
    own.most_days = _MOST_DAYS
    before = sum(c.stats.requests for c in own.clients.values())
    if sample is None:
        worker = await Pull(own, scope).run()
    else:
        worker = await _sampled(own, scope, sample)
    # As a pull asks for what its lists no longer show: by its own id.
    unlisted = await asyncio.to_thread(_unlisted, own, here, scope, is_sample=sample is not None)
    if unlisted and not worker.troubles:
        own.mark(unlisted, Source.REPAIR)
        await worker.drain()
    requests = sum(c.stats.requests for c in own.clients.values()) - before
    # Of a connection that was given up, that says why.
    given_up = {trouble.connection for trouble in worker.troubles}
    failed = {str(s): why for s, why in worker.failed.items() if s.connection not in given_up}
    failed = await asyncio.to_thread(_left_out, own) | failed
    own.warehouse.close()
    comparison = await asyncio.to_thread(compare, here, scratch, all_tables())
    failed |= {
        table: f"{plural(count, 'row')} with values that the service shows no more: kept as they were, and not compared."
        for table, count in comparison.kept.items()
    }
    return LiveResult(comparison, worker.lander.totals.subjects, requests, tuple(worker.troubles), failed)


async def _sampled(own: Ports, scope: Scope, sample: int) -> Worker:
    """The documents, and `sample` windows drawn by the injected randomness."""
    worker = Worker(own, kinds=scope.kinds)
    own.mark(horizon.subjects(own, own.clients, {"products"}), Source.SCHEDULE)
    await worker.drain()
    if not worker.troubles:
        # Only now are the options known, and with them the months of each.
        wanted = await asyncio.to_thread(horizon.subjects, own, own.clients, scope.parts, travel=scope.travel)
        windows = sorted(s for s in wanted if s.kind in (SubjectKind.AVAILABILITY, SubjectKind.BOOKINGS))
        own.mark(own.random.sample(windows, min(sample, len(windows))), Source.SCHEDULE)
        await worker.drain()
    worker.failed |= worker.lander.refused
    return worker


def _unlisted(own: Ports, here: Path, scope: Scope, *, is_sample: bool) -> list[Subject]:
    """The copy's products and bookings that complete lists of the fresh pull had to show and did not. Blocking.

    And the bookings that no list has to show: open-dated ones and, where lists are by day of booking, those that are still to
    travel, or that travel on the days that were named. A sample draws lists, so they are not in it.
    """
    there = {tuple(row) for row in own.warehouse.query("select connection_id, booking_uuid from core.bookings").rows}
    wanted = set(bookings_in(here, windows_asked(own.warehouse)))
    if not is_sample:
        by_booking = [name for name in own.clients if own.lists_by_booking(name)]
        ahead = Window(own.clock.now().date() - timedelta(days=1), date.max)
        wanted |= set(bookings_unlisted(here, by_booking, scope.travel or ahead, open_dated=scope.travel is None))
    listed = {tuple(row) for row in own.warehouse.query("select connection_id, product_id from core.products").rows}
    missing = [(SubjectKind.BOOKING, row) for row in wanted - there]
    missing += [(SubjectKind.PRODUCT, row) for row in products_in(here) if row not in listed]
    return sorted(Subject(connection, kind, (key,)) for kind, (connection, key) in missing if connection in own.clients)


def _left_out(own: Ports) -> dict[str, str]:
    """What was answered, but not so that all of it could be compared: subjects, and the records that did not fit. Blocking."""
    part = "It was answered incompletely, so not all of it could be compared."
    found = {str(Subject.from_key(*row)): part for row in own.warehouse.query(_INCOMPLETE).rows}
    records = [entry for entry in own.journal.quarantine.entries() if entry.what == "record"]
    return found | {f"{r.connection}:{r.resource} record {r.key}": f"{r.path}: {r.reason}" for r in records}


@dataclass(slots=True)
class Claims:
    """The copy's own claims, and what speaks against them. Each problem is a sentence."""

    subjects: int = 0
    oldest: float | None = None
    """Age of the oldest verification inside the horizon, seconds."""
    problems: list[str] = field(default_factory=list)
    of_readers: bool = False
    """Whether it is the copy that readers have, because another process works on the project."""
    notes: list[str] = field(default_factory=list)
    """What the copy does not claim, though one might think so. Each is a sentence."""


def incomplete(marts: Scripted) -> list[str]:
    """What `marts.sync_freshness`, which decides what is called complete, does not: a sentence for each resource."""
    rows = marts.query(
        "select connection_id, resource, open_subjects, missed_rows from marts.sync_freshness where not is_complete "
        "order by 1, 2"
    ).rows
    return [
        f"{name}: {resource} is not complete: {still_open:,} pending, {plural(missed, 'missing row')}"
        for name, resource, still_open, missed in rows
    ]


def claims(ports: Ports, checks: Sequence[tuple[str, int]], *, marts: Sequence[str] = ()) -> Claims:
    """Check what the copy claims of itself: coverage of the whole horizon, clean subjects, checks that pass.

    `marts` is what `incomplete` says of them. It is told where nothing else is, so that nobody calls the copy complete that
    they do not.
    """
    found = Claims(problems=[f"check {name} returned {rows} rows" for name, rows in checks if rows])
    now = ports.clock.now()
    covered = {row[:3]: row[3:] for row in ports.warehouse.query(_COVERED).rows}
    kept = set(ports.warehouse.query(_KEPT).rows)
    wanted = horizon.subjects(ports, ports.clients)
    found.subjects = len(wanted)
    for subject in wanted:
        at = covered.get((subject.connection, str(subject.kind), subject.key))
        if at is None:
            found.problems.append(f"{subject} was never verified")
            continue
        verified, complete, missing = at
        found.oldest = max(found.oldest or 0.0, (now - verified).total_seconds())
        if not complete:
            found.problems.append(f"{subject} was answered incompletely")
        older = [name for name in missing.split(",") if (subject.connection, str(subject.kind), name) in kept]
        if older:
            found.problems.append(f"{subject} lacks {','.join(older)}; its columns kept old values")
    counts = Counter(subject.connection for subject in unshown(ports.warehouse))
    found.problems += [
        f"{count} open-dated bookings of {name} were in no answer that is on record"
        for name, count in sorted(counts.items())
    ]
    found.notes = [
        f"{name} lists bookings by day of booking: who booked before {ports.bookings_window(name).start} may be missing"
        for name in ports.clients
        if ports.lists_by_booking(name)
    ]
    if dirty := ports.journal.subjects.dirty_count(connections=ports.clients):
        found.problems.append(f"{dirty} subjects are marked and not yet landed")
    found.problems += [f"{q.resource} {q.key} is in quarantine: {q.reason}" for q in ports.journal.quarantine.entries()]
    found.problems = found.problems or list(marts)
    return found
