"""The keeper: marks become rows without anybody running a command, and what nobody notifies about is looked at in time."""

import asyncio
import dataclasses
import datetime as dt
import itertools
import os
import threading
import traceback
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
from tests.flows.harness import QUICK, QUICK_SYNC, Asked, Project, Wire, api_path, booking, keeping, reply, settled

import octo_sync
from octo_sync.app.project import open_journal
from octo_sync.app.serve import Events, serve
from octo_sync.errors import JournalError, WarehouseError
from octo_sync.flows import horizon
from octo_sync.flows.privacy import erase
from octo_sync.flows.publish import Published
from octo_sync.flows.sync import keep
from octo_sync.flows.sync import land as landing
from octo_sync.flows.sync.compaction import Compactor
from octo_sync.flows.sync.keep import Keeper
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.flows.sync.scheduled import Pulls
from octo_sync.flows.sync.sharing import Sharing
from octo_sync.flows.sync.work import Worker
from octo_sync.journal import Timer, store
from octo_sync.journal.lease import Leases
from octo_sync.model import Source, Subject, SubjectKind


@pytest.fixture
def service(larger):
    return larger


@pytest.fixture
def project(project):
    return project(limits=QUICK)


async def test_a_pull_of_a_schedule_ends_equal_and_is_a_run_of_its_own(project):
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        run = keeper.ports.journal.runs.last(1)[0]
        assert (run.command, run.status, run.run_id) == ("pull", "ok", "pull-0")
        assert run.counts["rows_written"] > 100
    assert project.differences() == []


async def test_a_pull_is_not_over_before_the_departures_of_its_products_are_marked(project, monkeypatch):
    landed, go_on, land = threading.Event(), threading.Event(), landing.land

    def slow(*given):
        done = land(*given)
        landed.set()
        assert go_on.wait(120)
        return done

    async with keeping(project) as keeper:
        monkeypatch.setattr(landing, "land", slow)
        monkeypatch.setattr(horizon, "subjects", lambda *_, **__: [Subject("main", SubjectKind.PRODUCTS)])
        await asyncio.to_thread(keeper.pull, "full")
        keeper.wake.set()
        try:
            assert await asyncio.to_thread(landed.wait, 120)
            assert [b for b in keeper.ports.journal.subjects.backlog() if b.dirty] == []
            await keeper._meanwhile()
            assert keeper.ports.journal.runs.last(1)[0].ended_at is None
        finally:
            go_on.set()
        await settled(keeper)
        assert keeper.ports.journal.runs.last(1)[0].counts["rows_written"] > 100


async def test_a_pull_counts_the_landing_that_the_journal_already_knows_of(project, monkeypatch):
    landed, go_on, land, over = threading.Event(), threading.Event(), landing.land, Pulls.over

    def slow(*given):
        done = land(*given)
        landed.set()
        assert go_on.wait(120)
        return done

    def found(self):
        pulls = over(self)
        if pulls:
            threading.Timer(0.3, go_on.set).start()  # whoever does not wait for the landing counts before
        return pulls

    async with keeping(project) as keeper:
        monkeypatch.setattr(landing, "land", slow)
        monkeypatch.setattr(Pulls, "over", found)
        monkeypatch.setattr(horizon, "subjects", lambda *_, **__: [Subject("main", SubjectKind.SUPPLIER)])
        await asyncio.to_thread(keeper.pull, "full")
        keeper.wake.set()
        try:
            assert await asyncio.to_thread(landed.wait, 120)
            while keeper.ports.journal.runs.last(1)[0].ended_at is None:
                await keeper._meanwhile()
        finally:
            go_on.set()
        assert keeper.ports.journal.runs.last(1)[0].counts["subjects"] == 1


@pytest.mark.deep(2)
async def test_a_pull_beside_which_a_record_lies_in_quarantine_is_partial_as_a_sync_is(project):
    async with keeping(project) as keeper:
        keeper.ports.journal.quarantine.add_record("main", "booking", "unread", "$.pricing", "No number.", "before")
        await asyncio.to_thread(keeper.pull, "availability")
        await settled(keeper)
        assert keeper.ports.journal.runs.last(1)[0].status == "partial"
    assert (await project.sync()).status == "partial"


