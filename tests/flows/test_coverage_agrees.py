"""What is known of bookings: every reader says the same, and nobody more than the service's lists can show.

Some services take the days of a list for days of booking, and no list by day of travel has to show an open-dated booking.
"""

import asyncio
import datetime as dt
from collections import Counter

import duckdb
import pytest
from tests.flows.harness import TODAY, Project, Service, small, verify

import octo_sync
from octo_sync.app.project import open_journal
from octo_sync.flows.status.report import status
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.verify import claims
from octo_sync.model import Window

DAY = dt.timedelta(days=1)
READ = "octo.read.duckdb"
HORIZON = (-20, 40)
FIRST = TODAY + HORIZON[0] * DAY


@pytest.fixture(scope="module")
def service():
    with Service(small(bookings=160, days=40, products=8)) as running:
        yield running


@pytest.fixture
def project(tmp_path, service):
    service.reset()
    return Project(tmp_path / "project", service, bookings=HORIZON, availability=(0, 3), publish=True)


@pytest.fixture
def by_booking(project, service):
    service.quirks(booking_date_is_creation=True)
    return project


def made(booking):
    return dt.datetime.fromisoformat(booking["utc_created_at"]).date()


def early(service):
    """Bookings made before the horizon for travel inside of it: what no list by day of booking shows."""
    return [b for b in service.state()["bookings"] if made(b) < FIRST and b["local_date"] >= str(TODAY + DAY)]


def look(project):
    """The connection as `octo-sync status` has it."""
    with open_journal(project.pipeline, project.clock) as journal, octo_sync.open(project.directory / READ) as copy:
        ask = lambda sql: copy.sql(sql).rows()  # noqa: E731 - as the command asks
        (found,) = status(project.pipeline, journal, ask, clock=project.clock, alive=lambda *_: False).connections
        return found


def days_of(window):
    return [window.start + n * DAY for n in range(window.days)]


@pytest.mark.deep(4)
async def test_where_lists_are_by_day_of_booking_nobody_claims_a_month_of_travel(by_booking, service):
    assert early(service), "nothing is hidden from the lists"
    assert (await by_booking.sync()).status == "ok"
    by_booking.clock.advance(hours=26)
    assert (await by_booking.sync()).status == "ok"
    known = {row[0] for row in by_booking.query("select booking_uuid from core.bookings")}
    shown = [b for b in service.state()["bookings"] if b["uuid"] in known]
    assert {made(b) >= FIRST for b in shown} == {True}
    assert len(shown) < len(service.state()["bookings"])

    def mart(sql):
        return by_booking.query(f"select {sql}")

    # No month of travel, and no day of it, is complete, final or known from some day on.
    assert mart("count(*) from marts.agg_pickup_curve where is_complete or is_final") == [(0,)]
    assert mart("bookings_from, bookings_to from marts.dim_channel") == [(None, None)]
    assert mart("count(*), count(travel_month), count(window_start) from marts.booking_lists")[0][1:] == (0, 0)
    assert mart("count(travel_month) from marts.coverage where resource = 'bookings'") == [(0,)]
    # What was made on a day is complete where all of it is there, and on most days it is.
    here = Counter(mart("booking_date from marts.fct_bookings"))
    there = Counter((made(b),) for b in service.state()["bookings"] if not b["test"])
    days = mart("booking_date from marts.booking_coverage where is_complete")
    assert len(days) >= (TODAY - FIRST).days - 2
    assert {day: here[day] for day in days} == {day: there[day] for day in days}
    assert mart("booked_from from marts.dim_channel")[0][0] == FIRST + DAY
    # Each booking that is there was shown; commands and questions say no more than the marts.
    assert mart("distinct is_covered from marts.fct_bookings") == [(True,)]
    async with by_booking.opened() as opened:
        told = claims(opened.ports, ())
    found = look(by_booking)
    assert (found.kinds["bookings"].covered, found.kinds["bookings"].booked.start) == (None, FIRST)
    assert (found.complete, told.problems) == (True, [])
    assert [f"before {FIRST + DAY} may be missing" in note for note in told.notes] == [True]


@pytest.mark.deep(4)
async def test_a_service_that_turns_to_days_of_travel_is_believed(by_booking, service):
    assert (await by_booking.sync()).status == "ok"
    service.quirks(booking_date_is_creation=False)
    for _ in range(2):
        by_booking.clock.advance(minutes=10)
        assert (await by_booking.sync()).status == "ok"
    assert by_booking.differences() == []
    ((first, last),) = by_booking.query("select bookings_from, bookings_to from marts.dim_channel")
    assert (first, last) == (FIRST, TODAY + HORIZON[1] * DAY)


