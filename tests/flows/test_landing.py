"""Rows and watermark land together or not at all, by one writer (R8, R9)."""

import asyncio
import time

import duckdb
import pytest
from tests.flows.harness import Asked, Wire, api_path

from octo_sync.errors import LeaseHeld, WarehouseError, WriterFenced
from octo_sync.flows.backup.save import mark_everything
from octo_sync.flows.sync.fetch import Fetcher
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.flows.sync.work import Worker
from octo_sync.model import Source, Subject, SubjectKind

COVERAGE = "select * from ops.coverage order by connection_id, resource, key"


class Tripwire:
    """DuckDB's connection, which fails at a statement that begins in a certain way, once."""

    def __init__(self, real, starts):
        self._real, self._starts, self.fired = real, starts, 0

    def execute(self, sql, *more):
        if not self.fired and sql.startswith(self._starts):
            self.fired += 1
            raise duckdb.IOException("IO Error: Could not write file: No space left on device")
        return self._real.execute(sql, *more)

    def __getattr__(self, name):
        return getattr(self._real, name)


@pytest.mark.deep(3, everyday=["commit"])
@pytest.mark.parametrize(
    "statement",
    [
        "insert into warehouse.core.products",
        "insert into warehouse.core.booking_unit_items",
        "insert into ops.coverage",
        "commit",
    ],
)
async def test_an_error_in_the_middle_of_a_landing_leaves_rows_and_watermark_as_they_were(synced, service, statement):
    copy = synced()
    service.traffic(40, seed="landing")
    service.control("PATCH", f"/admin/products/{service.state()['products'][0]['id']}", {"internal_name": "changed"})
    held, covered = copy.warehouse(), copy.query(COVERAGE)
    wrong = copy.differences()
    async with copy.opened() as opened:
        real = opened.warehouse._db
        opened.warehouse._db = trip = Tripwire(real, statement)
        with pytest.raises(WarehouseError, match="No space is left"):
            await sync(opened.ports, Scope(full=True), command="test", publishing=False)
        opened.warehouse._db = real
        assert trip.fired == 1
        assert opened.journal.runs.find(opened.ports.run_id).status == "failed"
    if "products" in statement or "coverage" in statement or statement == "commit":
        assert copy.query(COVERAGE) == covered
        now = copy.warehouse()
        now["private.booking_contacts"] = held["private.booking_contacts"]  # landed first, idempotently
        assert now == held
    else:
        # Batches before it may have landed; whatever did is whole: no booking without its tickets, no slot without prices.
        assert copy.query(
            "select count(*) from core.bookings b where not is_deleted and unit_count <> (select count(*) from "
            "core.booking_unit_items i where i.booking_uuid = b.booking_uuid and not i.is_deleted)"
        ) == [(0,)]
    assert len(wrong) >= len(copy.differences()) - 1
    result = await copy.sync(scope=Scope())
    assert result.status == "ok"
    assert copy.differences() == []


async def test_a_subject_stays_owed_when_its_landing_failed(synced, service):
    copy = synced()
    service.traffic(30, seed="owed")
    async with copy.opened() as opened:
        real = opened.warehouse._db
        opened.warehouse._db = Tripwire(real, "insert into ops.coverage")
        with pytest.raises(WarehouseError):
            await sync(opened.ports, Scope(full=True), command="test", publishing=False)
        opened.warehouse._db = real
        assert opened.journal.subjects.dirty_count() > 0
        assert any(row.dirty and row.attempts == 0 for row in opened.journal.subjects.rows())


async def test_what_was_fetched_and_never_landed_is_in_nobodys_hands_when_the_worker_ends(synced, service):
    """Whoever ends its run may not reach the journal either: a server that is away has both."""
    copy = synced()
    service.traffic(30, seed="held")
    async with copy.opened() as opened:
        mark_everything(opened.journal, copy.pipeline, copy.clock)
        worker = Worker(opened.ports, [SubjectKind.SUPPLIER, SubjectKind.PRODUCTS, SubjectKind.PRODUCT])
        real = opened.warehouse._db
        opened.warehouse._db = Tripwire(real, "insert into ops.coverage")
        with pytest.raises(WarehouseError):
            await worker.drain()
        opened.warehouse._db = real
        owed = {row.subject for row in opened.journal.subjects.rows() if row.dirty and row.kind in worker.kinds}
        claimed = opened.journal.subjects.claim(1000, run_id="the next one", kinds=worker.kinds)
        assert {claim.subject for claim in claimed} == owed != set()