@pytest.mark.deep(2)
async def test_a_change_that_is_marked_lands_without_a_pull(project, service):
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        uuid = service.state()["bookings"][0]["uuid"]
        service.change(uuid, supplier_reference="CHANGED", silent=True)
        service.forget_requests()
        keeper.ports.journal.subjects.mark([booking(uuid)], Source.NOTIFICATION)
        await settled(keeper)
        assert [r["path"].rsplit("/", 1)[-1] for r in service.requests()] == [uuid]
    assert project.differences() == []


@pytest.mark.deep(2)
async def test_what_is_marked_during_a_landing_is_fetched_beside_it(project, service):
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        first, second = (one["uuid"] for one in service.state()["bookings"][:2])
        loop, warehouse = asyncio.get_running_loop(), keeper.ports.warehouse
        land, landing, may_land = warehouse.land, asyncio.Event(), threading.Event()

        def slowly(batch):
            loop.call_soon_threadsafe(landing.set)
            assert may_land.wait(20)
            return land(batch)

        warehouse.land = slowly
        service.forget_requests()
        try:
            keeper.ports.journal.subjects.mark([booking(first)], Source.NOTIFICATION)
            keeper.wake.set()
            async with asyncio.timeout(120):
                await landing.wait()
                keeper.ports.journal.subjects.mark([booking(second)], Source.NOTIFICATION)
                keeper.wake.set()
                while len(service.requests()) < 2:  # noqa: ASYNC110 - the service is another thread's
                    await asyncio.sleep(0.02)
            assert not may_land.is_set()
        finally:
            may_land.set()
        await settled(keeper)
    assert project.differences() == []


def held_up(monkeypatch, warehouse, landing, may_land, stopping):
    """From now on a landing says that it is under way and waits until it may, and who gives up says so."""
    loop, land, abandon = asyncio.get_running_loop(), warehouse.land, Worker._abandon

    def slowly(batch):
        loop.call_soon_threadsafe(landing.set)
        assert may_land.wait(20)
        return land(batch)

    async def told_abandon(self):
        stopping.set()
        await abandon(self)

    monkeypatch.setattr(warehouse, "land", slowly)
    monkeypatch.setattr(Worker, "_abandon", told_abandon)


async def test_a_stop_finishes_the_landing_in_hand(project, service, monkeypatch):
    """As SIGTERM does it: `serve` is cancelled while a landing is under way, which takes longer than all else."""
    monkeypatch.setattr(os, "umask", lambda _: 0o022)
    keeping, stopping = asyncio.get_running_loop().create_future(), asyncio.Event()
    landing, may_land = asyncio.Event(), threading.Event()
    events = Events(keeping=keeping.set_result)
    served = asyncio.create_task(
        serve(project.pipeline, parts=frozenset({"worker"}), events=events, clock=project.clock, random=Random(1))
    )
    try:
        async with asyncio.timeout(120):
            keeper = await keeping
            await keeper.idle.wait()
            uuid = service.state()["bookings"][0]["uuid"]
            service.change(uuid, supplier_reference="IN HAND", silent=True)
            held_up(monkeypatch, keeper.ports.warehouse, landing, may_land, stopping)
            number = keeper.ports.journal.subjects.mark([booking(uuid)], Source.NOTIFICATION)
            keeper.wake.set()
            await landing.wait()
            served.cancel()
            await stopping.wait()
            assert not served.done()
    finally:
        may_land.set()
        if not stopping.is_set():
            served.cancel()
        await asyncio.wait([served])
    assert project.query("select supplier_reference from core.bookings where booking_uuid = $1", uuid) == [("IN HAND",)]
    with open_journal(project.pipeline, project.clock) as journal:
        (row,) = [row for row in journal.subjects.rows("main", SubjectKind.BOOKING) if row.subject == booking(uuid)]
    assert (row.landed_seq, row.dirty) == (number, False)


