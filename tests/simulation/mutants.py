"""Planted bugs, each of which must turn the simulation red: `python -m tests.simulation.mutants` prints the table.

A mutant is a small patch of the program, applied in a process of its own before anything runs. `stretches` are the faults
of its days, so that few days are enough; without any they are days of notifications.
"""

# ruff: noqa: ARG005, T201 - patches take what the originals take; a program prints

import argparse
import contextlib
import dataclasses
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

__all__ = ["MUTANTS", "Mutant", "hunt", "in_a_process"]

MOST = 30
"""Days until a mutant counts as survived."""


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    breaks: str
    plant: Callable[[], object]
    stretches: tuple[str, ...] = ()
    confirms: bool | None = None
    """Whether its days have confirming looks, which heal much: by the seed when None."""
    workers: int = 1
    """How many share the project."""


MUTANTS: dict[str, Mutant] = {}


def mutant(breaks, *stretches, confirms=None, workers=1):
    def named(plant):
        name = plant.__name__.replace("_", " ")
        MUTANTS[name] = Mutant(name, breaks, plant, stretches, confirms, workers)
        return plant

    return named


# -- receiving --------------------------------------------------------------------------------------------------------


@mutant("R1")
def acknowledge_before_commit():
    from octo_sync.flows.webhooks.receive import Inbox

    async def durable(self, item):
        import asyncio

        loop = asyncio.get_running_loop()
        self._waiting.append((item, loop.create_future()))
        if self._committing is None or self._committing.done():
            self._committing = loop.create_task(self._commit_all())

    Inbox._durable = durable


@mutant("R3")
def deduplicate_deliveries_by_body():
    from octo_sync.flows.webhooks.receive import Inbox

    receive, seen = Inbox.receive, set()

    async def once(self, connection, endpoint, body, *, odd=""):
        if body in seen:
            return self._routing.received(connection, endpoint, body, odd=odd)
        seen.add(body)
        return await receive(self, connection, endpoint, body, odd=odd)

    Inbox.receive = once


@mutant("R1", confirms=False)
def marks_in_a_transaction_of_their_own():
    from octo_sync.flows.webhooks.receive import Inbox
    from octo_sync.journal.inbox import Inbox as Stored

    apply, durable = Stored._apply, Inbox._durable
    unmarked = {}

    def only_stored(self, items, source, *, keep):
        bare = [dataclasses.replace(item, subjects=(), months=(), confirm_at=()) for item in items]
        unmarked.setdefault(self._store.path, []).extend(items)
        return apply(self, bare, source, keep=keep)

    async def then_marked(self, item):
        import asyncio

        await durable(self, item)
        loop, items = asyncio.get_running_loop(), unmarked.pop(self._journal.path, [])
        from octo_sync.model import Source

        loop.call_later(0.5, lambda: apply(self._journal.inbox, items, Source.NOTIFICATION, keep=False))

    Stored._apply, Inbox._durable = only_stored, then_marked


@mutant("routing")
def only_the_first_option_marked():
    from octo_sync.journal import inbox

    subjects = inbox._subjects_of
    inbox._subjects_of = lambda connection, months, known: subjects(connection, months, known[:1])


@mutant("R5", confirms=True)
def no_confirming_looks():
    from octo_sync.flows.webhooks.receive import Routing

    received = Routing.received
    Routing.received = lambda self, *args, **more: dataclasses.replace(received(self, *args, **more), confirm_at=())


@mutant("R5, durable timers", confirms=True)
def confirming_looks_lost_on_restart():
    from octo_sync.flows.sync.keep import Keeper

    begin = Keeper.__init__

    def forgetful(self, ports, *args, **more):
        begin(self, ports, *args, **more)
        with ports.journal.writing() as db:
            db.exec_driver_sql("DELETE FROM timers")

    Keeper.__init__ = forgetful


@mutant("R5", confirms=True)
def fired_timers_mark_nothing():
    from octo_sync.journal import sql

    sql.FIRE_TIMERS = "SELECT ?1, ?2, ?3, ?4"


# -- working ----------------------------------------------------------------------------------------------------------


@mutant("R2", confirms=False)
def the_mark_of_now_is_cleared():
    from octo_sync.journal import sql

    sql.LANDED = sql.LANDED.replace("landed_seq = ?4,", "landed_seq = wanted_seq,", 1)


