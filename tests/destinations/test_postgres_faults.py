"""What goes wrong at a PostgreSQL server: nothing is lost, nothing is doubled, and one writer is one."""

import contextlib
import threading
import time
from dataclasses import replace

import psycopg
import pytest
from tests.destinations.contract import NOW, booking, december, departures, landing, live, one, say, slot
from tests.destinations.histories import at, payload, run
from tests.destinations.test_postgres import blank, open_warehouse, opened  # noqa: F401 - fixtures
from tests.postgres import Server

from octo_sync.destinations import warehouse as shared
from octo_sync.destinations.base import Drift
from octo_sync.destinations.migrations import STEPS
from octo_sync.destinations.postgres.session import place
from octo_sync.destinations.postgres.workbench import Workbench
from octo_sync.errors import RowsRefused, WarehouseError, WarehouseLocked, WriterFenced

DRIFT = (Drift("main", "bookings", "field", "surprise"),)
FIRST = (december([booking(n) for n in range(1, 6)], 10, drift=DRIFT), departures([slot(5), slot(6)], 11))
SECOND = (
    december([booking(n, retail=7) for n in range(1, 7)], 20, drift=DRIFT),
    departures([slot(6, vacancies=1)], 21),
)


def everything(warehouse):
    """Live rows, absences, drift, coverage and histories: all that a landing may touch."""
    tables = ("ops.schema_drift", "ops.coverage", "core.booking_history", "core.availability_history", "raw.records")
    return say(warehouse), warehouse.absences(), [sorted(warehouse.query(f"table {t}").rows, key=str) for t in tables]


@pytest.fixture
def warehouse(open_warehouse):  # noqa: F811
    made = open_warehouse()
    made.claim_writer(1, "test")
    made.land(landing(*FIRST))
    yield made
    made.close()


@pytest.fixture
def wanted(open_warehouse):  # noqa: F811
    """What everything is after both landings where nothing went wrong."""
    made = open_warehouse("wanted")
    made.claim_writer(1, "test")
    made.land(landing(*FIRST))
    made.land(landing(*SECOND, minutes=1))
    yield everything(made)
    made.close()


@pytest.fixture
def database(open_warehouse):  # noqa: F811
    return lambda: open_warehouse.databases["octo"]


def at_send(monkeypatch, act):
    """Do something once, in the middle of a landing: its first table is written, its last is not."""
    done, real = [], Workbench._send

    def send(self, session, table, filled):
        count = real(self, session, table, filled)
        if count and not done:
            done.append(table)
            act(session)
        return count

    monkeypatch.setattr(Workbench, "_send", send)
    return done


@pytest.mark.deep(2)
def test_a_session_killed_in_the_middle_of_a_landing_costs_nothing(
    warehouse, wanted, database, monkeypatch, postgres_server
):
    killed = at_send(monkeypatch, lambda _: postgres_server.disconnect(database()))
    report = warehouse.land(landing(*SECOND, minutes=1))
    assert killed
    assert report.written["core.bookings"] == 6
    assert everything(warehouse) == wanted


@pytest.mark.deep(3)
def test_a_landing_killed_for_good_keeps_nothing(warehouse, database, monkeypatch, postgres_server):
    before, real = everything(warehouse), Workbench.send

    def send(self, session):
        real(self, session)
        postgres_server.disconnect(database())

    monkeypatch.setattr(Workbench, "send", send)
    with pytest.raises(WarehouseError, match="ended the session"):
        warehouse.land(landing(*SECOND, minutes=1))
    monkeypatch.undo()
    assert everything(warehouse) == before


