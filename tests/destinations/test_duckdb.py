"""The DuckDB warehouse keeps the contract, and a few promises of its own."""

import contextlib
import dataclasses
import itertools
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest
from tests.destinations import contract, corners, histories
from tests.destinations.contract import (
    DECEMBER,
    NOW,
    answered,
    booking,
    december,
    departures,
    landing,
    live,
    one,
    product,
    say,
    slot,
)

from octo_sync.destinations.ddl import MAIN
from octo_sync.destinations.duckdb.publish import DuckDBDraft
from octo_sync.destinations.duckdb.reader import open_read_only
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.errors import WarehouseError, WarehouseLocked, WriterFenced
from octo_sync.flows.publish import publish, sql_files
from octo_sync.pipeline.shipped import shipped as shipped_folder
from octo_sync.tables import all_tables, nouns


def opened(directory):
    """The warehouse in a directory, made when it is not there."""
    files = directory / "octo.duckdb", directory / "octo.private.duckdb"
    return DuckDBWarehouse(*files, tables=all_tables(), nouns=nouns(), now=NOW)


@pytest.fixture
def open_warehouse(tmp_path, blank):
    """Open a warehouse by name; the same name is the same warehouse."""

    def make(name="octo"):
        if not (tmp_path / name).exists():
            shutil.copytree(blank, tmp_path / name)
        return opened(tmp_path / name)

    return make


@pytest.fixture
def private():
    """Ask for private tables, which this warehouse keeps in a catalog of their own."""
    return lambda warehouse, sql: warehouse.query(sql.format("personal.")).rows


class TestDuckDB(contract.Contract, histories.Histories, corners.Corners):
    """The suite itself."""


class Fuse:
    """DuckDB's connection that fails at its n-th statement."""

    def __init__(self, real, left):
        self._real, self.left = real, left

    def execute(self, *arguments):
        self.left -= 1
        if self.left == 0:
            raise duckdb.IOException("IO Error: No space left on device")
        return self._real.execute(*arguments)

    def __getattr__(self, name):
        return getattr(self._real, name)


def everything(warehouse):
    """Live rows, coverage, absences and drift: all that a landing may touch outside the private file.

    Not the answers' hashes, which are forgotten when a landing ended between the two files.
    """
    return (
        say(warehouse),
        warehouse.absences(),
        warehouse.query("select * exclude (answer_hash) from ops.coverage order by all").rows,
        warehouse.query("select * from ops.schema_drift order by all").rows,
    )


@pytest.mark.deep(5)
def test_a_landing_that_fails_at_any_of_its_statements_leaves_nothing_behind(open_warehouse):
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    warehouse.land(
        landing(
            december([booking(1), booking(2)], 10),
            departures([slot(5), slot(6)], 11),
            answered("products", [product()], 12),
        )
    )
    change = landing(
        december([booking(1, retail=5, tickets=3, name="Changed"), booking(3)], 20),
        one(booking(4), 21),
        departures([slot(6, vacancies=1), slot(7)], 22),
        answered("products", [product(name="new", price=7, options=("o", "o2"))], 23),
        minutes=5,
    )
    before, real, failed = everything(warehouse), warehouse._db, 0
    for statement in itertools.count(1, 5):  # every fifth, so that all kinds have their turn in a few seconds
        warehouse._db = Fuse(real, statement)
        try:
            warehouse.land(change)
        except WarehouseError as error:
            failed += 1
            assert "No space" in str(error)  # noqa: PT017 - most statements fail, the last does not
            warehouse._db = real
            assert everything(warehouse) == before, f"statement {statement}"
        else:
            # Past the last commit: either the fuse was long enough, or only the clearing up was cut short.
            break
    warehouse._db = real
    assert failed > 15
    assert everything(warehouse) != before
    assert len(warehouse.query("select * from personal.private.booking_contacts").rows) == 4
    warehouse.close()