@mutant("the order of a landing", confirms=False)
def clean_before_the_warehouse_has_it():
    from octo_sync.flows.sync import land

    before = land.land

    def swapped(ports, batch, *more):
        ports.journal.subjects.landed([f.claim for f in batch], run_id=ports.run_id)
        return before(ports, batch, *more)

    land.land = swapped


@mutant("R11", confirms=False)
def a_failure_counted_as_landed():
    from octo_sync.flows.sync.work import Worker

    Worker._failed = lambda self, claim, error: self.ports.journal.subjects.landed([claim], run_id=self.ports.run_id)


@mutant("R11", "status_5xx")
def a_connection_given_up_for_good():
    from octo_sync.flows.sync.work import Worker

    Worker.revive = lambda self, *args: None


@mutant("R11", "option_400")
def quarantine_without_a_second_chance():
    from octo_sync.journal import sql
    from octo_sync.journal.quarantine import Quarantine

    sql.MARK = sql.MARK.replace("excluded.source IN ('user', 'notification', 'repair')", "false")
    Quarantine.retry = lambda self, *args, **more: 0


@mutant("R2", confirms=False)
def a_rest_that_forgets_the_mark():
    from octo_sync.flows.sync.work import Worker

    claim = Worker._claim

    async def forgetting(self):
        import asyncio

        resting = self._throttle.throttled(asyncio.get_running_loop().time())
        with self.ports.journal.writing() as db:
            for one in resting:
                db.exec_driver_sql(
                    'UPDATE subjects SET landed_seq = wanted_seq WHERE connection = ? AND kind = ? AND "key" = ?',
                    (one.connection, one.kind.value, one.key),
                )
        await claim(self)

    Worker._claim = forgetting


@mutant("a stop", "restart")
def swallowed_cancellation():
    from octo_sync.flows.sync.keep import Keeper

    sleep = Keeper._sleep

    async def deaf(self, waits):
        import asyncio

        with contextlib.suppress(asyncio.CancelledError):
            await sleep(self, waits)

    Keeper._sleep = deaf


@mutant("the token stays here", "redirect")
def follow_redirects():
    import httpx

    from octo_sync.octo.client import OctoClient

    begin = OctoClient.__init__

    class Following(httpx.AsyncBaseTransport):
        def __init__(self, inner):
            self._inner = inner

        async def handle_async_request(self, request):
            answer = await self._inner.handle_async_request(request)
            if not answer.has_redirect_location:
                return answer
            there = request.url.join(answer.headers["location"])
            moved = httpx.Request(request.method, there, headers=request.headers, stream=request.stream)
            return await self._inner.handle_async_request(moved)

    def following(self, *args, **more):
        begin(self, *args, **more)
        self._transport = Following(self._transport)

    OctoClient.__init__ = following


@mutant("upkeep")
def holds_looked_at_by_nobody():
    from octo_sync.flows.sync import keep

    keep.due_holds = lambda known, now: ([], None)


# -- meaning ----------------------------------------------------------------------------------------------------------


@mutant("days at the venue", "restart")
def local_midnight_in_utc():
    from octo_sync.flows.ports import Ports

    Ports.today = lambda self, time_zone: self.clock.now().date()


@mutant("money is exact", "restart")
def money_in_floats():
    from octo_sync.tables import base

    base.amount = lambda minor, precision: (
        f"(trunc(({minor})::double / power(10, {precision}) * 10000) / 10000)::decimal(18,4)"
    )


@mutant("R7", "empty_list", "cut_list")
def absence_taken_for_deletion():
    from octo_sync.flows.sync import settle

    decide = settle.decide

    def hasty(absences, live, **more):
        return decide([dataclasses.replace(a, misses=2) for a in absences], live, **{**more, "allow": True})

    settle.decide = hasty


@mutant("R7", "cut_list")
def settled_with_one_proof():
    from octo_sync.flows.sync import settle

    settle._PROOFS = 1


@mutant("R7", "restart")
def absence_beyond_the_days_asked_for():
    from octo_sync.destinations.landing.merge import Merger
    from octo_sync.flows.sync import settle

    decide = settle.decide
    Merger._within = staticmethod(lambda table: "")
    settle.decide = lambda absences, live, **more: decide(absences, live, **{**more, "allow": True})


@mutant("R7", "lapsed_holds_unreadable")
def not_found_believed_against_the_list():
    from octo_sync.destinations.landing import steps as landing

    landing._speaks_for = lambda table: "false"


@mutant("R10", "fields_dropped")
def missing_fields_let_go():
    from octo_sync.destinations.landing import losses as losing

    losing.judge = lambda *args, **more: "real"