@pytest.mark.deep(3)
async def test_a_sample_of_lists_by_day_of_booking_equals_an_equal_copy(by_booking, service, tier):
    """Also where what is over cannot be asked for by its own id, so that only the right list shows it."""
    service.quirks(booking_date_is_creation=True, lapsed_holds_unreadable=True)
    for b in service.state()["bookings"]:
        if made(b) >= FIRST and b["local_date"] > "2026-12" and b["status"] == "CANCELLED":
            service.change(b["uuid"], status="EXPIRED")
    assert (await by_booking.sync(scope=Scope(full=True, only=frozenset({"bookings"})))).status == "ok"
    for seed in range(3, 3 + tier.choose(1, 2, 4)):
        found = await verify(by_booking, sample=1, seed=seed, folder=f"fresh{seed}", only={"bookings"})
        assert (seed, found.comparison.differences, found.complete) == (seed, [], True)


@pytest.mark.deep(8)
async def test_days_of_travel_that_are_named_reach_whoever_travels_then(by_booking, service):
    """Also who booked before the horizon began, and then a comparison finds what is not equal, and nothing else."""
    by_booking.connections["main"].bookings = (-120, 40)
    by_booking.write()
    assert (await by_booking.sync()).status == "ok"
    by_booking.connections["main"].bookings = HORIZON
    by_booking.write()
    december = Window(dt.date(2026, 12, 1), dt.date(2026, 12, 31))
    ahead = [b for b in early(service) if b["status"] == "CONFIRMED" and b["local_date"] in map(str, days_of(december))]
    closed = [
        b
        for b in service.state()["bookings"]
        if b["status"] == "CANCELLED" and made(b) >= FIRST and b["local_date"] in map(str, days_of(december))
    ]
    assert min(len(ahead), len(closed)) > 0
    by_booking.clock.advance(hours=1)
    assert (await verify(by_booking, only={"bookings"}, travel=december)).comparison.equal
    service.change(ahead[0]["uuid"], supplier_reference="CHANGED")
    found = await verify(by_booking, only={"bookings"}, travel=december, folder="changed")
    assert [(d.kind, ahead[0]["uuid"] in d.key) for d in found.comparison.differences] == [("differs", True)]

    service.change(closed[0]["uuid"], supplier_reference="CHANGED")
    result = await by_booking.sync(scope=Scope(only=frozenset({"bookings"}), travel=december), travel=december)

    assert (result.status, len(result.notes)) == ("ok", 1)
    assert by_booking.query("select count(*) from core.bookings where supplier_reference = 'CHANGED'") == [(2,)]
    assert (await verify(by_booking, only={"bookings"}, travel=december, folder="again")).comparison.equal


@pytest.mark.deep(5)
async def test_open_dated_bookings_are_verified_by_what_shows_them(project, service):
    """By the list that shows them, changed or not, and one by one once no list does."""
    undated = "select booking_uuid, is_covered, verified_by, verified_at_utc from marts.fct_bookings where travel_date is null"
    undated_there = [b for b in service.state()["bookings"] if b["freesale"] and b["local_date"] >= str(FIRST)]
    service.change(undated_there[0]["uuid"], status="CONFIRMED")
    opens = {b["uuid"] for b in undated_there if b["status"] == "CONFIRMED"} | {undated_there[0]["uuid"]}
    for _ in range(2):
        began = project.clock.now()
        assert (await project.sync()).status == "ok"
        rows = project.query(undated)
        assert rows
        assert {row[1:3] for row in rows} == {(True, "schedule")}
        assert min(row[3] for row in rows) >= began
        project.clock.advance(minutes=10)
    assert project.query("select is_complete, parts from marts.coverage where resource = 'open_dated'") == [
        (True, len(rows))
    ]

    # The horizon moves on, and the lists show none of them any more.
    project.connections["main"].bookings = (1, 40)
    project.write()
    began = project.clock.now()
    assert (await project.sync()).status == "ok"
    later = {row[0] for row in project.query(undated) if row[3] >= began}
    assert later == opens & {row[0] for row in rows} != set()
    service.change(min(later), supplier_reference="CHANGED")
    found = await verify(project)
    assert [(d.kind, min(later) in d.key) for d in found.comparison.differences] == [("differs", True)]


async def test_open_dated_bookings_of_which_no_answer_is_on_record_are_told(project, service):
    assert (await project.sync()).status == "ok"
    assert look(project).complete
    async with project.opened() as opened:
        assert claims(opened.ports, ()).problems == []
    with duckdb.connect(str(project.directory / "octo.duckdb")) as db:
        db.execute("delete from ops.coverage where resource = 'open_dated'")
    async with project.opened() as opened:
        await asyncio.to_thread(mirror_and_publish, opened.ports)
        found = claims(opened.ports, ()).problems
    assert not look(project).complete
    assert [problem.partition(" ")[2] for problem in found] == [
        "open-dated bookings of main were in no answer that is on record"
    ]
    assert project.query("select is_complete from marts.coverage where resource = 'open_dated'") == [(False,)]
    assert project.query("select is_complete from marts.sync_freshness where resource = 'unlisted'") == [(False,)]