async def test_who_is_cancelled_while_it_gives_up_still_waits_for_the_landing(project, service, monkeypatch):
    """As a worker whose server is gone: its own loop fails, and what watches beside it fails too and cancels it."""
    await project.sync()
    uuid = service.state()["bookings"][0]["uuid"]
    service.change(uuid, supplier_reference="IN HAND", silent=True)
    landing, may_land, stopping = asyncio.Event(), threading.Event(), asyncio.Event()

    async def broken():
        raise JournalError("It cannot be reached.")

    async with project.opened() as opened:
        worker = Worker(opened.ports)
        held_up(monkeypatch, opened.ports.warehouse, landing, may_land, stopping)
        opened.ports.journal.subjects.mark([booking(uuid)], Source.NOTIFICATION)
        drained = asyncio.create_task(worker.drain())
        try:
            async with asyncio.timeout(60):
                await landing.wait()
                monkeypatch.setattr(worker, "_wait", broken)
                worker._wake.set()
                await stopping.wait()
            drained.cancel()
            await asyncio.wait([drained], timeout=0.1)
            assert not drained.done()
        finally:
            may_land.set()
            await asyncio.wait([drained])
        assert drained.cancelled()
    assert project.query("select supplier_reference from core.bookings where booking_uuid = $1", uuid) == [("IN HAND",)]


async def test_a_mistake_of_ours_that_ends_it_is_a_failed_run(project, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda _: 0o022)

    async def breaks(_self):
        raise RuntimeError("nobody thought of it")

    monkeypatch.setattr(Keeper, "run", breaks)
    with pytest.raises(RuntimeError, match="nobody thought of it"):
        await asyncio.wait_for(
            serve(
                project.pipeline, parts=frozenset({"worker"}), events=Events(), clock=project.clock, random=Random(1)
            ),
            60,
        )
    with open_journal(project.pipeline, project.clock) as journal:
        ended = [(run.status, run.error) for run in journal.runs.last(10) if run.command == "serve"]
    assert ended == [("failed", "RuntimeError")]


@pytest.mark.deep(2)
@pytest.mark.parametrize(
    ("error", "meanwhile"),
    [(JournalError, "answered 503 meanwhile, and senders send them again"), (WarehouseError, "kept meanwhile")],
)
async def test_an_attempt_that_ends_in_an_error_is_a_failed_run_that_the_error_names(
    project, monkeypatch, error, meanwhile
):
    monkeypatch.setattr(os, "umask", lambda _: 0o022)
    runs, said, keeping, tried = Keeper.run, [], asyncio.get_running_loop().create_future(), []

    async def run(self):
        tried.append(self.ports.run_id)
        if len(tried) == 1:
            raise error("The disk is full.")
        await runs(self)

    monkeypatch.setattr(Keeper, "run", run)
    events = Events(say=said.append, keeping=lambda keeper: keeping.set_result(keeper) if tried else None)
    served = asyncio.create_task(
        serve(project.pipeline, parts=frozenset({"worker"}), events=events, clock=project.clock, random=Random(1))
    )
    try:
        async with asyncio.timeout(60):
            await (await keeping).idle.wait()
    finally:
        served.cancel()
        await asyncio.wait([served])
    with open_journal(project.pipeline, project.clock) as journal:
        ended = {run.run_id: (run.status, run.error) for run in journal.runs.last(10) if run.command == "serve"}
    assert ended == {tried[0]: ("failed", "The disk is full."), tried[1]: ("ok", None)}
    again = f"The disk is full. (run {tried[0]}) Trying again until it works; deliveries are {meanwhile}."
    assert again in said


