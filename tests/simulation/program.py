"""One instance of the program in the simulation: the real `serving.serve`, whose death is sudden.

A kill leaves the files exactly as they are: write-ahead logs are not folded, locks are dropped as the kernel drops them,
and no cleanup runs. `install` puts the hands on journal and warehouse that crashes and full disks need; once per process.
"""

import asyncio
import contextlib
import contextvars
import logging
import shutil
import sqlite3
import traceback
from datetime import timedelta
from functools import partial

import httpx
from apscheduler.triggers.interval import IntervalTrigger
from tests.simulation.loop import Killed, Process, current

from octo_sync.app import project as app
from octo_sync.app import serve as serving
from octo_sync.app.project import open_project
from octo_sync.destinations.duckdb import warehouse as destination
from octo_sync.errors import LeaseHeld, OctoSyncError, WriterFenced
from octo_sync.flows.order import Order
from octo_sync.flows.sync import keep, settle
from octo_sync.journal import Lease, Share
from octo_sync.journal.inbox import Inbox
from octo_sync.journal.store import Store
from octo_sync.journal.subjects import Subjects
from octo_sync.pipeline.schedule import Schedules

__all__ = ["Actions", "Program", "install"]

LOOK_AFTER = 3000.0
"""Virtual seconds between two looks at what nobody notifies about: a minute would be most of the run."""


STOPS_WITHIN = 60.0
"""Virtual seconds."""


class Program(Process):
    """`world` is everything around it; `clock` its machine's; `warehouse` one that is shared, as a server would be."""

    def __init__(self, world, number):
        super().__init__(f"program {number}")
        self.world, self.app, self.keeper, self.main = world, None, None, None
        # In the order in which they came: their place in a set would follow from an address in memory.
        self.visitors, self.visits, self.journals, self.warehouses, self.leases = {}, set(), [], [], []
        self.crash_at, self.receiving = None, False
        self.still_at, self.still_for, self.went_on_at = None, 0.0, -1.0

    def start(self):
        world = self.world
        means = serving.Means(
            opening=partial(open_project, transport=lambda _: world.to_service),
            server=partial(_Server, self),
            schedules=Timers,
            tokens=world.token,
            # Of several that receive, another may have marked what this one is to work on.
            watch_every=600.0 if world.workers == 1 else 20.0,
        )
        events = serving.Events(say=partial(world.said, self), keeping=self._keeping)
        running = serving.serve(
            world.pipeline,
            parts=serving.PROGRAM_PARTS - {"dashboard"},
            events=events,
            clock=world.machine_clock,
            random=world.program_random(),
            means=means,
        )
        self.main = world.loop.create_task(running, context=self.context(), name=self.name)
        self.main.add_done_callback(self._ended)

    def _ended(self, main):
        if self.alive and not main.cancelled():
            error = main.exception()
            trace = "".join(traceback.format_exception(error)) if error else ""
            self.world.fail(f"the program ended by itself: {type(error).__name__}: {error}\n{trace}")

    def _keeping(self, keeper):
        self.keeper = keeper

    @property
    def keeps(self):
        """Whether it does what belongs to the copy as a whole, as far as it knows."""
        share = self.keeper and self.keeper.ports.share
        return self.keeper is not None and (share is None or share._session.is_locked)

    async def stop(self):
        """As SIGTERM does."""
        self.still_at = None
        self.main.cancel()
        await asyncio.wait([self.main], timeout=STOPS_WITHIN)
        if not self.main.done():
            self.world.fail(f"a program that was told to stop still ran {STOPS_WITHIN:g} s later")
            self.kill("it did not stop")
        self.alive = False

    def kill(self, reason):
        """Now, wherever it is."""
        if not self.alive:
            return
        self.alive = False
        self.world.count(f"crash: {reason}")
        with _as_they_lie(self._files()):
            for thing in (*self.warehouses, *self.journals):
                thing.close()
        for lease in self.leases:
            lease._lock.release()
        for waiting in self.visitors:
            if not waiting.done():
                waiting.set_exception(httpx.ReadError("connection reset by peer"))
        self.app = self.keeper = None
        self.world.died(self)

    def _files(self):
        """Its databases with their logs; the journal only when nobody else has it open."""
        files = [path for warehouse in self.warehouses for path in (warehouse.path, warehouse.private_path)]
        files = [path.with_name(path.name + end) for path in files for end in ("", ".wal")]
        if self.journals and not any(other.alive for other in self.world.programs):
            journal = self.journals[0].path
            files += [journal, journal.with_name(journal.name + "-wal")]
        return list(dict.fromkeys(files))

    def reached(self, where):
        """A place where a crash or a standstill may be due: `crash_at` and `still_at` are (place, how many times from now)."""
        if self._is_due("crash_at", where):
            self.kill(where)
            raise Killed
        if self._is_due("still_at", where):
            self.world.count(f"stands still: {where}")
            self.stand_still(self.still_for)

    def _is_due(self, what, where):
        place, times = getattr(self, what) or (None, 0)
        if place != where:
            return False
        setattr(self, what, (where, times - 1) if times > 1 else None)
        return times == 1

    def stand_still(self, seconds):
        """As SIGSTOP does, wherever it is; at the end it goes on there, unless it was killed meanwhile."""
        world, self.still_at = self.world, None
        self.freeze()
        world.note("still", self.name)
        if current() is self and asyncio.current_task() is None:
            # A thread of it: what it has in its hands stays there while the others go on.
            world.loop.others_go_on(seconds)
            self._go_on()
            _alive()
        else:
            world.loop.call_later(seconds, self._go_on, context=contextvars.Context())

    def _go_on(self):
        if self.alive and self.frozen:
            self.went_on_at = self.world.loop.time()
            self.world.note("goes on", self.name)
            self.world.count("worker that stood still went on")
            self.thaw(self.world.loop)