@pytest.mark.deep(2)
@pytest.mark.parametrize("arrives", [True, False])
def test_a_commit_whose_answer_is_lost_is_not_done_twice_and_not_taken_for_done(
    warehouse, wanted, database, monkeypatch, postgres_server, arrives
):
    """The session dies just after the commit, or just before; the program cannot tell which."""
    real, lost = psycopg.Connection.execute, []

    def execute(self, query, *more, **options):
        if query == "commit" and not lost and "ops.writer" in str(seen):
            lost.append(query)
            if arrives:
                real(self, query, *more, **options)
            postgres_server.disconnect(database())
            raise psycopg.OperationalError("the connection is lost")
        seen.append(query)
        return real(self, query, *more, **options)

    seen = []
    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    report = warehouse.land(landing(*SECOND, minutes=1))
    assert lost
    assert report.written["core.bookings"] == 6
    monkeypatch.undo()
    assert everything(warehouse) == wanted, "drift would be counted twice"


def test_a_server_that_crashes_and_comes_back_costs_nothing(tmp_path, monkeypatch, wanted):
    server = Server()
    try:
        warehouse = opened(server.dsn(server.make("octo")), tmp_path / "own", waits=(0.05, *[0.5] * 20))
        warehouse.claim_writer(1, "test")
        warehouse.land(landing(*FIRST))

        down = threading.Event()

        def crash(_):
            server.stop(immediately=True)
            down.set()

        crashed = at_send(monkeypatch, crash)
        landed = threading.Thread(target=warehouse.land, args=(landing(*SECOND, minutes=1),))
        landed.start()
        # From this thread, because a server ends with the thread that started it.
        assert down.wait(30)
        time.sleep(0.5)
        server.start()
        landed.join()
        assert crashed
        assert everything(warehouse) == wanted
        warehouse.close()
    finally:
        server.remove()


@pytest.mark.deep(2)
def test_a_lock_that_is_held_for_a_while_is_waited_for_and_one_held_on_is_told(
    open_warehouse,  # noqa: F811
    wanted,
    postgres_server,
):
    warehouse = open_warehouse(lock_timeout=0.2, waits=(0.05, 0.05))
    warehouse.claim_writer(1, "test")
    warehouse.land(landing(*FIRST))
    before = everything(warehouse)
    dsn = postgres_server.dsn(open_warehouse.databases["octo"])
    with psycopg.connect(dsn) as other:
        other.execute("lock table landing.booking_unit_items in access exclusive mode")
        with pytest.raises(WarehouseLocked, match="holds a lock"):
            warehouse.land(landing(*SECOND, minutes=1))
        other.rollback()
        assert everything(warehouse) == before
        other.execute("lock table landing.booking_unit_items in access exclusive mode")
        free = threading.Timer(0.4, other.rollback)
        free.start()
        warehouse.land(landing(*SECOND, minutes=1))
        free.join()
    assert everything(warehouse) == wanted
    warehouse.close()


@pytest.mark.deep(2)
def test_a_server_that_can_only_be_read_is_told_at_once_and_nothing_is_lost(
    warehouse, wanted, database, postgres_server
):
    before = everything(warehouse)
    postgres_server.execute(f'alter database "{database()}" set default_transaction_read_only = on')
    postgres_server.disconnect(database())
    with pytest.raises(WarehouseError, match="can only be read"):
        warehouse.land(landing(*SECOND, minutes=1))
    assert everything(warehouse) == before
    postgres_server.execute(f'alter database "{database()}" reset default_transaction_read_only')
    postgres_server.disconnect(database())
    warehouse.land(landing(*SECOND, minutes=1))
    assert everything(warehouse) == wanted


def test_of_two_writers_the_newer_wins_and_the_older_keeps_nothing(open_warehouse, wanted):  # noqa: F811
    old = open_warehouse()
    old.claim_writer(1, "old")
    old.land(landing(*FIRST))
    new = open_warehouse()
    new.claim_writer(2, "new")
    with pytest.raises(WriterFenced):
        old.land(landing(one(booking(9), 99)))
    new.land(landing(*SECOND, fence=2, minutes=1))
    assert everything(new) == wanted
    old.close()
    new.close()