async def test_the_journal_is_asked_in_threads_so_that_deliveries_never_wait_for_a_slow_one(project, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda _: 0o022)
    loops, asked = threading.current_thread(), set()

    class Lock:
        """The journal's, which a thread has for as long as it waits for another process."""

        def __init__(self):
            self._lock = threading.RLock()

        def __enter__(self):
            if threading.current_thread() is loops:
                frames = [(Path(frame.filename), frame.name) for frame in traceback.extract_stack()]
                own = [(f, name) for f, name in frames if "octo_sync" in f.parts and f.parent.name != "journal"]
                asked.add(f"{own[-1][0].stem}.{own[-1][1]}")
            return self._lock.__enter__()

        def __exit__(self, *about):
            return self._lock.__exit__(*about)

    monkeypatch.setattr(store, "threading", SimpleNamespace(RLock=Lock))
    keeping, said = asyncio.get_running_loop().create_future(), []
    events = Events(say=said.append, keeping=keeping.set_result)
    webhooks = dataclasses.replace(project.pipeline.webhooks, url="http://127.0.0.1:1")
    schedule = dataclasses.replace(project.pipeline.schedule, near="0 * * * *")
    pipeline = dataclasses.replace(project.pipeline, webhooks=webhooks, schedule=schedule)
    served = asyncio.create_task(
        serve(pipeline, parts=frozenset({"worker"}), events=events, clock=project.clock, random=Random(1))
    )
    async with asyncio.timeout(60):
        await (await keeping).idle.wait()
    served.cancel()
    await asyncio.wait([served])
    # Before anybody listens and after; and what may not be half done, or whoever fetches must know at once.
    assert asked <= {
        "project.open_journal", "serve.serve",
        "work._claim", "work._unclaim", "work._nothing_left", "paces._noted", "paces._remember",
        "ports.next", "ports.booking_dates_mean", "fetch._meaning",
    }  # fmt: skip
    assert any("subscription" in sentence for sentence in said)


@pytest.mark.deep(2)
async def test_what_breaks_while_it_is_being_stopped_does_not_begin_it_anew(project, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda _: 0o022)
    keeping, said = asyncio.get_running_loop().create_future(), []
    events = Events(say=said.append, keeping=keeping.set_result)
    served = asyncio.create_task(
        serve(project.pipeline, parts=frozenset({"worker"}), events=events, clock=project.clock, random=Random(1))
    )
    async with asyncio.timeout(60):
        await (await keeping).idle.wait()

    def full(_journal, _fence):
        raise JournalError("The disk is full.")

    monkeypatch.setattr(Leases, "drop", full)
    served.cancel()
    try:
        assert (await asyncio.wait([served], timeout=30))[0], said
    finally:
        served.cancel()
        await asyncio.wait([served])
    assert served.cancelled()
    assert not any("Trying again" in sentence for sentence in said)


@pytest.mark.deep(1)
async def test_what_becomes_due_while_it_looks_after_other_things_is_not_slept_over(project, service, monkeypatch):
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        uuid = service.state()["bookings"][0]["uuid"]
        service.forget_requests()
        clock, looking_after, marked = keeper.ports.clock, keeper._meanwhile, []

        async def slowly():
            found = await looking_after()
            if not marked and not keeper._worker._tasks:
                # As a fetch that failed is: due a moment after the worker has seen that nothing is.
                due_at = clock.now() + dt.timedelta(milliseconds=20)
                marked.append(keeper.ports.journal.subjects.mark([booking(uuid)], Source.REPAIR, due_at=due_at))
                while clock.now() <= due_at:  # noqa: ASYNC110 - a clock has no event
                    await asyncio.sleep(0.005)
            return found

        monkeypatch.setattr(keeper, "_meanwhile", slowly)
        keeper.wake.set()
        async with asyncio.timeout(120):
            while not service.requests():  # noqa: ASYNC110 - the service is another thread's
                await asyncio.sleep(0.02)
        assert [r["path"].rsplit("/", 1)[-1] for r in service.requests()] == [uuid]


async def test_who_helps_does_not_wait_for_timers_that_another_fires(project, monkeypatch):
    async with project.opened() as opened:
        keeper, waited = Keeper(opened.ports, asyncio.Event(), lambda: "a pull"), []

        def over(seconds):
            waited.append(seconds)
            raise TimeoutError

        monkeypatch.setattr(asyncio, "timeout", over)
        due = Timer(subject=booking("a"), name="confirm-1", due_at=project.clock.now(), source=Source.CONFIRM)
        opened.journal.timers.set([due])
        await keeper._sleep([])
        monkeypatch.setattr(Sharing, "keeps", False)
        await keeper._sleep([])
        assert waited == [keep._LEAST_SLEEP, keep._LONGEST_SLEEP]