@pytest.mark.deep(1, everyday=1)
@pytest.mark.parametrize("start", ["commit", "insert into ops.coverage", "delete from warehouse"])
def test_an_error_at_a_decisive_statement_is_survived_by_the_same_process(open_warehouse, start):
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    warehouse.land(landing(december([booking(1), booking(2)], 10)))
    before, real = everything(warehouse), warehouse._db
    change = landing(december([booking(1, retail=5)], 20))

    class Trip(Fuse):
        def execute(self, sql, *more):
            if sql.startswith(start):
                self.left -= 1
                if not self.left:
                    raise duckdb.IOException("IO Error: No space left on device")
            return self._real.execute(sql, *more)

    for number in range(1, 10):
        warehouse._db = trip = Trip(real, number)
        try:
            warehouse.land(change)
        except WarehouseError:
            warehouse._db = real
            assert everything(warehouse) == before, number
        else:
            assert trip.left > 0
            break
    assert number > 1
    warehouse._db = real
    assert live(warehouse, "core.bookings", "retail_minor") == [5, 1000]
    warehouse.close()


class Torn(Fuse):
    """DuckDB's connection that dies where the second of two transactions would begin."""

    def execute(self, sql, *more):
        if sql.startswith("begin"):
            self.left -= 1
            if self.left == 0:
                raise duckdb.IOException("IO Error: No space left on device")
        return self._real.execute(sql, *more)


def tear(warehouse, work):
    """Do something that writes both files, and die when only the private one was written."""
    real = warehouse._db
    warehouse._db = Torn(real, 2)
    with pytest.raises(WarehouseError):
        work(warehouse)
    warehouse._db = real


def again(warehouse, answer, seq):
    """What a worker does with an answer like the one before: equal bytes are not read again."""
    known = warehouse.covered([answer.subject])[answer.subject]
    same = known.answer_hash == answer.answer_hash
    lines = {"lines": (), "payloads": ()} if same else {}
    return warehouse.land(landing(dataclasses.replace(answer, request_seq=seq, unchanged=same, **lines)))


@pytest.mark.deep(0.5)
@pytest.mark.parametrize("reopened", [True, False])
def test_a_death_between_the_two_files_does_not_keep_the_newer_contacts_for_ever(open_warehouse, private, reopened):
    """The service goes back to what it said before: its answer is the last one that landed, but not in the private file."""
    contacts = "select full_name from {}private.booking_contacts where not is_deleted order by all"
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    old = december([booking(1, name="Old"), booking(2, name="Other")], 10)
    warehouse.land(landing(old))
    before = private(warehouse, contacts)
    tear(warehouse, lambda w: w.land(landing(december([booking(1, name="New"), booking(2, name="Other")], 11))))
    assert private(warehouse, contacts) != before, "the private file is ahead"
    if reopened:
        warehouse.close()
        warehouse = open_warehouse()
    else:
        # Others land meanwhile, in the same process.
        warehouse.land(landing(answered("bookings", [booking(9, month=1)], 12, parts=("2026-01",))))
        warehouse.land(landing(answered("products", [product()], 13)))
    again(warehouse, old, 20)
    found = [row for row in private(warehouse, contacts) if row != ("Ana",)]
    assert found == before
    assert again(warehouse, old, 21).rows == 0
    assert warehouse.covered([old.subject])[old.subject].answer_hash == old.answer_hash
    warehouse.close()


@pytest.mark.deep(1)
def test_a_burial_cut_between_the_two_files_does_not_hide_the_contacts_of_a_booking_that_is_back(
    open_warehouse, private
):
    contacts = "select booking_uuid from {}private.booking_contacts where not is_deleted order by all"
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    both = december([booking(1), booking(2)], 10)
    warehouse.land(landing(both))
    warehouse.land(landing(december([booking(2)], 11)))
    tear(warehouse, lambda w: w.bury(w.absences(), now=NOW, fence=1))
    assert private(warehouse, contacts) == [("uuid-2",)]
    warehouse.close()
    warehouse = open_warehouse()
    assert warehouse.known_bookings("main", DECEMBER) == {}
    again(warehouse, both, 20)
    assert private(warehouse, contacts) == [("uuid-1",), ("uuid-2",)]
    warehouse.close()