@pytest.fixture
def two(open_warehouse):  # noqa: F811
    """A writer that has lost its lease and does not know it, and the one that took over."""
    old, new = open_warehouse(), open_warehouse()
    old.claim_writer(1, "old")
    old.land(landing(*FIRST))
    for minute in (1, 2):  # each time a version and a payload that the next one makes old
        old.land(landing(departures([slot(5, vacancies=minute)], 20 + minute), payload(f"{minute}", minute)))
    old.land(landing(departures([slot(5, vacancies=3)], 23), minutes=1))
    old.write_log("ops.runs", [run("old", 0, 1)])
    with old.drafting() as draft:
        draft.run_script(["create table marts.one as select 'old' as who"])
    new.claim_writer(2, "new")
    yield old, new
    old.close()
    new.close()


def _log(warehouse):
    row = {"connection_id": "main", "resource": "bookings", "kind": "field", "name": "late", "seen_count": 1}
    row |= {"first_seen_at_utc": NOW, "last_seen_at_utc": NOW}
    warehouse.write_log("ops.schema_drift", [row], replace=True)


def _prune(warehouse):
    warehouse.prune(raw_before=at(5), runs_before=at(5), history_before=at(5))


def _publish(warehouse):
    with warehouse.drafting() as draft:
        draft.run_script(["update marts.one set who = 'late'"])


WRITES = {
    _log: {"ops.schema_drift"},
    _prune: {"raw.records", "ops.runs", "core.availability_history"},
    _publish: {"marts.one"},
}


@pytest.mark.deep(2, everyday=["_publish"])
@pytest.mark.parametrize("work", WRITES)
def test_who_has_lost_the_lease_writes_no_log_prunes_nothing_and_publishes_nothing(two, work):
    old, new = two

    def rows():
        return {t: sorted(new.query(f"table {t}").rows, key=str) for some in WRITES.values() for t in some}

    before = rows()
    with pytest.raises(WriterFenced):
        work(old)
    assert rows() == before
    work(new)
    after = rows()
    assert {table for table in before if before[table] != after[table]} == WRITES[work], "so that it can be seen"
    if work is _publish:
        assert after["marts.one"] == [("late",)]


@pytest.mark.deep(2)
def test_a_writer_that_takes_over_while_marts_are_made_keeps_them_from_being_seen(two):
    old, new = two
    draft = contextlib.ExitStack()
    draft.enter_context(new.drafting()).run_script(["update marts.one set who = 'late'"])
    old.claim_writer(3, "newest")
    with pytest.raises(WriterFenced):
        draft.close()
    assert new.query("table marts.one").rows == [("old",)]