@pytest.mark.deep(2)
async def test_a_new_product_brings_its_availability(project, service):
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        copied = service.state()["products"][0]["id"]
        service.control("POST", "/admin/products", {"copy_of": copied, "id": "new-one", "internal_name": "New"})
        keeper.ports.journal.subjects.mark([Subject("main", SubjectKind.PRODUCTS)], Source.NOTIFICATION)
        await settled(keeper)
        found = keeper.ports.warehouse.query("select count(*) from core.availability where product_id = 'new-one'").rows
        assert found > [(10,)]
    assert project.differences() == []


async def test_a_hold_that_lapses_is_noticed_by_nobody_else(project, service):
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "bookings")
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        held = [b for b in service.state()["bookings"] if b["status"] == "ON_HOLD"]
        assert held, "the seed has holds"
        ends = max(dt.datetime.fromisoformat(b["utc_expires_at"]) for b in held)
        later = ends + dt.timedelta(minutes=1)
        service.control("PUT", "/clock", {"now": later.isoformat(), "freeze": True})
        project.clock.advance(seconds=(later - project.clock.now()).total_seconds() + 5)
        service.forget_requests()
        await settled(keeper)
        asked = {r["path"].rsplit("/", 1)[-1] for r in service.requests()}
        assert asked == {b["uuid"] for b in held}
        left = keeper.ports.warehouse.query("select count(*) from core.bookings where status = 'ON_HOLD'").rows
        assert left == [(0,)]


@pytest.mark.deep(3)
async def test_holds_of_a_connection_that_was_taken_out_are_nobodys_business(tmp_path, service):
    both = {"main": Asked(limits=QUICK), "former": Asked(limits=QUICK)}
    project = Project(tmp_path, service, connections=both)
    await project.sync()
    held = [b for b in service.state()["bookings"] if b["status"] == "ON_HOLD"]
    assert held, "the seed has holds"
    ends = max(dt.datetime.fromisoformat(b["utc_expires_at"]) for b in held)
    del both["former"]
    project.write()
    project.clock.advance(seconds=(ends - project.clock.now()).total_seconds() + 60)
    async with keeping(project) as keeper:
        await settled(keeper)
        rows = list(keeper.ports.journal.subjects.rows(kind=SubjectKind.BOOKING))
        assert {row.subject.parts[0] for row in rows if row.subject.connection == "main"} >= {b["uuid"] for b in held}
        assert [row.subject for row in rows if row.subject.connection == "former"] == []
        # What was owed when it was taken out is not due either.
        keeper.ports.journal.subjects.mark([Subject("former", SubjectKind.SUPPLIER)], Source.SCHEDULE)
        assert not keeper._is_due()


@pytest.mark.deep(2)
async def test_repeats_about_one_booking_cost_a_few_requests(project, service):
    project.write()
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        uuid = service.state()["bookings"][0]["uuid"]
        service.forget_requests()
        for _ in range(300):
            keeper.ports.journal.subjects.mark([booking(uuid)], Source.NOTIFICATION)
            keeper.wake.set()
            await asyncio.sleep(0)
        await settled(keeper)
        assert 1 <= len(service.requests()) <= 2
        # It rests, and is owed: nothing was forgotten.
        assert any(b.dirty for b in keeper.ports.journal.subjects.backlog())


@pytest.mark.deep(2)
async def test_a_service_that_comes_back_is_asked_again_by_itself(project, service):
    project.settings |= {"backoff": "0.05s", "backoff_cap": "0.3s"}
    project.write()
    async with keeping(project) as keeper:
        service.faults({"fault": "status_5xx", "code": 503})
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        assert keeper._worker.troubles
        assert keeper.ports.journal.runs.last(1)[0].status == "failed"
        service.control("DELETE", "/faults")
        async with asyncio.timeout(120):
            while keeper._worker.troubles or any(b.dirty for b in keeper.ports.journal.subjects.backlog()):  # noqa: ASYNC110 - a journal has no event
                await asyncio.sleep(0.05)
        await settled(keeper)
    assert project.differences() == []