@contextlib.contextmanager
def _as_they_lie(files):
    """What the block does to these files is undone: closing a database in good order is not what a kill does."""
    images = [(path, path.with_name(path.name + ".image")) for path in files if path.exists()]
    for path, image in images:
        shutil.copyfile(path, image)
    try:
        yield
    finally:
        for path in files:
            path.unlink(missing_ok=True)
        for path, image in images:
            image.rename(path)


class _Server:
    """In place of the sockets: the application, reachable while the block lasts."""

    def __init__(self, program, application, _settings, **_more):
        self._program, self._app = program, application
        self.url = "http://127.0.0.1"

    async def __aenter__(self):
        self._program.app = self._app
        return self

    async def __aexit__(self, *about):
        self._program.app = None


class Timers(Schedules):
    """The program's own schedules by the virtual clock; silent while the scenario wants no pulls."""

    def __init__(self, time_zone, clock, **more):
        super().__init__(time_zone, clock, scheduler=_Scheduler(clock), **more)

    async def start(self):
        if current().world.pulls_are_off:
            return []
        late = await super().start()
        for _ in late:
            current().world.count("schedule caught up")
        return late


class _Scheduler:
    """In place of APScheduler: its own triggers, waited for by the virtual clock."""

    running = False

    def __init__(self, clock):
        self._clock, self._jobs, self._tasks = clock, [], []

    def add_listener(self, *_):
        """Nobody reads what it would say."""

    def add_job(self, call, trigger, args, **_):
        self._jobs.append((call, trigger, args))

    def start(self):
        self.running = True
        self._tasks = [asyncio.create_task(self._repeat(*job)) for job in self._jobs]

    async def _repeat(self, call, trigger, args):
        while True:
            if isinstance(trigger, IntervalTrigger):
                await asyncio.sleep(trigger.interval.total_seconds())
                # As there: what failed is called again at its next time.
                with contextlib.suppress(OctoSyncError):
                    await call(*args)
                continue
            due = trigger.get_next_fire_time(None, self._clock.now() + timedelta(microseconds=1))
            # Looked at again now and then: the wall clock may be put.
            while (left := (due - self._clock.now()).total_seconds()) > 0:
                await asyncio.sleep(min(left, 1800.0))
                if due - self._clock.now() > timedelta(days=1):
                    break
            if left <= 0 and not current().world.pulls_are_off:
                await call(*args)

    def shutdown(self, **_):
        for task in self._tasks:
            task.cancel()


def _alive():
    program = current()
    if program is not None and not program.alive:
        raise Killed
    return program


def _reached(where):
    """Whose process this is, which may end or stand still here."""
    program = _alive()
    if program is not None:
        program.reached(where)
    return program