@mutant("one row a key", "entries_doubled")
def what_stands_twice_lands_twice():
    from octo_sync.octo.oddities import Oddities

    Oddities.once = lambda self, path, entries, key: entries or []


@mutant("upkeep", "fields_set")
def the_end_of_a_hold_counted_on():
    import datetime as dt

    from octo_sync.flows.sync import due as upkeep

    upkeep._NEVER = dt.datetime.max.replace(tzinfo=dt.UTC)


# -- landing ----------------------------------------------------------------------------------------------------------


@mutant("R8", confirms=False)
def watermark_in_a_transaction_of_its_own():
    from octo_sync.destinations.duckdb.transactions import transaction
    from octo_sync.destinations.landing import steps as landing

    stage, cover = landing.LandingWork.stage, landing.cover

    def first_the_watermark(self):
        stage(self)
        from octo_sync.destinations.duckdb import warehouse as duckdb

        with duckdb.transaction(self.db):
            cover(self.db, self._fresh, self.landing.run_id, missed=True)

    assert transaction
    landing.LandingWork.stage = first_the_watermark


@mutant("R8", confirms=False)
def the_private_file_after_the_main_one():
    from octo_sync.destinations.duckdb import warehouse as duckdb
    from octo_sync.destinations.landing.steps import LandingWork

    land_private, land, waiting = LandingWork.land_private, LandingWork.land, []

    def later(self):
        waiting.append(self)

    land_of_warehouse = duckdb.DuckDBWarehouse.land

    def swapped(self, landing):
        waiting.clear()
        report = land_of_warehouse(self, landing)
        for work in waiting:
            with duckdb.transaction(self._db):
                land_private(work)
        return report

    assert land
    LandingWork.land_private, duckdb.DuckDBWarehouse.land = later, swapped
    LandingWork.clean_up = lambda self: None


@mutant("R6", confirms=False)
def ordered_by_the_wall_clock():
    from octo_sync.app.project import Numbers

    def by_the_clock(self):
        return int(self._journal.clock.now().timestamp() * 1_000_000)

    Numbers.next = by_the_clock


@mutant("R6", confirms=False)
def no_order_at_all():
    from octo_sync.destinations.landing.steps import LandingWork
    from octo_sync.flows.order import Order

    begin = LandingWork.__init__

    def without_memory(self, *args, covered, **more):
        begin(self, *args, covered={}, **more)

    LandingWork.__init__ = without_memory
    # Neither between windows and single records.
    Order.apply = lambda self, answers: list(answers)


@mutant("R9", "zombie")
def fence_unchecked():
    from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse

    DuckDBWarehouse._check_fence = lambda self, fence: None


@mutant("R9", "zombie")
def fence_checked_outside_the_landing():
    import asyncio

    from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
    from octo_sync.flows.sync.work import Worker

    covered, check = Worker._covered, DuckDBWarehouse._check_fence

    async def checked_before_the_fetch(self, claims):
        await asyncio.to_thread(check, self.ports.warehouse, self.ports.fence)
        return await covered(self, claims)

    Worker._covered = checked_before_the_fetch
    DuckDBWarehouse._check_fence = lambda self, fence: None


# -- subscriptions ----------------------------------------------------------------------------------------------------


@mutant("secrets", "forged deliveries")
def any_secret_will_do():
    from octo_sync.receiver import endpoints as doors

    doors.hmac = SimpleNamespace(compare_digest=lambda one, other: True)


@mutant("full PATCH always", "updates drop headers")
def patch_without_headers():
    from octo_sync.octo.client import OctoClient

    update = OctoClient.update_subscription
    OctoClient.update_subscription = lambda self, name, url, types, headers=None: update(self, name, url, types, {})


@mutant("healing")
def healing_asks_for_nothing():
    from octo_sync.app import serve as serving

    serving.close_gap = lambda ports, connection, endpoint: False


@mutant("exactly one", "created without an answer")
def create_without_listing():
    from octo_sync.flows.webhooks.steps import Steps, Turn

    listed = Steps.listed

    async def blind(self, turn: Turn):
        found = await listed(self, turn)
        return [one for one in found if any(name in one.url for name in turn.written)]

    Steps.listed = blind


# -- several workers --------------------------------------------------------------------------------------------------


@mutant("R2", confirms=False, workers=3)
def a_mark_lost_while_one_of_three_lands_it():
    the_mark_of_now_is_cleared()


@mutant("R9", "zombie", workers=3)
def a_fence_unchecked_in_the_warehouse_that_three_share():
    fence_unchecked()


