"""A full pull: mark everything in the horizon, work until clean. There is no other code path for it (design rule).

A pull is remembered in the journal from its first mark to its last landing. One that was killed is taken up where it
stopped: what had landed is clean, and nothing of it is asked for again.
"""

import asyncio
import json
import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from octo_sync.flows import horizon
from octo_sync.flows.ports import Ports
from octo_sync.flows.sync.drift import end_missing, let_through
from octo_sync.flows.sync.due import known_bookings, unshown
from octo_sync.flows.sync.settle import settle
from octo_sync.flows.sync.work import Worker
from octo_sync.model import Source, Subject, SubjectKind, Window

log = logging.getLogger("octo_sync")

_ROUNDS = 8
"""Settling ends after two proofs; more rounds than this mean that a service changes its mind each time."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a user wants pulled."""

    only: frozenset[str] = frozenset()
    """`products`, `availability`, `bookings`; empty = all."""
    travel: Window | None = None
    full: bool = False
    """Start anew even if a pull was cut off."""

    @property
    def parts(self) -> frozenset[str]:
        """The parts of the horizon to pull; the documents always, because the others are known from them."""
        return self.only | {"products"} if self.only else horizon.EVERYTHING

    def wants(self, part: str) -> bool:
        """Whether this part is to be pulled."""
        return part in self.parts

    @property
    def kinds(self) -> frozenset[SubjectKind] | None:
        """The kinds the worker takes; None = all."""
        if not self.only:
            return None
        kinds = {SubjectKind.SUPPLIER, SubjectKind.PRODUCTS, SubjectKind.PRODUCT}
        if "availability" in self.only:
            kinds.add(SubjectKind.AVAILABILITY)
        if "bookings" in self.only:
            kinds |= {SubjectKind.BOOKINGS, SubjectKind.BOOKING}
        return frozenset(kinds)