@pytest.mark.deep(3)
async def test_something_urgent_overtakes_a_pull(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, availability=(0, 300))
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        uuid = service.state()["bookings"][0]["uuid"]
        service.faults({"fault": "latency", "seconds": 0.2})
        service.forget_requests()
        await asyncio.to_thread(keeper.pull, "full")
        keeper.idle.clear()
        keeper.wake.set()
        async with asyncio.timeout(120):
            while len(service.requests()) < 8:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        keeper.ports.journal.subjects.mark([booking(uuid)], Source.NOTIFICATION, priority=10)
        keeper.wake.set()
        async with asyncio.timeout(120):
            await keeper.idle.wait()
        paths = [r["path"] for r in service.requests()]
        place = next(i for i, path in enumerate(paths) if path.endswith(uuid))
        # Eight had been answered, twelve more were on their way.
        assert place < 25 < len(paths) - 10, f"asked {place + 1}th of {len(paths)}"


@pytest.mark.deep(3)
async def test_timers_and_publishing_do_not_wait_for_a_quiet_moment(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        journal, published = keeper.ports.journal, project.directory / "octo.read.duckdb"
        first = published.stat().st_ino
        uuids = [b["uuid"] for b in service.state()["bookings"]]
        service.faults({"fault": "latency", "seconds": 0.1})
        journal.timers.set([Timer(subject=booking(uuids[0]), name="confirm-1", due_at=keeper.ports.clock.now())])
        keeper._published_at = float("-inf")
        busy, ends = 0, asyncio.get_running_loop().time() + 20
        while journal.timers.rows() or published.stat().st_ino == first:
            assert asyncio.get_running_loop().time() < ends
            # Always more to do than can be done.
            service.change(uuids[1 + busy % 20], supplier_reference=f"R{busy}", silent=True)
            journal.subjects.mark([booking(uuid) for uuid in uuids[1:21]], Source.SCHEDULE)
            keeper.wake.set()
            busy += 1
            await asyncio.sleep(0.05)
            assert not keeper.idle.is_set()
        service.faults()


@pytest.mark.deep(2)
async def test_readers_get_no_copy_of_half_a_first_pull(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)
    copy = project.directory / "octo.read.duckdb"
    async with keeping(project) as keeper:
        service.faults({"fault": "latency", "seconds": 0.1})
        await asyncio.to_thread(keeper.pull, "full")
        keeper.wake.set()
        async with asyncio.timeout(120):
            while keeper.landed < 5:
                keeper._published_at = float("-inf")
                await asyncio.sleep(0.02)
        assert not copy.exists()
        service.faults()
        await settled(keeper)
        keeper._published_at = float("-inf")
        await settled(keeper)
        assert copy.exists()


@pytest.mark.deep(4)
async def test_readers_see_a_deletion_though_nothing_else_changed(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)
    gone, hidden = service.state()["bookings"][0]["uuid"], asyncio.Event()

    def hides(request, answer):
        if hidden.is_set() and api_path(request) == f"/bookings/{gone}":
            return reply({"error": "INVALID_BOOKING_UUID", "errorMessage": "no such booking", "uuid": gone}, 400)
        if hidden.is_set() and api_path(request) == "/bookings":
            return reply([b for b in answer.json() if b["uuid"] != gone])
        return None

    async with keeping(project, transport=Wire.by(hides)) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        assert gone in shown(project)
        hidden.set()
        keeper.ports.journal.subjects.mark([booking(gone)], Source.USER)
        async with asyncio.timeout(120):
            while gone in shown(project):
                keeper._published_at = float("-inf")
                keeper.wake.set()
                await asyncio.sleep(0.05)


@pytest.mark.deep(7)
async def test_only_a_whole_pull_of_all_bookings_is_compared_with_others(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, sync=QUICK_SYNC, publish=True, bookings=(-10, 10))
    uuid, numbers, compared = service.state()["bookings"][0]["uuid"], itertools.count(), []

    async def until(done):
        async with asyncio.timeout(120):
            while not done():
                keeper.wake.set()
                await asyncio.sleep(0.02)

    async def after(*parts, fault=None, ends="partial"):
        """How often something was compared when pulls were over and readers saw something new."""
        service.change(uuid, supplier_reference=f"NEW-{next(numbers)}", silent=True)
        service.faults(*([fault] if fault else []))
        compared.clear()
        for part in parts:
            await asyncio.to_thread(keeper.pull, part)
        runs = keeper.ports.journal.runs.last
        await until(lambda: all(run.status != "running" for run in runs(len(parts))))
        assert {run.status for run in runs(len(parts))} == {ends if fault else "ok"}
        service.faults()
        keeper.ports.journal.subjects.mark([booking(uuid)], Source.NOTIFICATION)
        await until(lambda: not keeper._worker.troubles)
        keeper._published_at = float("-inf")
        await settled(keeper)
        return len(compared)

    async with keeping(project, published=lambda: compared.append(shown(project))) as keeper:
        assert await after("full") == 1
        assert await after("availability", "near") == 0
        assert await after("full", fault={"fault": "status_5xx"}, ends="failed") == 0, "the service was down"
        broken = {"fault": "malformed", "match": {"path": "/bookings$"}}
        assert await after("bookings", fault=broken) == 0, "a month is owed"
        refused = {"fault": "option_400", "product_id": service.state()["products"][0]["id"]}
        assert await after("full", fault=refused) == 1, "departures that are owed say nothing of bookings"


@pytest.mark.deep(2)
async def test_a_publish_that_failed_is_tried_again_without_new_rows(tmp_path, service, monkeypatch):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)
    tries, said = [], []

    def fails_once(ports):
        tries.append(ports)
        if len(tries) == 1:
            raise WarehouseError("No space is left.")
        return mirror_and_publish(ports)

    monkeypatch.setattr(keep, "mirror_and_publish", fails_once)
    async with keeping(project, say=said.append) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        assert len(tries) == 1
        assert "Publishing failed: No space is left. It is tried again." in said
        assert not (project.directory / "octo.read.duckdb").exists()
        every = project.pipeline.publish.every
        assert every < keeper._publish_in() <= 2 * every, "each attempt copies the whole file"
        keeper._published_at = float("-inf")
        await settled(keeper)
        assert len(tries) == 2
        assert said.count("Published again.") == 1
        assert keeper._publish_in() <= every
        assert len(shown(project)) > 30
        keeper._published_at = float("-inf")
        await settled(keeper)
        assert len(tries) == 2, "what is shown already is not made again"


