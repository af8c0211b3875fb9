"""The worker: make dirty subjects clean. Claim → fetch → check → land → landed; the same for every road that marks.

Fetches run side by side within each connection's limits while one batch lands; a full batch waits for the landing before
it, so memory is bounded. Whatever fails is written down with its reason and tried again later; it never stops the others.
Longer than most modules, because claims, fetches and landings of one loop share its state.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import Any

from octo_sync.destinations.base import Covered
from octo_sync.errors import (
    AuthenticationRefused,
    NotFound,
    OctoSyncError,
    RateLimited,
    RequestRefused,
    ServiceError,
    ServiceUnavailable,
)
from octo_sync.flows.ports import Ports
from octo_sync.flows.sync.breaker import GIVEN_UP, Health, Throttle, Trouble
from octo_sync.flows.sync.fetch import Fetched, Fetcher
from octo_sync.flows.sync.land import Lander
from octo_sync.flows.sync.paces import Paces
from octo_sync.flows.sync.sharing import Sharing
from octo_sync.model import Claim, Source, Subject, SubjectKind

log = logging.getLogger("octo_sync")

_CLAIMS = 64
"""Subjects claimed at a time: few enough that what is urgent soon has its turn."""
_MANY, _ASK_EVERY = 8, 0.25
"""Of more connections than these most owe nothing: those of which something is due are asked for all at once, no more often."""
_SELDOM = 10
"""And when something urgent was marked not before as many times longer than it took, at most the same."""
_LEAST_WAIT = 0.01
_MEANWHILE_EVERY = 1.0
_DOUBLINGS = 30
"""From a tenth of a second to years; what is tried for ever would otherwise wait longer than a float can say."""
_NOTHING_THERE = frozenset({301, 302, 303, 307, 308, 404, 405, 410})
_REDIRECTS = range(300, 400)
"""Where a whole service is sent elsewhere for a while, that is none of its subjects' fault."""
_REFUSED_TRIES = 2
"""A request that was refused twice as it is will be refused a third time; some services block whoever insists (Q2)."""