def install(open_warehouse):
    """Let every journal, warehouse and lease belong to the program that opens it."""
    keep._LOOK_AFTER_EVERY = keep._LONGEST_SLEEP = LOOK_AFTER
    serving._AGAIN = 5.0
    app.open_warehouse = open_warehouse
    for name in ("octo_sync", "stamina"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [Actions()], False
        logger.setLevel(logging.INFO if name == "octo_sync" else logging.CRITICAL)
    _watch_the_journal()
    _watch_ownership()
    _watch_deliveries()
    _watch_the_warehouse()
    _watch_transactions()
    _count_what_is_rare()


def _watch_the_journal():
    opened, writing, reading, leased = Store.__init__, Store.writing, Store.reading, Lease.__init__

    def open_store(self, *args, **more):
        opened(self, *args, **more)
        if (program := current()) is not None:
            program.journals.append(self)

    def lease(self, *args, **more):
        leased(self, *args, **more)
        if (program := current()) is not None:
            program.leases.append(self)

    @contextlib.contextmanager
    def guarded_writing(self, **how):
        program = _reached("before a journal write")
        with writing(self, **how) as connection:
            yield connection
            if program is not None:
                program.reached("before a delivery's commit" if program.receiving else "before a journal commit")
                if program.world.disk_is_full:
                    program.world.count("journal commit failed")
                    raise _disk_full()
        if program is not None:
            program.reached("after a delivery's commit" if program.receiving else "after a journal commit")

    @contextlib.contextmanager
    def guarded_reading(self):
        _alive()
        with reading(self) as connection:
            yield connection

    Store.__init__, Store.writing, Store.reading, Lease.__init__ = open_store, guarded_writing, guarded_reading, lease


def _watch_ownership():
    take, give, release, check = Share.take, Share.give, Share.release, Store.check_fence

    def told_take(self, connection):
        taken = take(self, connection)
        if taken:
            current().world.owners.took(current(), connection, self.owned[connection])
        return taken

    def told_give(self, connection):
        give(self, connection)
        current().world.owners.gave(current(), [connection])

    def told_release(self):
        owned = list(self.owned)
        release(self)
        current().world.owners.gave(current(), owned)

    def judged_check(self, connection, names, **more):
        program = current()
        with _counting_refusals(program, LeaseHeld, "step in the journal refused"):
            check(self, connection, names, **more)
        if program is not None and program.world.server is not None:
            program.world.owners.acts(program, names)

    Share.take, Share.give, Share.release, Store.check_fence = told_take, told_give, told_release, judged_check


def _watch_deliveries():
    receive = Inbox.accept

    def told_receive(self, items):
        program = current()
        if program is None or not items:
            return receive(self, items)
        program.receiving = True
        try:
            return receive(self, items)
        finally:
            program.receiving = False

    Inbox.accept = told_receive


def _watch_the_warehouse():
    kind = destination.DuckDBWarehouse
    land, bury, claim, close = kind.land, kind.bury, kind.claim_writer, kind.close

    def guarded_land(self, landing):
        program = _reached("before a landing")
        with _counting_refusals(program):
            report = land(self, landing)
        if program is not None:
            program.world.landed(program, self, landing, report)
            program.reached("between warehouse and journal")
        return report

    def guarded_claim(self, fence, owner):
        program = _alive()
        claim(self, fence, owner)
        if program is not None:
            program.world.took_over(fence)

    def guarded_close(self):
        # A server goes on when one of its clients has gone.
        program = current()
        if program is None or self is not program.world.shared:
            close(self)

    def guarded_bury(self, absences, *, now, fence):
        program = _alive()
        rows = bury(self, absences, now=now, fence=fence)
        if program is not None:
            program.world.buried(absences, fence)
        return rows

    kind.land, kind.bury, kind.claim_writer, kind.close = guarded_land, guarded_bury, guarded_claim, guarded_close


@contextlib.contextmanager
def _counting_refusals(program, refusal=WriterFenced, what="landing of a zombie refused"):
    try:
        yield
    except refusal:
        if program is not None:
            program.world.count(what)
        raise


def _watch_transactions():
    transaction = destination.transaction

    @contextlib.contextmanager
    def guarded_transaction(db):
        program = _alive()
        with transaction(db):
            yield
            if program is not None:
                program.reached("before a warehouse commit")
        if program is not None:
            program.reached("after a warehouse commit")

    destination.transaction = guarded_transaction


def _count_what_is_rare():
    decide, failed = settle.decide, Subjects.failed

    def told_decide(*args, **more):
        plan = decide(*args, **more)
        if plan.held and (program := current()) is not None:
            program.world.count("deletions held")
        return plan

    def told_failed(self, *args, quarantine, **more):
        failed(self, *args, quarantine=quarantine, **more)
        if quarantine and (program := current()) is not None:
            program.world.count("subject quarantined")

    apply = Order.apply

    def told_apply(self, answers):
        found = apply(self, answers)
        if (program := current()) is not None:
            program.world.count("older answers overruled", sum(bool(a.left_out) for a in found))
        return found

    settle.decide, Subjects.failed, Order.apply = told_decide, told_failed, told_apply


class Actions(logging.Handler):
    """What the program logs is what it did: counted by its action."""

    def emit(self, record):
        action = record.msg.partition(" ")[0] if isinstance(record.msg, str) else ""
        if action.startswith("action=") and (program := current()) is not None:
            program.world.count(action)


def _disk_full():
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorname = "SQLITE_FULL"
    return error