async def test_copies_that_fail_do_not_follow_one_another_though_readers_are_never_to_wait(
    tmp_path, service, monkeypatch
):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)
    with project.file.open("a") as file:
        file.write("[publish]\nevery = 0\n")

    def fails(_ports):
        raise WarehouseError("warehouse/custom/mine.sql does not run.")

    monkeypatch.setattr(keep, "mirror_and_publish", fails)
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        assert keeper._publish_pause >= 1


class Held:
    """Publishing that ends when it is let go."""

    def __init__(self, monkeypatch, *, before):
        self.begun, self.go = threading.Event(), threading.Event()
        self._before = before
        monkeypatch.setattr(keep, "mirror_and_publish", self._publish)

    def _publish(self, ports):
        if self._before:
            self._wait()
        published = mirror_and_publish(ports)
        if not self._before:
            self._wait()
        return published

    def _wait(self):
        self.begun.set()
        assert self.go.wait(60)


async def until(done, keeper):
    async with asyncio.timeout(60):
        while not done():
            keeper.wake.set()
            await asyncio.sleep(0.02)


@pytest.mark.deep(5)
async def test_what_is_marked_lands_while_a_copy_is_made_and_readers_get_it_next(tmp_path, service, monkeypatch):
    service.reset()
    project, told = Project(tmp_path, service, limits=QUICK, publish=True), []
    held, uuid = Held(monkeypatch, before=False), service.state()["bookings"][0]["uuid"]
    async with keeping(project, published=lambda: told.append(shown(project))) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await until(held.begun.is_set, keeper)
        landed = keeper.landed
        for number in range(3):
            service.change(uuid, supplier_reference=f"NEW-{number}", silent=True)
            keeper.ports.journal.subjects.mark([booking(uuid)], Source.NOTIFICATION)
            await until(lambda expected=landed + number: keeper.landed > expected, keeper)
        assert not keeper.idle.is_set()
        assert told == [], "readers do not have it yet"
        held.go.set()
        await settled(keeper)
        assert len(told) == 1, "what the copy shows of the pull is told, though more has landed since"
        assert references(project, uuid) != ["NEW-2"]
        keeper._published_at = float("-inf")
        await settled(keeper)
        assert references(project, uuid) == ["NEW-2"]
        assert len(told) == 1