@pytest.mark.deep(3)
def test_two_writers_with_one_fence_take_turns(warehouse, open_warehouse):  # noqa: F811
    """It cannot happen behind a lease; if it does, landings follow each other and none is torn."""
    other, errors = open_warehouse(), []

    def land(where, numbers):
        try:
            for n in numbers:
                where.land(landing(one(booking(n), 100 + n, drift=DRIFT)))
        except WarehouseError as error:
            errors.append(error)

    threads = [threading.Thread(target=land, args=(w, range(s, s + 8))) for w, s in ((warehouse, 10), (other, 30))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(live(warehouse, "core.bookings", "booking_uuid")) == 5 + 16
    assert warehouse.query("select seen_count from ops.schema_drift").rows == [(1 + 16,)], "none overwrites the other"
    other.close()


@pytest.fixture
def strict(database, postgres_server):
    """A table that does not take what the second landing brings."""
    sql = "alter table private.booking_contacts add constraint short check (length(full_name) < 5)"
    return lambda: postgres_server.execute(sql, database=database())


def test_a_value_that_no_column_holds_is_refused_without_telling_it(warehouse, strict):
    before = everything(warehouse)
    strict()
    with pytest.raises(RowsRefused) as refused:
        warehouse.land(landing(december([booking(1, name="Ana Secret")], 30)))
    assert "Ana" not in str(refused.value)
    assert everything(warehouse) == before


def test_neither_a_password_nor_a_user_is_in_an_error(postgres_server, tmp_path):
    postgres_server.make_role("keeper")
    dsn = postgres_server.dsn("postgres", user="keeper", password="tell-tale")
    with pytest.raises(WarehouseError) as refused:
        opened(dsn, tmp_path / "spool", waits=(60,))
    assert "refuses us" in str(refused.value), "at once, not after a minute"
    assert "keeper" not in str(refused.value)
    shown = str(refused.value)
    cause = refused.value.__cause__
    while cause:
        shown, cause = shown + str(cause), cause.__cause__
    assert "tell-tale" not in shown
    assert place(dsn) == "postgres at 127.0.0.1"


@pytest.mark.deep(2)
def test_working_storage_is_empty_after_a_landing_and_after_a_failed_one(warehouse, strict, tmp_path):
    strict()
    with pytest.raises(RowsRefused):
        warehouse.land(landing(december([booking(1, name="Ana Secret")], 30)))
    warehouse.land(landing(*SECOND, minutes=1))
    assert [p for p in (tmp_path / "octo").rglob("*") if p.is_file()] == []
    assert warehouse._bench.db.execute("select count(*) from duckdb_tables() where temporary").fetchall() == [(0,)]


def test_an_old_schema_gains_what_it_lacks_and_keeps_its_rows(warehouse, database, postgres_server, open_warehouse):  # noqa: F811
    said = say(warehouse)
    warehouse.close()
    name = database()
    postgres_server.execute("alter table landing.coverage drop column run_id", database=name)
    postgres_server.execute("drop table landing.booking_history", database=name)
    postgres_server.execute("update landing.schema_migrations set version = 0", database=name)
    again = open_warehouse()
    assert [step.version for step in again.migrated] == [step.version for step in STEPS]
    assert say(again) == said
    assert again.query("select count(*) from core.booking_history").rows == [(0,)]
    assert again.query("select count(*) from ops.coverage where run_id is null").rows == [(2,)]
    again.close()
    current = open_warehouse()
    assert current.migrated == ()
    current.close()


def test_a_newer_schema_is_refused(warehouse, database, postgres_server, open_warehouse):  # noqa: F811
    warehouse.close()
    postgres_server.execute("insert into landing.schema_migrations values (99, now(), '9')", database=database())
    with pytest.raises(WarehouseError, match="newer octo-sync"):
        open_warehouse()


def owned(*answers, **fence):
    """A landing of one connection by its owner; the answers of the contract are of `main`."""
    (connection,) = fence
    spelled = f'"connection_id": "{connection}"'.encode()
    answers = [
        replace(
            answer,
            subject=replace(answer.subject, connection=connection),
            lines=tuple(line.replace(b'"connection_id": "main"', spelled) for line in answer.lines),
        )
        for answer in answers
    ]
    return landing(*answers, fence=fence)


@pytest.fixture
def standing(open_warehouse, monkeypatch):  # noqa: F811
    """The owner of `main` in the middle of a landing, which goes on and is over when it is called; and how to open another."""
    here, going, reached, errors = open_warehouse(), threading.Event(), threading.Event(), []
    here.claim_writer({"": 1}, "who keeps it")
    here.claim_writer({"main": 2}, "one")
    here.claim_writer({"other": 3}, "two")

    def wait(_):
        reached.set()
        assert going.wait(30)

    def land():
        try:
            here.land(owned(*FIRST, main=2))
        except WarehouseError as error:
            errors.append(error)

    at_send(monkeypatch, wait)
    landed = threading.Thread(target=land)
    landed.start()
    assert reached.wait(30)

    def over():
        going.set()
        landed.join()
        assert errors == []

    yield over, lambda: open_warehouse(lock_timeout=0.2, waits=())
    over()
    here.close()


def test_owners_of_different_connections_land_beside_each_other(standing):
    over, another = standing
    with contextlib.closing(another()) as beside:
        beside.land(owned(*FIRST, other=3))
        beside.claim_writer({"other": 5, "third": 6}, "who takes over what nobody lands into now")
        with pytest.raises(WriterFenced):
            beside.land(owned(*SECOND, other=3))
        assert beside.erased() == []
        assert [c for (c,) in beside.query("select distinct connection_id from core.bookings").rows] == ["other"]
        over()
        both = beside.query("select connection_id, count(*) from core.bookings group by 1 order by 1").rows
        assert both == [("main", 5), ("other", 5)]


def test_two_that_take_a_connection_over_do_it_one_after_the_other(open_warehouse, monkeypatch):  # noqa: F811
    """Nobody has had it, so there is no row yet to wait for."""
    one, two = open_warehouse(), open_warehouse(lock_timeout=0.2, waits=())
    reached, going, real = threading.Event(), threading.Event(), shared.given

    def given(*args):
        reached.set()
        assert going.wait(30)
        return real(*args)

    monkeypatch.setattr(shared, "given", given)
    taking = threading.Thread(target=one.claim_writer, args=({"main": 2}, "one"))
    taking.start()
    assert reached.wait(30)
    monkeypatch.undo()
    with pytest.raises(WarehouseLocked):
        two.claim_writer({"main": 3}, "two")
    going.set()
    taking.join()
    two.claim_writer({"main": 3}, "two")
    assert two.query("select connection_id, fence from ops.writer").rows == [("main", 3)]
    for each in (one, two):
        each.close()


def test_who_takes_over_ends_a_landing_that_stands_still_in_a_copy(open_warehouse, database, postgres_server):  # noqa: F811
    """Of a process that was stopped there: its session is neither idle nor gone."""
    one, two = open_warehouse(stuck_after=0.5, lock_timeout=0.2), open_warehouse(lock_timeout=0.2, waits=())
    one.claim_writer({"main": 2}, "the former")
    with psycopg.connect(postgres_server.dsn(database())) as former, contextlib.ExitStack() as stack:
        former.execute("lock table landing.writer in row exclusive mode")
        former.execute("select from landing.writer where connection_id = 'main' for update")
        stack.enter_context(former.cursor().copy("copy landing.suppliers from stdin"))
        with pytest.raises(WarehouseLocked):
            two.claim_writer({"main": 3}, "one for whom it does not stand still for long enough")
        one.query("select pg_sleep(0.6)")
        one.claim_writer({"other": 5}, "one in whose way it is not")
        assert one.query("select count(*) from pg_stat_activity where pid = $1", [former.info.backend_pid]).rows == [
            (1,)
        ]
        one.claim_writer({"main": 4}, "another")
        with pytest.raises(psycopg.errors.AdminShutdown):
            stack.close()
    assert one.query("select connection_id, fence from ops.writer order by 1").rows == [("main", 4), ("other", 5)]
    for each in (one, two):
        each.close()


WANTS = {
    "landing": lambda other: other.land(owned(*SECOND, main=2)),
    "burial": lambda other: other.bury([], now=NOW, fence={"main": 2}),
    "owner": lambda other: other.claim_writer({"main": 4}, "who takes it over"),
    "command": lambda other: other.claim_writer(4, "a command that has all alone"),
    "script": lambda other: other.run_script(["select 1"]),
    "whole": lambda other: other.land(landing(*SECOND, fence=1)),
    "log": lambda other: other.write_log("ops.runs", [run("other", 0, 1)]),
}


@pytest.mark.deep(2, everyday=["landing", "owner"])
@pytest.mark.parametrize("wants", WANTS)
def test_whoever_wants_the_same_connection_or_the_whole_copy_waits_for_a_landing(standing, wants):
    over, another = standing
    with contextlib.closing(another()) as other:
        with pytest.raises(WarehouseLocked):
            WANTS[wants](other)
        over()
        assert len(live(other, "core.bookings", "booking_uuid")) == 5
        # Who has no right to the whole copy is told so, and not before.
        with pytest.raises(WriterFenced) if wants in ("whole", "log") else contextlib.nullcontext():
            WANTS[wants](other)