@dataclass(slots=True)
class Pull:
    """One pull of one run."""

    ports: Ports
    scope: Scope
    resumed: bool = False
    planned: set[str] = field(default_factory=set)
    owed: set[Subject] = field(default_factory=set)
    """Availability that was marked when it began: it is fetched anyway, perhaps before the products tell what to mark."""
    started: datetime = field(default=datetime.min.replace(tzinfo=UTC))
    """When it began; of one that is taken up, when that did."""
    asked_unlisted: bool = False
    worker: Worker | None = None
    """Who works for it, once it runs."""

    async def run(self) -> Worker:
        """Mark, work, plan what the products showed, settle absences; until nothing is left to do."""
        worker = self.worker = Worker(self.ports, kinds=self.scope.kinds, on_products=self.plan_availability)
        await asyncio.to_thread(self.begin)
        for _ in range(_ROUNDS):
            await worker.drain()
            stopped = [t.connection for t in worker.troubles]
            # Where the products could not be fetched, those that are known already are planned with.
            if await asyncio.to_thread(self.plan_availability, set(self.ports.clients) - set(stopped)):
                continue
            await asyncio.to_thread(end_missing, self.ports)
            if (await asyncio.to_thread(settle, self.ports, stopped=stopped)).marked:
                continue
            if not await asyncio.to_thread(self.ask_unlisted, set(self.ports.clients) - set(stopped)):
                break
        worker.failed |= worker.lander.refused
        if worker.failed:
            # What was proven gone meanwhile is owed no longer.
            owed = {row.subject for row in self.ports.journal.subjects.rows() if row.dirty}
            worker.failed = {subject: why for subject, why in worker.failed.items() if subject in owed}
        if not worker.troubles:
            self.ports.journal.settings.set("pull", None)
        return worker

    def begin(self) -> None:
        """Mark the documents and the booking windows, unless a pull is to be taken up."""
        let_through(self.ports)
        horizon.offered_options(self.ports)  # for what is owed from before
        while self.ports.journal.timers.fire(self.ports.clock.now()):
            pass  # what a receiver left to be confirmed, and nobody did
        self.owed = {
            row.subject
            for backlog in self.ports.journal.subjects.backlog()
            if backlog.kind is SubjectKind.AVAILABILITY
            for row in self.ports.journal.subjects.rows(backlog.connection, backlog.kind)
            if row.dirty
        }
        self.started = self.ports.clock.now()
        before = json.loads(self.ports.journal.settings.get("pull") or "null")
        if before and not self.scope.full and before["scope"] == self._signature():
            started = datetime.fromisoformat(before["started_at"])
            within = timedelta(seconds=self.ports.pipeline.sync.resume_within)
            if self.ports.clock.now() - started < within:
                self.resumed, self.started = True, started
                self.planned = set(before["planned"]) & set(self.ports.clients)
                for backlog in self.ports.journal.subjects.backlog():
                    self.ports.progress.plan(str(backlog.kind), backlog.dirty)
                log.info("action=resume run=%s since=%s", self.ports.run_id, before["started_at"])
                return
        # What failed on another day gets its tries again: the trouble may have been the day.
        self.ports.journal.quarantine.retry("all")
        parts, travel = self.scope.parts - {"availability"}, self.scope.travel
        self.ports.mark(horizon.subjects(self.ports, self.ports.clients, parts, travel=travel), Source.SCHEDULE)
        self._remember()

    def plan_availability(self, connections: Collection[str]) -> bool:
        """Once connections' products are known, mark the availability of their options; whether anything was marked."""
        if not self.scope.wants("availability"):
            return False
        new = set(connections) - self.planned
        if not new:
            return False
        # After a restore everything is marked: what was fetched since would be asked for a second time.
        unmarked = horizon.missing_availability(self.ports, new, self.owed)
        self.ports.mark(unmarked, Source.SCHEDULE)
        subjects = horizon.availability(self.ports, new)
        if not self.resumed:
            self.ports.progress.plan(str(SubjectKind.AVAILABILITY), len(subjects) - len(unmarked))
        self.planned |= new
        self._remember()
        return bool(subjects)

    def ask_unlisted(self, connections: Collection[str]) -> bool:
        """Once the lists have landed, mark the open bookings of the scope that none of them had to show, by their own ids.

        Those are the open-dated ones and, where lists are by day of booking, whoever booked before the horizon begins: the
        ones looked at longest ago first, as far as `verify_budget` goes. All of them where a user named their days of travel.
        """
        if self.asked_unlisted or not self.scope.wants("bookings"):
            return False
        self.asked_unlisted = True
        days, found = self.scope.travel, [] if self.scope.travel else unshown(self.ports.warehouse)
        by_booking = {name for name in connections if self.ports.lists_by_booking(name)}
        since = days.start if days else self.ports.clock.now().date() - timedelta(days=1)
        since = (
            since if by_booking else date.max
        )  # of those with a day none is asked for: of 20,000 a tenth of a second
        for b in sorted(known_bookings(self.ports.warehouse, since=since), key=lambda b: (b.verified_at, b.subject)):
            name = b.subject.connection
            if name not in connections or b.verified_at >= self.started:
                continue
            if b.local_date is None:
                is_wanted = days is None
            else:
                is_wanted = name in by_booking and (days is None or b.local_date <= days.end)
            if is_wanted:
                found.append(b.subject)
        marked = 0
        for name in connections:
            own = list(dict.fromkeys(subject for subject in found if subject.connection == name))
            marked += self.ports.mark(own if days else own[: self.ports.verify_budget(name)], Source.SCHEDULE)
        return marked > 0

    def _signature(self) -> list[str]:
        addresses = sorted(f"{name} {client.connection.base_url}" for name, client in self.ports.clients.items())
        return [*sorted(self.scope.only), str(self.scope.travel or ""), *addresses]

    def _remember(self) -> None:
        noted = {"started_at": self.started.isoformat(), "scope": self._signature(), "planned": sorted(self.planned)}
        self.ports.journal.settings.set("pull", json.dumps(noted))