@mutant("R9", "zombie", workers=3)
def a_fence_unchecked_in_the_journal_that_three_share():
    from octo_sync.journal.store import Store

    Store.check_fence = lambda *_, **_more: None


@mutant("one owner", workers=3)
def a_lock_that_another_has_taken_for_free():
    from octo_sync.journal.postgres import SessionLease

    hold = SessionLease.hold
    SessionLease.hold = lambda self, name: hold(self, name) or name.startswith("connection ")


@mutant("one owner", workers=3)
def two_owners_with_one_fence():
    from octo_sync.journal import Share

    noted = Share._noted

    def the_same(self, name):
        fence = noted(self, name) - 1
        self._store.change("UPDATE leases SET fence = ? WHERE name = ?", fence, name)
        return fence

    Share._noted = the_same


@mutant("one owner", workers=3)
def a_connection_that_is_left_with_its_former_owner():
    from octo_sync.journal import Share

    Share._sign_off = lambda self, connection, fence: None


@mutant("a heartbeat", workers=3)
def a_worker_that_says_nothing():
    from octo_sync.journal.postgres import SessionLease

    SessionLease._stay = lambda self, every: None


@mutant("a heartbeat", workers=3)
def a_worker_that_stands_still_is_kept():
    from octo_sync.journal import postgres

    postgres._STILL *= 1000


@mutant("R6", confirms=False, workers=3)
def request_numbers_of_before_a_take_over():
    from octo_sync.flows.ports import Numbers

    Numbers.renew = lambda self: None


NOTICED = {
    "absence beyond the days asked for": 56,
    "acknowledge before commit": 8,
    "the mark of now is cleared": 26,
    "a failure counted as landed": 13,
    "watermark in a transaction of its own": 18,
}
"""The seed that noticed a mutant when it was hunted from the first day on; others are noticed within nine days."""


_BROKEN = re.compile(r"\b(TypeError|AttributeError|NameError|UnboundLocalError|ImportError|ModuleNotFoundError)\b")
"""A patch that no longer fits the program breaks it; that a day ends of this says nothing about the bug."""


def hunt(name, most=MOST, first=1):
    """Days from seed `first` on until the mutant is noticed, and the sentence; None when it survives.

    Raises:
        RuntimeError: The patch does not fit the program.
    """
    planted = MUTANTS[name]
    planted.plant()
    from tests.simulation.day import run

    for seed in range(first, first + most):
        result = run(seed, surely=planted.stretches, confirms=planted.confirms, workers=planted.workers)
        if result.error and _BROKEN.search(result.error):
            raise RuntimeError(f"broken mutant: {name}: {result.error}")
        if result.error:
            return seed - first + 1, result.error
    return None


def in_a_process(name, most=MOST, first=None):
    """Hunt it in a process of its own: (name, what noticed it or None, seconds, what that process complained about)."""
    started = time.monotonic()
    options = ["--one", name, f"--most={most}", f"--first={first or NOTICED.get(name, 1)}"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.mutants", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RED ")]
    return name, lines[0][4:] if lines else None, time.monotonic() - started, done.stderr[-2000:]


def main(arguments=None):
    from tests.simulation.__main__ import fixed_hashing

    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("--one", help="run one mutant here")
    parser.add_argument("--most", type=int, default=MOST, help=f"days until one counts as survived (default: {MOST})")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first day (default: 1)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--from", dest="begin", default="", help="the first mutant of the table to run")
    options = parser.parse_args(arguments)
    fixed_hashing()
    if options.one:
        from tests.simulation.world import clean_up

        try:
            found = hunt(options.one, options.most, options.first)
        finally:
            with contextlib.suppress(OSError):
                clean_up()
        print(f"RED {found[0]} {' '.join(found[1].split())[:300]}" if found else "SURVIVED")
        return 0
    survived = 0
    names = tuple(MUTANTS)
    names = names[names.index(options.begin) :] if options.begin else names
    print("| mutant | what it breaks | days until red | noticed by |\n|---|---|---|---|")
    with ThreadPoolExecutor(options.jobs) as pool:
        hunts = pool.map(lambda name: in_a_process(name, options.most, options.first), names)
        for name, found, _, trouble in hunts:
            days, _, sentence = (found or f"more than {options.most}  SURVIVED {trouble}").partition(" ")
            survived += found is None
            print(f"| {name} | {MUTANTS[name].breaks} | {days} | {sentence[:110]} |", flush=True)
    print(f"{len(names)} mutants, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