class Worker:
    """Works through the journal's dirty subjects of the given kinds.

    `failed` holds the subjects whose last try in this run failed, and why. `on_products` is called, in a thread, with the
    connections whose product documents have landed. `wake` is set by whoever marked something urgent: what has not been
    begun yet is then chosen anew, by priority. `actions` make subjects clean that have no rows to land. `meanwhile` is
    called about once a second however long a drain takes. `taken` is called, in a thread, with connections that it shares
    with other workers and takes.
    """

    def __init__(
        self,
        ports: Ports,
        kinds: Collection[SubjectKind] | None = None,
        *,
        on_products: Callable[[set[str]], object] | None = None,
        wake: asyncio.Event | None = None,
        actions: Mapping[SubjectKind, Callable[[Claim], Awaitable[None]]] | None = None,
        meanwhile: Callable[[], Awaitable[object]] | None = None,
        taken: Callable[[set[str]], object] = lambda _: None,
    ) -> None:
        self.ports = ports
        self._meanwhile, self._meanwhile_at = meanwhile, -inf
        self._actions = actions or {}
        self.kinds = [k for k in kinds or SubjectKind if k is not SubjectKind.SUBSCRIPTION or k in self._actions]
        self._wake = wake or asyncio.Event()
        self._throttle = Throttle(ports.pipeline.webhooks.rest)
        self._on_products = on_products
        self.failed: dict[Subject, str] = {}
        self.lander = Lander(ports, self._broke, None if ports.share is None else on_products)
        self._fetcher = Fetcher(ports)
        self._health = {name: Health() for name in ports.clients}
        self._turns = list(ports.clients)
        self._due: Collection[str] = ports.clients.keys()
        self._ask_at = self._ask_soonest = -inf
        self._tasks: dict[asyncio.Task[Fetched | None], Claim] = {}
        self.without_products: set[str] = set()
        """Connections whose product list was refused."""
        self._paces = Paces(ports)
        self._taken = taken
        self.sharing = Sharing(ports, self.kinds, self._take)
        self.looked_at = ports.clock.now()
        """When it last looked whether anything is due."""

    @property
    def troubles(self) -> list[Trouble]:
        """Connections that were given up for this run."""
        return [h.stopped for h in self._health.values() if h.stopped]

    @property
    def failed_services(self) -> set[str]:
        """Connections that were given up or refused their product list. One that permits no more for now did answer."""
        gone = {t.connection for t in self.troubles if not isinstance(t.error, RateLimited)}
        return gone | self.without_products

    @property
    def unwell(self) -> dict[str, ServiceError]:
        """Connections that were given up and have not answered since, with what went wrong."""
        return {name: health.unwell for name, health in self._health.items() if health.unwell}

    async def drain(self, *, patient: bool = True) -> float | None:
        """Work until nothing is dirty, or what is left cannot be done now.

        Args:
            patient: Wait also for what is due later. Without it, come back as soon as nothing is due now.

        Returns:
            Seconds until the first throttled subject may be fetched again; None when none is throttled.

        Raises:
            WarehouseError: The warehouse failed; what had landed stays, the rest stays dirty.
            JournalError: The journal failed.
        """
        self._fetcher.forget_refused()
        try:
            await self._share()
            while True:
                await self._tell()
                await self._do_meanwhile()
                self._paces.note(self.kinds)
                await self._claim()
                if not self._tasks and not self.lander.busy:
                    self.lander.start()
                if self._tasks or self.lander.busy:
                    # Not for the landing alone: what is marked meanwhile is fetched beside it.
                    await self._wait()
                elif not self.lander.products_changed and await self._nothing_left(patient=patient):
                    if await self._share():
                        continue
                    self._paces.note(self.kinds, at_once=True)
                    return self._throttle.first(asyncio.get_running_loop().time())
        finally:
            await to_its_end(self._abandon())

    async def _do_meanwhile(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._meanwhile and now - self._meanwhile_at >= _MEANWHILE_EVERY:
            self._meanwhile_at = now
            await self._share()
            await self._meanwhile()

    async def _share(self) -> bool:
        """Own the connections that are to be worked on, where others work too; whether there is one more."""
        if self.ports.share is None:
            return False
        stopped = [name for name, health in self._health.items() if health.stopped]
        taken = await asyncio.to_thread(self.sharing.renew, self._busy, stopped)
        self._unclaim(name for name in self._health if not self.sharing.may(name))
        return taken

    def _unclaim(self, connections: Iterable[str]) -> None:
        """Give back what was claimed of them and not begun."""
        for health in map(self._health.__getitem__, connections):
            self.ports.journal.subjects.release([claim for claim, _ in health.claimed])
            health.claimed.clear()

    async def hand_back(self) -> None:
        """Leave to other workers what owes nothing now."""
        if self.ports.share is not None:
            await asyncio.to_thread(self.sharing.hand_back, self._busy)

    @property
    def _busy(self) -> set[str]:
        claimed = {name for name, health in self._health.items() if health.claimed}
        return {claim.subject.connection for claim in self._tasks.values()} | claimed | self.lander.connections

    def _take(self, connections: set[str]) -> None:
        for connection in connections:
            self._paces.take(connection)
        self._taken(connections)

    async def _claim(self) -> None:
        """Take as many claims as the connections have room for; none while memory is full."""
        if self.lander.full and self.lander.busy:
            return
        if self._wake.is_set():
            self._wake.clear()
            self._ask_at = self._ask_soonest
            self._unclaim(self._health)
        time, subjects = asyncio.get_running_loop().time, self.ports.journal.subjects
        now = time()
        if len(self._health) > _MANY and now >= self._ask_at:
            self._due = set(subjects.due(self.kinds))
            # Of thousands that takes a tenth of a second, in which nothing else goes on.
            self._ask_soonest = time() + min(_ASK_EVERY, _SELDOM * (time() - now))
            self._ask_at = max(self._ask_soonest, now + _ASK_EVERY)
        begun: dict[str, None] = {}
        for name in self._turns:
            health = self._health[name]
            # Together no more than a batch takes, for all may answer at once; but one of each connection, for others may only
            # wait for what their services permit.
            free = max(self.ports.pipeline.sync.batch_bodies - len(self._tasks), int(not health.in_flight))
            room = min(free, self.ports.connection(name).limits.concurrency * 2 - health.in_flight)
            if health.stopped or room <= 0 or not self.sharing.may(name):
                continue
            if name in self._due and (not health.claimed or health.waits):
                claims = subjects.claim(
                    _CLAIMS,
                    run_id=self.ports.run_id,
                    kinds=self.kinds,
                    connections=[name],
                    exclude=self._throttle.throttled(now),
                )
                known = await self._covered(claims)
                health.claimed.extend((claim, known.get(claim.subject)) for claim in claims)
            for _ in range(min(room, len(health.claimed))):
                chosen = health.next()
                if chosen is None:
                    break
                claim, covered = chosen
                self._throttle.begun(claim, now)
                self._tasks[asyncio.create_task(self._fetch(claim, covered))] = claim
                begun[name] = None
                health.in_flight += 1
                health.heavy += claim.subject.kind is SubjectKind.BOOKINGS
        if begun:
            # Whose turn it was has the next one last.
            self._turns = [*(name for name in self._turns if name not in begun), *begun]

    async def _covered(self, claims: Sequence[Claim]) -> Mapping[Subject, Covered]:
        """What was landed of them last. In a thread: a server that is away must not hold up who receives deliveries."""
        try:
            return await asyncio.to_thread(self.ports.warehouse.covered, [c.subject for c in claims])
        except BaseException:
            self.ports.journal.subjects.release(claims)
            raise

    async def _fetch(self, claim: Claim, covered: Covered | None) -> Fetched | None:
        """The answer to land; None for a subject that an action has made clean."""
        action = self._actions.get(claim.subject.kind)
        if action is None:
            connection, began = claim.subject.connection, self.ports.numbers.last
            self.ports.order.begin(connection, began)
            try:
                return replace(await self._fetcher.fetch(claim, covered), began=began)
            except BaseException:
                self.ports.order.end((connection, began))
                raise
        await action(claim)
        await asyncio.to_thread(self.ports.journal.subjects.landed, [claim], run_id=self.ports.run_id)
        return None

    async def _wait(self) -> None:
        """Until a fetch or the landing is done, or something urgent was marked; then take care of what it brought."""
        waiting: set[asyncio.Task[Any]] = {*self._tasks, woken := asyncio.create_task(self._wake.wait())}
        if self.lander.landing is not None:
            waiting.add(self.lander.landing)
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED, timeout=_MEANWHILE_EVERY)
        finally:
            woken.cancel()
        self.lander.check()
        for task in done:
            claim = self._tasks.pop(task, None)
            if claim is not None:
                self._took(claim, task)
        if self.lander.full:
            if self.lander.busy and self.lander.landing is not None:
                await asyncio.wait([self.lander.landing])
            self.lander.start()
        elif self.lander.worthwhile and not self.lander.busy:
            self.lander.start()

    def _took(self, claim: Claim, task: "asyncio.Task[Any]") -> None:
        """A fetch is over: its answer goes to the lander, its error is written down."""
        health = self._health[claim.subject.connection]
        health.in_flight -= 1
        health.heavy -= claim.subject.kind is SubjectKind.BOOKINGS
        error = task.exception()
        if error is None:
            health.failures, health.unwell, health.answered = 0, None, True
            self.failed.pop(claim.subject, None)
            if claim.subject.kind is SubjectKind.PRODUCTS:
                self.without_products.discard(claim.subject.connection)
            if (fetched := task.result()) is not None:
                self.lander.add(fetched)
        elif isinstance(error, Exception):
            self._broke(claim, error)
        else:
            raise error

    def _broke(self, claim: Claim, error: Exception) -> None:
        """An answer did not come, or could not be read."""
        if not isinstance(error, OctoSyncError):
            # A mistake of ours about one answer must not stop the night either (R11); the trace is for --debug.
            log.debug("action=fetch_broke subject=%s", claim.subject, exc_info=error)
            error = OctoSyncError(f"The answer could not be read ({type(error).__name__}); please report this.")
        self._failed(claim, error)

    async def _tell(self) -> None:
        """Say which connections' products have landed: there may be more to mark."""
        changed, self.lander.products_changed = self.lander.products_changed, set()
        if changed and self._on_products:
            await asyncio.to_thread(self._on_products, changed)

    def given_up_for(self, after: float) -> float | None:
        """Seconds until the next connection may be tried again that was given up; None when none was."""
        now = asyncio.get_running_loop().time()
        left = [h.stopped_at + after - now for h in self._health.values() if h.stopped]
        return max(0.0, min(left)) if left else None

    def revive(self, after: float, connections: Collection[str] | None = None) -> None:
        """Try connections again, all or some, that were given up at least `after` seconds ago."""
        now = asyncio.get_running_loop().time()
        for name, health in self._health.items():
            if health.stopped and (connections is None or name in connections) and now - health.stopped_at >= after:
                log.info("action=revive run=%s connection=%s", self.ports.run_id, name)
                # One failure more and it is given up again; one success and it is as good as new.
                health.stopped, health.failures, health.answered = None, max(0, health.failures - 1), False
                self.ports.clients[name].readmit()

    def _give_up(self, connection: str, error: ServiceError) -> None:
        health = self._health[connection]
        if not health.stopped:
            health.stopped, health.unwell = Trouble(connection, error), error
            health.stopped_at = asyncio.get_running_loop().time()
            noted = f"{self.ports.clock.now().isoformat()} {health.stopped.why}"
            self.ports.journal.settings.set(GIVEN_UP, noted, connection=connection)

    def _failed(self, claim: Claim, error: OctoSyncError) -> None:
        ports, settings, subject = self.ports, self.ports.pipeline.sync, claim.subject
        health = self._health[subject.connection]
        run, name, kind = ports.run_id, subject.connection, type(error).__name__
        log.warning("action=fetch_failed run=%s connection=%s subject=%s error=%s", run, name, subject, kind)
        self.failed[subject] = str(error)
        if isinstance(error, AuthenticationRefused):
            ports.journal.subjects.release([claim])
            self._give_up(subject.connection, error)
            return
        if isinstance(error, RequestRefused) and subject.kind is SubjectKind.PRODUCTS:
            self.without_products.add(subject.connection)
            if not health.answered and error.status in _NOTHING_THERE:
                # Whatever else were asked for below this address would not be there either.
                ports.journal.subjects.release([claim])
                self._give_up(subject.connection, error)
                return
        health.answered = True
        if isinstance(error, RateLimited) and ports.clients[subject.connection].budget.gave_up is not None:
            ports.journal.subjects.release([claim])
            self._give_up(subject.connection, error)
            return
        is_redirect = isinstance(error, RequestRefused) and error.status in _REDIRECTS
        if isinstance(error, ServiceError) and (isinstance(error, ServiceUnavailable) or is_redirect):
            health.failures += 1
            if health.failures >= max(settings.attempts, ports.connection(subject.connection).limits.concurrency):
                # Not this subject: the service. Its subjects keep their tries for a better day.
                self._give_up(subject.connection, error)
            if health.stopped:
                ports.journal.subjects.release([claim])
                return
        if isinstance(error, NotFound) and subject.kind is SubjectKind.AVAILABILITY:
            # The product or option is said not to exist; its own document decides.
            ports.journal.subjects.mark(
                [Subject(subject.connection, SubjectKind.PRODUCT, subject.parts[:1])], Source.REPAIR
            )
        refused = isinstance(error, RequestRefused | NotFound) and not is_redirect
        tries = min(_REFUSED_TRIES, settings.attempts) if refused else settings.attempts
        delay = min(settings.backoff * 2 ** min(claim.attempts, _DOUBLINGS), settings.backoff_cap)
        if isinstance(error, RateLimited) and error.retry_after:
            delay = max(delay, min(error.retry_after, ports.connection(subject.connection).limits.retry_after_cap))
        delay *= (
            1 + 0.5 * ports.random.random() if isinstance(error, RateLimited) else 0.75 + 0.5 * ports.random.random()
        )
        ports.journal.subjects.failed(
            claim,
            error_code=type(error).__name__,
            message=str(error),
            retry_at=ports.clock.now() + timedelta(seconds=delay),
            # A subscription has nothing that could be wrong with it for good, and without one nothing is told.
            quarantine=claim.attempts + 1 >= tries and subject.kind is not SubjectKind.SUBSCRIPTION,
            run_id=ports.run_id,
        )

    async def _nothing_left(self, *, patient: bool) -> bool:
        """Whether to stop: nothing is dirty, or only what no connection can do now. The patient wait for what is due later."""
        looked_at = self.looked_at = self.ports.clock.now()
        subjects = self.ports.journal.subjects
        open_connections = {
            name for name, health in self._health.items() if not health.stopped and self.sharing.may(name)
        }
        if not open_connections:
            return True
        due = set(subjects.due(self.kinds))
        if not open_connections.isdisjoint(due):
            self._due = due if len(self._health) > _MANY else self._due
            rest = self._throttle.first(asyncio.get_running_loop().time())
            if rest and not patient:
                return True
            await asyncio.sleep(rest or _LEAST_WAIT)
            return False
        if not patient:
            return True
        first = subjects.next_due_at(looked_at)
        if first is None or not subjects.dirty_count(self.kinds, open_connections):
            return True
        # What failed is due later. A least wait keeps this from spinning, whatever the clock and the journal say.
        await asyncio.sleep(max(_LEAST_WAIT, (first - self.ports.clock.now()).total_seconds()))
        return False

    async def _abandon(self) -> None:
        """Stop fetching, finish the landing in hand, give the rest back."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tasks.clear()
        for health in self._health.values():
            health.claimed.clear()
        if self.lander.landing is not None:
            await asyncio.wait([self.lander.landing])
            if (error := self.lander.landing.exception()) is not None:
                log.warning("action=land_failed run=%s error=%s", self.ports.run_id, type(error).__name__)
        self.lander.forget()
        # Also what was fetched and never landed: who works next in this process would leave alone what somebody holds.
        await asyncio.to_thread(self.ports.journal.subjects.release_run, self.ports.run_id)


async def to_its_end(work: Coroutine[Any, Any, object]) -> None:
    """Await it, also where we are cancelled meanwhile; then that is raised."""
    task, cancelled = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