async def test_a_second_sync_is_told_who_works_and_touches_nothing(synced):
    copy = synced()
    async with copy.opened():
        with pytest.raises(LeaseHeld, match="Another octo-sync process"):
            await copy.sync()
    assert (await copy.sync()).status == "ok"


async def test_a_writer_that_was_overtaken_lands_nothing_more(synced, service):
    copy = synced()
    service.traffic(30, seed="zombie")
    held = copy.warehouse()
    async with copy.opened() as opened:
        opened.warehouse.claim_writer(opened.ports.fence + 1, "the next one")
        covered = opened.warehouse.query(COVERAGE).rows
        with pytest.raises(WriterFenced, match="newer writer"):
            await sync(opened.ports, Scope(full=True), command="test", publishing=False)
        assert opened.warehouse.query(COVERAGE).rows == covered
    now = copy.warehouse()
    assert {t for t in held if now[t] != held[t]} <= {"private.booking_contacts"}


@pytest.mark.deep(0.7)
async def test_an_overtaken_writer_does_not_touch_the_private_file_either(synced, service):
    copy = synced()
    uuid = next(b["uuid"] for b in service.state()["bookings"] if b["status"] == "CONFIRMED")
    service.change(uuid, contact={"fullName": "Written by a zombie"})
    async with copy.opened() as opened:
        opened.warehouse.claim_writer(opened.ports.fence + 1, "the next one")
        with pytest.raises(WriterFenced):
            await sync(opened.ports, Scope(full=True), command="test", publishing=False)
    found = copy.query("select count(*) from personal.private.booking_contacts where full_name like '%zombie%'")
    assert found == [(0,)]


@pytest.mark.deep(1)
async def test_a_journal_that_was_lost_is_made_anew_and_the_next_pull_is_newer_than_all_before(synced, service):
    copy = synced()
    service.traffic(40, seed="lost journal")
    for file in copy.directory.glob("octo.journal.sqlite*"):
        file.unlink()
    result = await copy.sync()
    assert result.status == "ok"
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_warehouse_that_was_lost_is_filled_again(synced):
    copy = synced()
    for file in copy.directory.glob("octo.*duckdb*"):
        file.unlink()
    assert (await copy.sync()).status == "ok"
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_lost_warehouse_is_filled_again_by_a_run_that_only_resumes(synced):
    """Coverage is lost with the rows, so nothing may be taken for unchanged."""
    copy = synced()
    for file in copy.directory.glob("octo.*duckdb*"):
        file.unlink()
    await copy.sync(scope=Scope())
    assert copy.differences() == []


async def test_the_private_file_alone_lost_is_filled_again(synced):
    copy = synced()
    for file in copy.directory.glob("octo.private.duckdb*"):
        file.unlink()
    await copy.sync()
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_reader_of_the_read_copy_never_sees_fewer_rows_while_it_is_swapped(synced, service):
    copy = synced(publish=True)
    await copy.sync()
    read = copy.directory / "octo.read.duckdb"
    first = duckdb.connect(str(read), read_only=True, config={"threads": 1})
    before = first.execute("select count(*) from core.bookings").fetchall()
    service.traffic(20, seed="readers", kinds=["book"])
    await copy.sync()
    assert first.execute("select count(*) from core.bookings").fetchall() == before, "a reader keeps its snapshot"
    first.close()
    with duckdb.connect(str(read), read_only=True, config={"threads": 1}) as second:
        assert second.execute("select count(*) from core.bookings").fetchall()[0][0] > before[0][0]


@pytest.mark.deep(3)
async def test_a_failing_publish_keeps_the_copy_that_is_there(synced, service):
    copy = synced(publish=True)
    await copy.sync()
    read = copy.directory / "octo.read.duckdb"
    held = read.read_bytes()
    checks = copy.directory / "warehouse" / "checks"
    checks.mkdir(parents=True)
    (checks / "never.sql").write_text("-- name: never\n-- description: Fails on purpose.\nselect 1 as wrong\n")
    service.traffic(5, seed="publish")
    result = await copy.sync()
    assert [f.check.name for f in result.published.failed] == ["never"]
    assert read.read_bytes() == held