@pytest.mark.deep(1, everyday=1)
@pytest.mark.parametrize("lost", ["octo.private.duckdb", "octo.duckdb"])
def test_a_file_that_was_lost_alone_is_filled_again(open_warehouse, private, tmp_path, lost):
    contacts = "select full_name from {}private.booking_contacts order by all"
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    both = december([booking(1), booking(2)], 10)
    warehouse.land(landing(both))
    said = say(warehouse), private(warehouse, contacts)
    warehouse.close()
    (tmp_path / "octo" / lost).unlink()
    warehouse = open_warehouse()
    warehouse.claim_writer(2, "test")
    known = warehouse.covered([both.subject]).get(both.subject)
    assert known is None or known.answer_hash is None
    assert warehouse.known_bookings("main", DECEMBER) == {}
    warehouse.land(landing(both, fence=2))
    assert (say(warehouse), private(warehouse, contacts)) == said
    warehouse.close()
    warehouse = open_warehouse()
    assert warehouse.covered([both.subject])[both.subject].answer_hash == both.answer_hash, "it is whole again"
    warehouse.close()


def test_a_fenced_writer_does_not_write_the_private_file_either(open_warehouse, private):
    warehouse = open_warehouse()
    warehouse.claim_writer(2, "the next one")
    with pytest.raises(WriterFenced):
        warehouse.land(landing(december([booking(1)], 10), fence=1))
    assert private(warehouse, "select * from {}private.booking_contacts") == []
    warehouse.close()


