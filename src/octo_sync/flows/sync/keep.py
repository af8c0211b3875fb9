"""Keep: the copy is kept fresh for as long as the program runs. Timers, worker, settling, publishing, in one loop.

There is no second road: receiver, schedules and upkeep only mark, and the loop works until nothing is due, then sleeps until
somebody wakes it or something becomes due. Longer than most modules, because all that the loop does stands in its order.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import datetime, timedelta
from math import inf

from octo_sync.errors import OctoSyncError, ServiceError
from octo_sync.flows import horizon
from octo_sync.flows.ports import Ports
from octo_sync.flows.privacy.erase import Eraser, is_due
from octo_sync.flows.sync.compaction import Compactor, thin_deliveries
from octo_sync.flows.sync.drift import end_missing
from octo_sync.flows.sync.due import THINNED, calls_within, due_holds, due_verifications, known_bookings
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.flows.sync.scheduled import PARTS, Ended, Pulls
from octo_sync.flows.sync.settle import settle
from octo_sync.flows.sync.work import Worker
from octo_sync.flows.webhooks.silence import note_rhythms, silences
from octo_sync.model import Claim, Source, Subject, SubjectKind

__all__ = ["PARTS", "SYNC", "Keeper"]

log = logging.getLogger("octo_sync")

SYNC = "sync now"
"""What a person does who asks for everything on a page."""
_MINUTE = 60.0
_PULL_WHILE_SILENT = 900.0
_LONGEST_SLEEP = 60.0
_WHILE_OTHERS_WORK = 0.5
"""Seconds to the next look at connections that owe something, and that others have."""
_LOOK_AFTER_EVERY = 60.0
"""Seconds between two looks at what nobody notifies about; holds have their own moment."""
_SAY_HOW_FAR_EVERY = 15.0
"""Seconds of work without a pause: nobody should take a long first pull for a standstill."""
_LEAST_SLEEP = 0.01
_LEAST_PUBLISH_PAUSE, _LONGEST_PUBLISH_PAUSE = 0.5, 300.0
"""After a failure: a mart that does not run is mended by a person, and each attempt at it copies the whole file first."""
_RUNS = 200


class Keeper:
    """Keeps one project's copy fresh.

    Of several workers one keeps, and the others do what is of the connections that they own, and nothing else.

    Args:
        ports: What it works with; it owns the warehouse.
        wake: Set by whoever has marked something.
        new_run_id: Names the pulls of schedules.
        actions: Make subjects clean that have no rows, such as the subscription.
        say: Told in a sentence what a person wants to know: which services do not answer, which pulls are over.
        published: Called, blocking, when a pull of all bookings has ended without a month of them still owed, and readers have
            what it brought: what compares it with others.
        all_is_well: Called when that was a full pull to whose end every service answered; it must not block.

    `idle` is set while nothing is due.
    """

    def __init__(
        self,
        ports: Ports,
        wake: asyncio.Event,
        new_run_id: Callable[[], str],
        actions: Mapping[SubjectKind, Callable[[Claim], Awaitable[None]]] | None = None,
        say: Callable[[str], object] = lambda _: None,
        published: Callable[[], object] | None = None,
        all_is_well: Callable[[], object] = lambda: None,
    ) -> None:
        self.ports, self.wake, self.idle = ports, wake, asyncio.Event()
        self._actions, self._say = actions or {}, say
        self._unpublished = ""
        self._time = asyncio.get_running_loop().time
        self._worker = Worker(
            ports,
            on_products=self._products_landed,
            wake=wake,
            actions=self._actions,
            meanwhile=self._meanwhile,
            taken=self._taken,
        )
        self._sharing = self._worker.sharing
        self._compactor = Compactor(ports)
        self._eraser = Eraser(ports)
        self._pulls = Pulls(ports, self._worker, new_run_id)
        self.pull, self.stop_pulls, self.counts = self._pulls.begin, self._pulls.stop, self._pulls.counts
        self._rows_looked_after = 0
        self._buried = 0
        self._tried: tuple[int, ...] | None = None
        """What there was to show when a copy was last made or stopped by a check. None: readers are owed one at the start
        too, because whoever was killed after a landing has not published it."""
        self._was_pulled = False
        self._published, self._all_is_well = published, all_is_well
        self._ended = Ended()
        """Of pulls that readers do not have yet."""
        self._shown = Ended()
        """Of pulls that readers have, and nobody was told of."""
        self._publishing: asyncio.Task[None] | None = None
        """A copy in the making; landings go on beside it."""
        self._published_at = self._looked_after_at = -inf
        self._busy_since, self._said_of = self._time(), 0
        """Since when there is work, or it was said how far it is; and how much had landed then."""
        self._publish_pause = self._pause_after_publishing
        """Seconds from the beginning of a copy to that of the next; longer after each that failed."""
        self._next_hold: datetime | None = None
        self._waited: dict[Subject, float] = {}
        """What is asked for a second proof of a deletion, and how long that was waited for last, seconds."""
        self._silent: dict[str, float] = {}
        """Connections whose webhooks have gone quiet, and when they were pulled last because of it."""
        self._unwell: dict[str, type[ServiceError]] = {}
        """Connections that did not answer when it was last said, and why."""

    @property
    def landed(self) -> int:
        """Subjects made clean so far."""
        return self._worker.lander.totals.subjects

    @property
    def owes(self) -> bool:
        """Whether anything is marked, or will be by a timer that is set."""
        journal = self.ports.journal
        return journal.timers.next_at() is not None or any(b.dirty for b in journal.subjects.backlog())

    # -- marking ------------------------------------------------------------------------------------------------

    def never_pulled(self) -> bool:
        """Whether nothing was ever asked for here, so that nobody waits for a schedule. Blocking."""
        return self.ports.journal.subjects.kinds() <= {SubjectKind.SUBSCRIPTION}

    def check_subscriptions(self, connections: Collection[str] | None = None) -> None:
        """Mark the subscriptions of all connections, or of some. Blocking."""
        if SubjectKind.SUBSCRIPTION in self._actions:
            names = self.ports.clients.keys() if connections is None else connections
            self.ports.mark([Subject(c, SubjectKind.SUBSCRIPTION) for c in names], Source.SCHEDULE)

    async def look_again(self, connection: str) -> None:
        """Try a connection at once that may have been given up for a reason that is gone."""
        self._worker.revive(0.0, [connection])
        await asyncio.to_thread(self.check_subscriptions, [connection])
        self.wake.set()

    # -- the loop -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Work and sleep until cancelled. A failing service or a failed publish is written down and tried again.

        Raises:
            WriterFenced: A newer writer took over.
            WarehouseError, JournalError: A file failed; what had landed stays, the rest stays marked.
        """
        # Also what a former process had landed and did not come to mark, by the time zones that it knew.
        await asyncio.to_thread(horizon.offered_options, self.ports)
        if self._sharing.keeps:
            await asyncio.to_thread(self._products_landed, set(self.ports.clients))
        try:
            while True:
                self.wake.clear()
                self._worker.revive(self.ports.pipeline.sync.backoff_cap)
                rest = await self._worker.drain(patient=False)
                if await self._meanwhile():
                    continue
                await self._worker.hand_back()
                if self._sharing.keeps and self._publishing is None:
                    await self._compactor.when_quiet()
                again = self._worker.given_up_for(self.ports.pipeline.sync.backoff_cap)
                await self._sleep([wait for wait in (rest, again) if wait is not None])
        except (asyncio.CancelledError, Exception):
            if self._publishing is not None:
                self._publishing.cancel()
            raise

    async def _meanwhile(self) -> bool:
        """What must not wait for a quiet moment, because there may be none; whether anything is due because of it."""
        if not self._sharing.keeps:
            marked = await asyncio.to_thread(self._look_after)
            self._say_who_answers()
            await asyncio.to_thread(self._sharing.tell, self.counts() | {"buried": self._buried})
            return marked
        if await asyncio.to_thread(self._may_erase):
            await self._eraser.when_due(self._published_to_the_end)
        fired = await asyncio.to_thread(self._fire) or await asyncio.to_thread(self._act)
        marked = await asyncio.to_thread(self._look_after)
        # Until the departures of what lands now are marked, they are part of no pull.
        lander = self._worker.lander
        if not lander.brings_products and (over := await asyncio.to_thread(self._pulls.over)):
            if lander.landing is not None:
                # What the journal knows to have landed is counted when its landing ends.
                await asyncio.wait([lander.landing])
            sentences, ended = await asyncio.to_thread(self._pulls.end, over)
            self._ended |= ended
            for sentence in sentences:
                self._say(sentence)
        await self._say_how_far()
        self._say_who_answers()
        if self._publishing is not None and self._publishing.done():
            await self._published_to_the_end()
        if self._publishing is None:
            # Before the next one begins: there may be one at all times.
            await self._compactor.when_overdue()
            await self._publish_when_due()
        await self._tell_what_is_shown()
        return fired or marked

    def _may_erase(self) -> bool:
        """Whether nothing lands beside an erasure: where others work too, when all that they had was given back. Blocking."""
        return self.ports.share is None or (is_due(self.ports) and self._sharing.take_all())

    def _fire(self) -> bool:
        """Timers that are due become marks; whether there were any. Blocking."""
        journal, now = self.ports.journal, self.ports.clock.now()
        for name, client in self.ports.clients.items():
            if pace := client.budget.permits:
                self._thin(name, pace.requests * _MINUTE / pace.seconds, now)
        fired = False
        while journal.timers.fire(now):
            fired = True
        return fired

    def _act(self) -> bool:
        """Pull everything, where persons have asked for it on a page; whether any have. Blocking."""
        asked = self.ports.journal.acts.waiting(SYNC)
        if asked:
            self.ports.journal.acts.end(asked, f"A full pull has begun: {self.pull('full'):,} parts to fetch.")
        return bool(asked)

    def _thin(self, connection: str, budget: float, now: datetime) -> None:
        """When the next minute's calls are not enough for all confirming looks, earlier ones go until the rest fits.

        Those of the subjects that are due first go first; the last one of each subject stays.
        """
        journal = self.ports.journal
        owed = sum(b.dirty for b in journal.subjects.backlog() if b.connection == connection)
        soon = [
            t
            for t in journal.timers.rows(connection=connection, limit=int(budget) + 1)
            if t.due_at <= now + timedelta(seconds=_MINUTE)
        ]
        if owed + len(soon) <= budget:
            return
        names = [f"confirm-{place}" for place in range(1, len(self.ports.pipeline.sync.confirm_after))]
        dropped = sum(journal.timers.drop([t.subject for t in soon if t.name == n], n) for n in names)
        if dropped:
            journal.settings.set(THINNED, now.isoformat(), connection=connection)
            log.info("action=thin_confirmations connection=%s dropped=%d", connection, dropped)

    def _look_after(self) -> bool:
        """Settle absences, mark holds and old bookings; whether anything is due because of it. Blocking."""
        ports = self.ports
        now, rows = ports.clock.now(), self._worker.lander.totals.rows
        is_time = self._sharing.keeps and self._time() - self._looked_after_at >= _LOOK_AFTER_EVERY
        if is_time and ports.share is not None:
            ports.share.close_killed()
            # Whoever had landed what proves a deletion may have ended before it was carried out.
            self._sharing.take({a.connection for a in ports.warehouse.absences()} & ports.clients.keys())
        stopped, others = [t.connection for t in self._worker.troubles], self._sharing.others
        settled = settle(ports, stopped=stopped, others=others, waited=self._waited)
        marked, self._buried = settled.marked, self._buried + settled.buried
        if is_time or rows != self._rows_looked_after or (self._next_hold and now >= self._next_hold):
            self._rows_looked_after = rows
            # A connection that was taken out of the pipeline keeps its rows, and nobody can ask for them.
            known = [b for b in known_bookings(ports.warehouse, ["ON_HOLD"]) if b.subject.connection in ports.clients]
            holds, self._next_hold = due_holds(known, now)
            marked = bool(ports.mark(holds, Source.TIMER)) or marked
        if is_time:
            self._looked_after_at = self._time()
            note_rhythms(ports.journal, list(ports.clients), ports.clock)
            thin_deliveries(ports, now)
            end_missing(ports)
            marked = self._verify_old(now) or marked
            self._mind_silence()
        return (marked or is_time) and self._is_due()

    def _mind_silence(self) -> None:
        """Where webhooks have gone quiet, look at the subscription, and pull what is near more often. Blocking."""
        ports = self.ports
        silent = silences(ports.journal, list(ports.clients), ports.clock, after=ports.pipeline.webhooks.silence_after)
        for name, pause in silent.items():
            if name not in self._silent:
                log.warning("action=silence connection=%s seconds=%d", name, pause.total_seconds())
                if SubjectKind.SUBSCRIPTION in self._actions:
                    ports.mark([Subject(name, SubjectKind.SUBSCRIPTION)], Source.REPAIR)
            if self._time() - self._silent.get(name, -inf) >= _PULL_WHILE_SILENT:
                self._silent[name] = self._time()
                self.pull("near", [name])
        for name in self._silent.keys() - silent.keys():
            del self._silent[name]

    def _verify_old(self, now: datetime) -> bool:
        settings = self.ports.pipeline.sync
        budget = {
            name: calls_within(self.ports.verify_budget(name), timedelta(seconds=_LOOK_AFTER_EVERY), now)
            for name in self.ports.clients
        }
        if not settings.verify_bookings_within or not any(budget.values()):
            return False
        within = timedelta(seconds=settings.verify_bookings_within)
        # Most bookings stay confirmed for ever after travel: one that is over is left to pulls and notifications.
        known = known_bookings(self.ports.warehouse, since=(now - timedelta(days=1)).date())
        due = due_verifications(known, now, within=within, at_most=lambda name: budget.get(name, 0))
        subjects = [s for found in due.values() for s in found]
        return bool(self.ports.mark(subjects, Source.TIMER))

    def _is_due(self) -> bool:
        working = {name for name in self.ports.clients if self._sharing.may(name)}
        working -= {t.connection for t in self._worker.troubles}
        return not working.isdisjoint(self.ports.journal.subjects.due())

    def _products_landed(self, connections: set[str]) -> None:
        """New options and new months of known products: whatever has no subject yet is marked. Blocking, from the worker."""
        known = {
            row.subject
            for connection in connections
            for row in self.ports.journal.subjects.rows(connection, SubjectKind.AVAILABILITY)
        }
        self.ports.mark(horizon.missing_availability(self.ports, connections, known), Source.SCHEDULE)

    def _taken(self, connections: set[str]) -> None:
        """What a former owner of them had landed and did not come to mark. Blocking, from the worker."""
        horizon.offered_options(self.ports)
        self._products_landed(connections)

    async def _say_how_far(self) -> None:
        if self._time() - self._busy_since < _SAY_HOW_FAR_EVERY:
            return
        self._busy_since = self._time()
        backlog = await asyncio.to_thread(self.ports.journal.subjects.backlog)
        left, rows = sum(b.dirty for b in backlog), self._worker.lander.totals.rows
        if left and self._said_of != self.landed:
            self._said_of = self.landed
            self._say(f"{self.landed:,} subjects done, {rows:,} rows written; {left:,} pending.")

    def _say_who_answers(self) -> None:
        """Services that do not answer, or refuse us, are news once; that they answer again too."""
        unwell = self._worker.unwell
        for name, error in unwell.items():
            # Which of its requests it was this time is no news.
            if self._unwell.get(name) is not type(error):
                self._say(f"{name}: {str(error).rstrip('.')}. What is pending stays marked and is tried again.")
        for name in self._unwell.keys() - unwell.keys():
            self._say(f"{name}: answers again.")
        self._unwell = {name: type(error) for name, error in unwell.items()}

    async def _publish_when_due(self) -> None:
        """Begin a new read copy when there is something to show and the last one is long enough ago."""
        if self._publish_in() <= 0 and await self._owes_readers() and await asyncio.to_thread(self._ever_pulled):
            self._publishing = asyncio.create_task(self._publish())
            self._publishing.add_done_callback(lambda _: self.wake.set())

    async def _tell_what_is_shown(self) -> None:
        """Tell those who wait for readers to have what pulls brought."""
        shown, self._shown = self._shown, Ended()
        if not self.ports.pipeline.publish.enabled:
            # There is nobody to wait for, and nothing that could be compared.
            shown, self._ended = Ended(well=self._ended.well), Ended()
        if shown.well:
            self._all_is_well()
        if shown.all_bookings and self._published is not None:
            await asyncio.to_thread(self._published)

    async def _published_to_the_end(self) -> None:
        """Have the copy in the making made, where there is one; what broke it other than a failure breaks us, too."""
        if self._publishing is not None:
            await asyncio.wait([self._publishing])
            self._publishing.result()
            self._publishing = None

    def _ever_pulled(self) -> bool:
        """Whether any pull has ended here: before that a copy would be a small part of the whole. Blocking.

        The run may have been killed after its last landing, or lie behind many others: that nothing is owed says it too.
        """
        if not self._was_pulled:
            journal = self.ports.journal
            ended = any(run.status in ("ok", "partial") and run.command != "serve" for run in journal.runs.last(_RUNS))
            nothing_owed = not (self.never_pulled() or any(b.dirty for b in journal.subjects.backlog()))
            # A pull ends also where no service answers: a copy of nothing helps nobody.
            self._was_pulled = (ended or nothing_owed) and any(self.ports.warehouse.live_rows().values())
        return self._was_pulled

    async def _owes_readers(self) -> bool:
        return self.ports.pipeline.publish.enabled and await asyncio.to_thread(self._to_show) != self._tried

    def _to_show(self) -> tuple[int, ...]:
        """Differs when readers would see something else: rows, deletions, what a pull verified, comparisons of any process.

        Blocking.
        """
        revision = self.ports.journal.reconciliations.revision()
        elsewhere = self._sharing.elsewhere()
        landed = self._worker.lander.totals.rows + elsewhere.get("rows_written", 0)
        return landed, self._buried + elsewhere.get("buried", 0), self._pulls.ended, revision

    async def _publish(self) -> None:
        """Build marts, run checks, swap the read copy. A failure is written down and tried again, the old copy stays."""
        self._published_at, to_show = self._time(), await asyncio.to_thread(self._to_show)
        ended, self._ended = self._ended, Ended()
        try:
            published = await asyncio.to_thread(mirror_and_publish, self.ports)
        except OctoSyncError as error:
            log.warning("action=publish_failed run=%s error=%s", self.ports.run_id, error)
            self._say_published(f"Publishing failed: {error} It is tried again.")
            self._ended |= ended
            longest = max(self._pause_after_publishing, _LONGEST_PUBLISH_PAUSE)
            self._publish_pause = min(2 * max(self._publish_pause, _LEAST_PUBLISH_PAUSE), longest)
            return
        self._publish_pause = self._pause_after_publishing
        for failed in published.failed:
            log.warning("action=check_failed run=%s check=%s", self.ports.run_id, failed.check.name)
        log.info("action=publish run=%s bytes=%s", self.ports.run_id, published.size)
        names = ", ".join(failed.check.name for failed in published.failed)
        self._say_published(f"Nothing was published, because checks failed: {names}." if names else "")
        # What a check has stopped is stopped again until something changes.
        self._tried = to_show
        if published.failed:
            self._ended |= ended
        else:
            self._shown |= ended

    def _say_published(self, trouble: str) -> None:
        """Why readers see nothing new, once, and that they do again."""
        if trouble != self._unpublished:
            self._say(trouble or "Published again.")
        self._unpublished = trouble

    def _publish_in(self) -> float:
        return self._published_at + self._publish_pause - self._time()

    @property
    def _pause_after_publishing(self) -> float:
        return self.ports.pipeline.publish.every

    async def _sleep(self, waits: list[float]) -> None:
        """Until somebody wakes us, or the next thing is due."""
        moments = [*await asyncio.to_thread(self._next_moments), self._next_hold]
        if self._publishing is None and self._was_pulled and await self._owes_readers():
            waits.append(self._publish_in())
        if self._sharing.keeps:
            waits.append(self._looked_after_at + _LOOK_AFTER_EVERY - self._time())
        waits += [(m - self.ports.clock.now()).total_seconds() for m in moments if m is not None]
        waits.append(_WHILE_OTHERS_WORK if self._sharing.is_waiting else _LONGEST_SLEEP)
        if self.wake.is_set():
            return
        if self._publishing is None:
            self.idle.set()
            self._busy_since = self._time()
        try:
            async with asyncio.timeout(max(_LEAST_SLEEP, min(waits))):
                await self.wake.wait()
        except TimeoutError:
            pass
        finally:
            self.idle.clear()

    def _next_moments(self) -> list[datetime | None]:
        """When the next subject and the next timer are due. Blocking."""
        # The clock may have been put back since the worker looked.
        looked_at = min(self.ports.clock.now(), self._worker.looked_at)
        journal = self.ports.journal
        return [journal.subjects.next_due_at(looked_at), journal.timers.next_at() if self._sharing.keeps else None]