async def test_no_request_is_made_while_the_project_belongs_to_another(synced, service):
    copy = synced()
    async with copy.opened():
        service.forget_requests()
        with pytest.raises(LeaseHeld):
            await copy.sync()
        assert service.requests() == []


async def test_every_answer_is_asked_for_once(synced, service):
    """No document and no window is asked for twice in a run in which nothing changes."""
    copy = synced()
    sent = []
    await copy.sync(
        transport=Wire.by(lambda request, _: sent.append((api_path(request), str(request.url), request.content)))
    )
    assert len(sent) == len(set(sent))


async def test_many_connections_at_once_are_bounded_by_one_batch_and_take_turns(project, service, monkeypatch):
    copy = project(
        connections={name: Asked(bookings=(-3, 3), availability=(0, 3)) for name in "abcd"}, sync={"batch_bodies": 3}
    )
    begun, under_way, most, landed, fetch = [], 0, 0, [], Fetcher.fetch

    async def counted(self, claim, known):
        nonlocal under_way, most
        begun.append(claim.subject.connection)
        most = max(most, under_way := under_way + 1)
        try:
            return await fetch(self, claim, known)
        finally:
            under_way -= 1

    monkeypatch.setattr(Fetcher, "fetch", counted)
    async with copy.opened() as opened:
        land = opened.warehouse.land
        monkeypatch.setattr(
            opened.warehouse, "land", lambda landing: landed.append(len(landing.answered)) or land(landing)
        )
        await sync(opened.ports, Scope(full=True), command="test", publishing=False)
    assert most <= 3 + 4, "a batch, and one of each connection"
    assert max(landed) == 3
    assert set(begun[:4]) == set("abcd")
    assert [copy.differences(name) for name in "abcd"] == [[]] * 4


async def test_connections_that_do_not_answer_do_not_hold_up_others(project, service):
    few = {"bookings": (-3, 3), "availability": (0, 3)}
    connections = {"slow": Asked(token="a", limits={"concurrency": 8}, **few), "quick": Asked(token="b", **few)}
    copy = project(connections=connections, sync={"batch_bodies": 2})
    others_landed = asyncio.Event()

    async def edit(request, answer):
        if request.headers["authorization"].endswith("token-a") and api_path(request) in ("/bookings", "/availability"):
            await others_landed.wait()

    async with copy.opened(transport=Wire.by(edit)) as opened, asyncio.timeout(60):
        landed, loop = opened.journal.subjects.landed, asyncio.get_running_loop()

        def note(claims, **more):
            landed(claims, **more)
            kinds = {str(row.kind) for row in opened.journal.subjects.rows("quick") if not row.dirty}
            if {"bookings", "availability"} <= kinds and not opened.journal.subjects.dirty_count(connections=["quick"]):
                loop.call_soon_threadsafe(others_landed.set)

        opened.journal.subjects.landed = note
        result = await sync(opened.ports, Scope(full=True), command="test", publishing=False)
    assert result.status == "ok"
    assert copy.query("select count(distinct connection_id) from core.bookings") == [(2,)]


async def test_what_is_urgent_is_fetched_soon_after_a_slow_look_at_what_is_due(project, monkeypatch):
    copy = project(connections={f"c{number}": Asked() for number in range(9)})
    begun, looks = [], []

    async def fetch(self, claim, known):
        begun.append(claim.subject)
        return self._not_there(claim, "bookings")

    monkeypatch.setattr(Fetcher, "fetch", fetch)
    async with copy.opened() as opened:
        subjects, booking = opened.ports.journal.subjects, Subject("c5", SubjectKind.BOOKING, ("u-1",))
        due = subjects.due

        def slowly(kinds=None):
            if not looks:
                time.sleep(0.5)  # as a server that fails over
            looks.append(kinds)
            return due(kinds)

        monkeypatch.setattr(subjects, "due", slowly)
        worker = Worker(opened.ports, wake=(wake := asyncio.Event()))
        await worker.drain(patient=False)
        opened.ports.mark([booking], Source.NOTIFICATION)
        wake.set()
        looks[:] = ["one that is not slow"]
        await worker.drain(patient=False)
    assert begun == [booking]
    assert len(looks) < 8