@pytest.mark.deep(2)
async def test_an_erasure_waits_for_the_copy_in_the_making(tmp_path, service, monkeypatch):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)
    held, order = Held(monkeypatch, before=True), []
    monkeypatch.setattr(erase, "erase", lambda _ports: order.append("erased"))
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await until(held.begun.is_set, keeper)
        monkeypatch.setattr(keeper.ports.journal.erasures, "open_ids", lambda: ["1"])
        keeper._publishing.add_done_callback(lambda _: order.append("published"))
        keeper.wake.set()
        for _ in range(25):  # long enough for one that does not wait
            await asyncio.sleep(0.02)
        assert order == []
        held.go.set()
        await until(lambda: len(order) == 2, keeper)
    assert order == ["published", "erased"]


async def test_care_comes_between_two_copies_though_one_is_always_owed(tmp_path, service, monkeypatch):
    service.reset()
    project, order, numbers = Project(tmp_path, service, limits=QUICK, publish=True), [], itertools.count()

    def copies(_ports):
        order.append("copy")
        return Published(marts=0, checks=0, failed=(), size=0)

    async def cares(_self):
        order.append("care")

    monkeypatch.setattr(keep, "mirror_and_publish", copies)
    monkeypatch.setattr(Compactor, "when_overdue", cares)
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        order.clear()
        monkeypatch.setattr(keeper, "_publish_in", lambda: 0)
        monkeypatch.setattr(Keeper, "_to_show", lambda _self: (next(numbers),))
        await until(lambda: order.count("copy") > 3, keeper)
    assert "copy, copy" not in ", ".join(order)


async def test_a_copy_with_personal_data_whose_making_was_killed_is_gone_when_the_project_is_opened(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)
    left = [project.directory / f".octo.read.{kind}duckdb.abcd1234" for kind in ("", "private.")]
    for file in left:
        file.write_text("she is in it")
    async with project.opened():
        assert [file for file in left if file.exists()] == []


async def test_a_copy_that_breaks_for_no_known_reason_ends_the_keeper(tmp_path, service, monkeypatch):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)

    def breaks(_ports):
        raise RuntimeError("nobody thought of it")

    monkeypatch.setattr(keep, "mirror_and_publish", breaks)
    async with project.opened() as opened:
        keeper = Keeper(opened.ports, asyncio.Event(), lambda: "pull-0")
        await asyncio.to_thread(keeper.pull, "full")
        with pytest.raises(RuntimeError, match="nobody thought of it"):
            await asyncio.wait_for(keeper.run(), 60)


@pytest.mark.deep(2)
async def test_a_pull_that_changed_nothing_renews_when_it_was_verified(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, publish=True)
    newest = "select max(verified_at_utc) from marts.coverage"
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        with octo_sync.open(project.directory / "octo.read.duckdb") as copy:
            before = copy.sql(newest).fetch().rows
        keeper._published_at = float("-inf")
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
    with octo_sync.open(project.directory / "octo.read.duckdb") as copy:
        assert copy.sql(newest).fetch().rows > before


def references(project, uuid):
    """What readers see of a booking."""
    with octo_sync.open(project.directory / "octo.read.duckdb") as copy:
        found = copy.sql("select supplier_reference from core.bookings where booking_uuid = $1", [uuid]).fetch().rows
    return [value for (value,) in found]


def shown(project):
    """Bookings that readers see."""
    with octo_sync.open(project.directory / "octo.read.duckdb") as copy:
        return {uuid for (uuid,) in copy.sql("select booking_uuid from marts.fct_bookings").fetch().rows}