def test_two_processes_cannot_open_one_warehouse(open_warehouse, tmp_path):
    warehouse = open_warehouse()
    program = (
        "import sys, datetime as dt; from pathlib import Path\n"
        "from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse\n"
        "from octo_sync.tables import all_tables, nouns\n"
        "from octo_sync.errors import WarehouseLocked\n"
        "p = Path(sys.argv[1])\n"
        "try:\n"
        "    DuckDBWarehouse(p / 'octo.duckdb', p / 'octo.private.duckdb', tables=all_tables(), nouns=nouns(),"
        " now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))\n"
        "except WarehouseLocked as error:\n"
        "    print(error); sys.exit(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "octo")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    assert "open in another process" in done.stdout
    warehouse.close()


def test_what_is_published_is_whole_and_read_only_and_reaches_nothing_outside(open_warehouse, tmp_path):
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    warehouse.land(landing(december([booking(1)], 10)))
    target = tmp_path / "octo" / "octo.read.duckdb"
    assert published(warehouse, target) == target.stat().st_size
    warehouse.land(landing(december([booking(1), booking(2)], 11)))
    reader = open_read_only(target)
    assert reader.execute("select count(*) from octo.core.bookings").fetchall() == [(1,)]
    for forbidden in (
        "delete from octo.core.bookings",
        "create table octo.core.x (a int)",
        f"attach '{tmp_path / 'octo' / 'octo.private.duckdb'}' as p",
        f"copy octo.core.bookings to '{tmp_path / 'out.csv'}'",
        "select * from read_text('/etc/passwd')",
        "set enable_external_access = true",
        "install httpfs",
    ):
        with pytest.raises(duckdb.Error):
            reader.execute(forbidden)
    published(warehouse, target)
    assert reader.execute("select count(*) from octo.core.bookings").fetchall() == [(1,)], "it keeps its snapshot"
    reader.close()
    again = open_read_only(target)
    assert again.execute("select count(*) from octo.core.bookings").fetchall() == [(2,)]
    again.close()
    warehouse.close()


def published(warehouse, target):
    """A copy for readers, without marts; its size."""
    with warehouse.drafting(target) as draft:
        return draft.publish()


def left_in(directory):
    """Copies that wait to take a place."""
    return sorted(file.name for file in directory.iterdir() if file.name.startswith(".octo.read"))


def test_a_copy_that_is_checked_holds_up_no_landing_and_shows_what_was_checked(open_warehouse, tmp_path):
    warehouse, folder = open_warehouse(), tmp_path / "octo"
    warehouse.claim_writer(1, "test")
    warehouse.land(landing(december([booking(1)], 10)))
    target, contacts, count = folder / "octo.read.duckdb", folder / "octo.read.private.duckdb", "from core.bookings"
    with warehouse.drafting(target, contacts=contacts) as draft:
        another = threading.Thread(
            target=warehouse.land, args=[landing(december([booking(1), booking(2)], 11))], daemon=True
        )
        another.start()
        another.join(60)
        assert not another.is_alive(), "it landed while the copy was being checked"
        assert warehouse.query(f"select count(*) {count}").rows == [(2,)]
        draft.run_script([f"create table marts.m as select count(*) as n {count}"])
        assert draft.query(f"select count(*) {count}").rows == draft.query("select n from marts.m").rows == [(1,)]
        zone = "select current_setting('TimeZone')"
        assert draft.query(zone).rows == warehouse.query(zone).rows
        assert not target.exists()
        size = draft.publish()
        assert size == target.stat().st_size
        assert contacts.exists()
    assert left_in(folder) == []
    with contextlib.closing(open_read_only(target)) as reader:
        assert reader.execute("select n from octo.marts.m").fetchall() == [(1,)]
    warehouse.close()


def test_a_copy_is_made_although_something_is_read_that_a_landing_has_changed_since(open_warehouse, tmp_path):
    warehouse, begun, going = open_warehouse(), threading.Event(), threading.Event()
    warehouse.claim_writer(1, "test")
    warehouse.land(landing(december([booking(1)], 10)))
    assert len(warehouse.query("from core.bookings, range(9999)", limit=1).rows) == 1, "and the rest is never read"

    def read(run):
        run("begin", [])
        run("from core.bookings", [])
        begun.set()
        assert going.wait(60)
        run("rollback", [])

    reading = threading.Thread(target=warehouse._read, args=[read], daemon=True)
    reading.start()
    assert begun.wait(60)
    warehouse.land(landing(december([booking(1, status="CANCELLED"), booking(2)], 11)))
    ending = threading.Timer(0.2, going.set)
    ending.start()
    assert published(warehouse, tmp_path / "octo" / "octo.read.duckdb") > 0
    assert going.is_set()
    warehouse.close()


@pytest.mark.parametrize("ends", ["is withdrawn", "fails"])
def test_what_is_not_published_leaves_the_former_copy_and_no_other(open_warehouse, tmp_path, ends):
    warehouse, folder = open_warehouse(), tmp_path / "octo"
    warehouse.claim_writer(1, "test")
    target, contacts = folder / "octo.read.duckdb", folder / "octo.read.private.duckdb"
    published(warehouse, target)
    before = target.read_bytes()
    with contextlib.suppress(WarehouseError), warehouse.drafting(target, contacts=contacts) as draft:
        draft.run_script(["create table marts.m as select 1 as n"])
        assert len([name for name in left_in(folder) if not name.endswith(".wal")]) == 2
        if ends == "fails":
            draft.query("select * from core.nowhere")
        draft.withdraw()
    assert left_in(folder) == []
    assert target.read_bytes() == before
    assert not contacts.exists()
    with warehouse.drafting() as draft:
        draft.run_script(["create table marts.m as select 1 as n"])
        assert draft.query("select n from marts.m").rows == [(1,)]
    published(warehouse, target)
    warehouse.close()
    assert [file.name for file in (folder / ".octo.spool" / "checks").iterdir()] == []


def test_two_checks_run_at_once_and_closing_ends_both(open_warehouse, tmp_path):
    warehouse, ended = open_warehouse(), []
    warehouse.claim_writer(1, "test")
    own = tmp_path / "warehouse" / "checks"
    own.mkdir(parents=True)
    for name in ("a", "b"):
        (own / f"{name}.sql").write_text(
            "select 1 from range(100000000) a, range(100000000) b where a.range * b.range = -1"
        )

    def publishing():
        with pytest.raises(WarehouseError, match=r"Interrupted|is being closed"):
            publish(warehouse, tmp_path, tmp_path / "octo" / "octo.read.duckdb")
        ended.append(True)

    beside = threading.Thread(target=publishing, daemon=True)
    beside.start()
    ends = time.monotonic() + 60
    while warehouse._draft is None or len(warehouse._draft._questions) < 2:
        assert time.monotonic() < ends, "one after the other"
    warehouse.close()
    beside.join(60)
    assert ended


def test_a_publish_of_equal_rows_makes_no_views_and_runs_none_of_the_shipped_checks_again(
    open_warehouse, tmp_path, monkeypatch
):
    """Nor where only the times of verification are newer. One row more, and all of it is checked; views are in every copy."""
    warehouse, target, asked = open_warehouse(), tmp_path / "octo" / "octo.read.duckdb", []
    own = tmp_path / "warehouse" / "checks"
    own.mkdir(parents=True)
    (own / "own.sql").write_text("-- name: own\n-- description: Ours.\nselect 1 as one where false")
    for name in ("query", "run_script"):
        does = getattr(DuckDBDraft, name)

        def noted(self, sql, *others, does=does, **more):
            statements = [sql] if isinstance(sql, str) else list(sql)
            asked.extend(statements)
            return does(self, sql if isinstance(sql, str) else statements, *others, **more)

        monkeypatch.setattr(DuckDBDraft, name, noted)
    shipped = {check.sql for check in sql_files(tmp_path, "checks") if check.name != "own"}

    def publishes():
        asked.clear()
        done = publish(warehouse, tmp_path, target)
        checked = shipped & set(asked)
        assert checked in (shipped, set()), "all of them or none"
        assert done.checks == len(shipped) + 1
        assert any("select 1 as one" in sql for sql in asked), "one of the project's own may ask for anything"
        assert not any(sql.startswith("create view") for sql in asked), "they come with the copy"
        with contextlib.closing(open_read_only(target)) as reader:
            (sold,) = reader.execute("select count(*) from octo.marts.fct_bookings").fetchone()
            (departures,) = reader.execute("select sum(departures) from octo.marts.agg_occupancy_daily").fetchone()
        return [f.check.name for f in done.failed], bool(checked), sold, departures

    warehouse.claim_writer(1, "test")
    warehouse.land(
        landing(december([booking(1)], 10), departures([slot(6)], 11), answered("products", [product()], 12))
    )
    warehouse.write_log("core.connections", [{"connection_id": "main", "channel": "main", "is_active": True}])
    assert publishes() == ([], True, 1, 1)
    assert publishes() == ([], False, 1, 1)
    warehouse.land(landing(december([booking(1)], 13), departures([slot(6)], 14), minutes=5))
    assert publishes() == ([], False, 1, 1)
    warehouse.rewrite(MAIN, within=60)
    assert publishes() == ([], False, 1, 1)
    warehouse.land(landing(december([booking(1), booking(2)], 15), minutes=6))
    assert publishes() == ([], True, 2, 1)
    (own / "own.sql").write_text("-- name: own\n-- description: Ours.\nselect 1 as one where true")
    assert publishes() == (["own"], False, 2, 1)
    (own / "own.sql").write_text("-- name: own\n-- description: Ours.\nselect 1 as one where false")
    assert publishes() == ([], False, 2, 1)
    (tmp_path / "warehouse" / "marts").mkdir()
    shutil.copy(shipped_folder("warehouse") / "marts" / "fct_guests.sql", tmp_path / "warehouse" / "marts")
    assert publishes() == publishes() == ([], True, 2, 1), "a mart of the project's own may tell the time, too"
    warehouse.run_script(["insert into core.bookings select * from core.bookings limit 1"])
    failed, checked, *_ = publishes()
    assert "unique_keys" in failed
    assert checked
    assert "unique_keys" in publishes()[0], "what failed is not taken for what passed"
    days = "select sum(departures) from marts.agg_occupancy_daily"
    assert warehouse.query(days).rows == [(1,)]
    warehouse.land(landing(departures([slot(6), slot(7)], 16), minutes=7))
    assert warehouse.query(days).rows == [(2,)], "in the file itself no mart is of another time"
    warehouse.close()


def test_a_mart_that_is_defined_anew_is_made_anew_and_one_that_does_not_run_keeps_the_former_ones(
    open_warehouse, tmp_path
):
    warehouse, target = open_warehouse(), tmp_path / "octo" / "octo.read.duckdb"
    custom = tmp_path / "warehouse" / "custom"
    custom.mkdir(parents=True)

    def said():
        with contextlib.closing(open_read_only(target)) as reader:
            asked = "select word, (select comment from duckdb_columns() where table_name = 'mine') from octo.marts.mine"
            return reader.execute(asked).fetchone()

    def defines(word, meaning, kind="view"):
        header = f"-- name: mine\n-- grain: One.\n-- description: Mine.\n-- column: word: {meaning}.\n-- materialize: {kind}\n"
        (custom / "mine.sql").write_text(f"{header}select {word} as word")

    for word, meaning, kind in (("one", "First", "view"), ("two", "First", "table"), ("two", "Then", "view")):
        defines(f"'{word}'", meaning, kind)
        publish(warehouse, tmp_path, target)
        assert said() == (word, f"{meaning}.")
    defines("nothing", "Then")
    with pytest.raises(WarehouseError, match=r"warehouse/custom/mine\.sql does not run, so nothing was published"):
        publish(warehouse, tmp_path, target)
    assert said() == ("two", "Then.")
    defines("'three'", "Last")
    publish(warehouse, tmp_path, target)
    assert said() == ("three", "Last.")
    warehouse.close()


def test_a_mart_that_cannot_be_a_view_and_one_that_has_another_name_are_published_as_before(open_warehouse, tmp_path):
    warehouse, target = open_warehouse(), tmp_path / "octo" / "octo.read.duckdb"
    custom = tmp_path / "warehouse" / "custom"
    custom.mkdir(parents=True)
    (custom / "wide.sql").write_text(
        "-- materialize: table\npivot (select status, product_id from core.bookings) on status using count(*)"
    )
    for name in ("former", "present"):
        (custom / f"{name}.sql").write_text("select 1 as one")
        publish(warehouse, tmp_path, target)
        with contextlib.closing(open_read_only(target)) as reader:
            marts = {m for (m,) in reader.execute("select table_name from information_schema.tables").fetchall()}
        assert {"wide", name} <= marts
        assert len(marts & {"former", "present"}) == 1
        (custom / f"{name}.sql").unlink()
    (custom / "wide.sql").unlink()
    for name in ("former", "present"):
        (custom / f"{name}.sql").write_text("select 1 as one")
        publish(warehouse, tmp_path, target)
        with contextlib.closing(open_read_only(target)) as reader:
            marts = {m for (m,) in reader.execute("select table_name from information_schema.tables").fetchall()}
        assert marts & {"former", "present"} == {name}, "views that come with the copy go by their names, too"
        (custom / f"{name}.sql").unlink()
    warehouse.close()


def test_a_publish_is_done_although_what_passed_cannot_be_noted(open_warehouse, tmp_path, monkeypatch):
    warehouse, target = open_warehouse(), tmp_path / "octo" / "octo.read.duckdb"
    publish(warehouse, tmp_path, target)
    warehouse.write_log("core.connections", [{"connection_id": "main", "channel": "main", "is_active": True}])

    def full(*_):
        raise duckdb.IOException("no space")

    monkeypatch.setattr("octo_sync.destinations.duckdb.warehouse.say", full)
    assert publish(warehouse, tmp_path, target).size
    with contextlib.closing(open_read_only(target)) as reader:
        assert reader.execute("select count(*) from octo.core.connections").fetchone() == (1,)
    warehouse.close()


def test_rows_that_swap_a_truth_are_other_rows(open_warehouse):
    """DuckDB's hash of two values is that of the first with the bits of the second: these two pairs add up to the same."""
    warehouse, answers = open_warehouse(), []
    for first, second in ((False, True), (True, False)):
        with warehouse.drafting() as draft:
            draft.run_script(
                [f"create table core.t as from (values (8605582, {first}), (8605583, {second})) v(i, is_current)"]
            )
            draft.passed({"core.t": ["i", "is_current"]}, "")
            answers.append(draft._digest)
    assert answers[0] != answers[1]
    warehouse.close()


def test_a_copy_that_cannot_take_its_place_is_said_in_a_sentence(open_warehouse, tmp_path):
    warehouse, folder = open_warehouse(), tmp_path / "octo"
    (folder / "octo.read.duckdb").mkdir()
    with pytest.raises(WarehouseError, match=r"octo\.read\.duckdb cannot be written: Is a directory"):
        published(warehouse, folder / "octo.read.duckdb")
    assert left_in(folder) == []
    warehouse.close()


@pytest.mark.parametrize("target", ["/dev/null/read.duckdb", "/proc/nope/read.duckdb", "/sys/read.duckdb"])
def test_a_place_that_cannot_be_written_is_named_with_what_to_do(open_warehouse, target):
    warehouse = open_warehouse()
    with pytest.raises(WarehouseError) as raised:
        published(warehouse, Path(target))
    assert str(raised.value).startswith(f"{target} cannot be written: ")
    assert str(raised.value).endswith("; set publish.path to a place that can be written.")
    warehouse.close()


def test_who_closes_the_warehouse_does_not_wait_for_the_end_of_the_checks(open_warehouse, tmp_path):
    warehouse, folder, said, begun = open_warehouse(), tmp_path / "octo", [], threading.Event()
    warehouse.claim_writer(1, "test")
    target = folder / "octo.read.duckdb"

    def publishes():
        try:
            with warehouse.drafting(target) as draft:
                begun.set()
                for _ in range(100):  # each of them would take an hour
                    with contextlib.suppress(WarehouseError):
                        draft.query("select count(*) from range(100000000000) a where a.range % 7 = 8")
                draft.query("select 1")
        except WarehouseError as error:
            said.append(str(error))

    publishing = threading.Thread(target=publishes, daemon=True)
    publishing.start()
    assert begun.wait(60)
    closing = threading.Thread(target=warehouse.close, daemon=True)
    closing.start()
    closing.join(60)
    publishing.join(60)
    assert (closing.is_alive(), publishing.is_alive()) == (False, False)
    assert said == ["octo.duckdb is being closed, so nothing was published."]
    assert not target.exists()
    assert left_in(folder) == []


def test_a_draft_that_is_being_let_go_of_can_be_interrupted(open_warehouse, tmp_path):
    """Who closes the warehouse cannot know whether the other thread has just closed the copy."""
    warehouse = open_warehouse()
    with warehouse.drafting(tmp_path / "octo" / "octo.read.duckdb") as draft:
        draft._db.close()
        draft.interrupt()
        with pytest.raises(WarehouseError, match="is being closed"):
            draft.query("select 1")
    warehouse.close()


def test_a_missing_read_copy_is_said_in_a_sentence(tmp_path):
    with pytest.raises(WarehouseError, match="does not exist yet"):
        open_read_only(tmp_path / "octo.read.duckdb")


def test_a_file_that_is_no_database_is_said_in_a_sentence_and_left_alone(open_warehouse, tmp_path):
    (tmp_path / "octo").mkdir()
    file = tmp_path / "octo" / "octo.duckdb"
    file.write_bytes(b"this is no database at all" * 1000)
    before = file.read_bytes()
    with pytest.raises(WarehouseError) as caught:
        open_warehouse()
    assert not isinstance(caught.value, WarehouseLocked)
    assert file.read_bytes() == before or list(file.parent.glob("*corrupt*"))


def test_a_newer_schema_is_refused_in_one_clear_line(open_warehouse):
    warehouse = open_warehouse()
    warehouse.run_script(["insert into ops.schema_migrations values (999, now(), '99.0')"])
    warehouse.close()
    with pytest.raises(WarehouseError, match="newer octo-sync"):
        open_warehouse()


@pytest.mark.deep(2)
def test_the_file_does_not_grow_when_the_same_is_landed_again_and_again(open_warehouse, tmp_path):
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    sizes = []
    for round_ in range(12):
        slots = [slot(day, hour=hour, vacancies=(round_ + hour) % 10) for day in range(1, 29) for hour in range(1, 23)]
        warehouse.land(landing(departures(slots, 100 + round_)))
        warehouse.query("select 1")
        published(warehouse, tmp_path / "octo" / "read.duckdb")
        sizes.append((tmp_path / "octo" / "octo.duckdb").stat().st_size)
    assert sizes[-1] <= sizes[4] * 1.5, sizes
    warehouse.close()


def test_a_question_under_way_ends_when_the_warehouse_is_closed_and_then_nobody_has_its_file(open_warehouse):
    warehouse = open_warehouse()
    ended = []

    def ask():
        try:
            warehouse.query("select sum(a.range * b.range) from range(1000000) a, range(1000000) b")
        except WarehouseError as error:
            ended.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    while not warehouse._reader_lock.locked():
        pass
    warehouse.close()
    with duckdb.connect(":memory:") as db:
        db.execute(f"attach '{warehouse.path}' as it (read_only)")
    asking.join(10)
    assert len(ended) == 1
