"""The DuckDB warehouse keeps the contract, and a few promises of its own."""

import itertools
import shutil
import subprocess
import sys

import duckdb
import pytest
from tests.destinations import contract
from tests.destinations.contract import (
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

from octo_sync.destinations.duckdb import DuckDBWarehouse, open_read_only
from octo_sync.errors import WarehouseError, WarehouseLocked
from octo_sync.tables import all_tables, nouns


def opened(directory):
    """The warehouse in a directory, made when it is not there."""
    files = directory / "octo.duckdb", directory / "octo.private.duckdb"
    return DuckDBWarehouse(*files, tables=all_tables(), nouns=nouns(), now=NOW)


@pytest.fixture(scope="module")
def blank(tmp_path_factory):
    """A warehouse just made; to copy it is faster than to make one."""
    directory = tmp_path_factory.mktemp("blank")
    opened(directory).close()
    return directory


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


class TestDuckDB(contract.Contract):
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
    """Live rows, coverage, absences and drift: all that a landing may touch outside the private file."""
    return (
        say(warehouse),
        warehouse.absences(),
        warehouse.query("select * from ops.coverage order by all").rows,
        warehouse.query("select * from ops.schema_drift order by all").rows,
    )


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


def test_two_processes_cannot_open_one_warehouse(open_warehouse, tmp_path):
    warehouse = open_warehouse()
    program = (
        "import sys, datetime as dt; from pathlib import Path\n"
        "from octo_sync.destinations.duckdb import DuckDBWarehouse\n"
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
    assert warehouse.publish(target) == target.stat().st_size
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
    warehouse.publish(target)
    assert reader.execute("select count(*) from octo.core.bookings").fetchall() == [(1,)], "it keeps its snapshot"
    reader.close()
    again = open_read_only(target)
    assert again.execute("select count(*) from octo.core.bookings").fetchall() == [(2,)]
    again.close()
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


def test_the_file_does_not_grow_when_the_same_is_landed_again_and_again(open_warehouse, tmp_path):
    warehouse = open_warehouse()
    warehouse.claim_writer(1, "test")
    sizes = []
    for round_ in range(12):
        slots = [slot(day, hour=hour, vacancies=(round_ + hour) % 10) for day in range(1, 29) for hour in range(1, 23)]
        warehouse.land(landing(departures(slots, 100 + round_)))
        warehouse.query("select 1")
        warehouse.publish(tmp_path / "octo" / "read.duckdb")
        sizes.append((tmp_path / "octo" / "octo.duckdb").stat().st_size)
    assert sizes[-1] <= sizes[4] * 1.5, sizes
    warehouse.close()
