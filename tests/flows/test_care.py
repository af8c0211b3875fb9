"""Files that do not grow: retention, and writing a file anew, at any moment of which it may be killed."""

import contextlib
import datetime as dt
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.destinations.contract import (
    DECEMBER,
    NOW,
    Payload,
    booking,
    december,
    departures,
    landing,
    slot,
)
from tests.flows.harness import NOON, QUICK, Project, Service, keeping, settled, small

from octo_sync.destinations.base import FileSize
from octo_sync.destinations.duckdb import files as caring
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.errors import WarehouseError
from octo_sync.flows.sync.compaction import care, is_worth_it
from octo_sync.journal import Journal
from octo_sync.pipeline import CareSettings
from octo_sync.pipeline.settings import RetentionSettings
from octo_sync.tables import all_tables, nouns

DAY = dt.timedelta(days=1)
MB = 1024 * 1024


def opened(directory):
    files = directory / "octo.duckdb", directory / "octo.private.duckdb"
    return DuckDBWarehouse(*files, tables=all_tables(), nouns=nouns(), now=NOW)


def payload(key, text):
    return Payload("booking", key, memoryview(text.encode()), text)


def _noise(turn, uuid):
    """Text that does not compress."""
    return "".join(hashlib.sha256(f"{turn} {uuid} {n}".encode()).hexdigest() for n in range(30))


def worn(directory):
    """A warehouse after many replaced windows, with views of somebody's own: nothing but waste and a few rows."""
    warehouse = opened(directory)
    warehouse.claim_writer(1, "test")
    bookings = [booking(n, day=1 + n % 28) for n in range(40)]
    for turn in range(30):
        slots = [slot(day, hour=hour, vacancies=(turn + hour) % 10) for day in range(1, 29) for hour in range(1, 23)]
        texts = [payload(b["uuid"], _noise(turn, b["uuid"])) for b in bookings]
        bodies = december([{**b, "supplierReference": f"S{turn}"} for b in bookings], 100 + turn, payloads=texts)
        warehouse.land(landing(departures(slots, 500 + turn), bodies))
    # What retention does, and what a private file is full of then.
    latest = _noise(29, "uuid-1")[:2]
    warehouse._db.execute("delete from personal.raw.records where payload_hash not like $1 || '%'", [latest])
    warehouse.run_script(
        [
            "create schema mine",
            "create view mine.z_first as select * from core.bookings",
            "create view mine.a_second as select booking_uuid, status from mine.z_first",
            "create table mine.totals as select count(*) as bookings from mine.a_second",
            "create macro mine.twice(x) as 2 * x",
            "create view mine.b_third as select mine.twice(bookings) as double from mine.totals",
            "comment on view mine.a_second is 'it''s ours'",
            "comment on column mine.totals.bookings is 'how many'",
        ]
    )
    return warehouse


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    directory = tmp_path_factory.mktemp("worn")
    worn(directory).close()
    return directory


@pytest.fixture
def directory(used, tmp_path):
    shutil.copytree(used, tmp_path / "octo")
    return tmp_path / "octo"


def everything(warehouse):
    """Every row and every comment of both files."""
    found = {}
    for catalog in ("warehouse", "personal"):
        for schema, name in warehouse.query(
            "select schema_name, table_name from duckdb_tables() where database_name = $1 union all "
            "select schema_name, view_name from duckdb_views() where database_name = $1 and not internal",
            [catalog],
        ).rows:
            found[schema, name] = warehouse.query(f"select * from {catalog}.{schema}.{name} order by all").rows
    comments = (
        "select schema_name, table_name, column_name, data_type, comment from duckdb_columns() where not internal "
        "union all select schema_name, table_name, '', '', comment from duckdb_tables() where not temporary "
        "union all select schema_name, view_name, '', '', comment from duckdb_views() where not internal order by all"
    )
    return found, [row for row in warehouse.query(comments).rows if row[0] != "main"]


def test_what_is_worth_writing_anew():
    settings = CareSettings(waste=0.2, least=MB)
    assert is_worth_it(FileSize(bytes=13 * MB, values=100, needed=10 * MB), None, settings)
    assert not is_worth_it(FileSize(bytes=12 * MB, values=100, needed=10 * MB), None, settings), (
        "not more than the share"
    )
    assert not is_worth_it(FileSize(bytes=MB, values=100, needed=MB // 2), None, settings), "little is left alone"
    assert is_worth_it(FileSize(bytes=13 * MB, values=100, needed=13 * MB), 0.1 * MB, settings), (
        "it was 10 MB last time"
    )
    assert not is_worth_it(FileSize(bytes=13 * MB, values=130, needed=1), 0.1 * MB, settings), "it holds more now"


@pytest.mark.deep(8)
def test_a_file_written_anew_has_everything_and_is_smaller(directory):
    warehouse = opened(directory)
    before, sizes = everything(warehouse), warehouse.sizes()
    assert len(before[0]) > 25
    for file, size in sizes.items():
        after = warehouse.rewrite(file, within=60)
        assert after < size.bytes, file
        assert after == warehouse.sizes()[file].bytes
    assert everything(warehouse) == before
    held = [_linked(link) for link in Path("/proc/self/fd").iterdir()]
    assert any(name == str(directory / "octo.duckdb") for name in held)
    assert not [name for name in held if name.startswith(f"{directory}/") and "(deleted)" in name], "it is let go"
    assert not list(directory.glob(".octo*anew*"))
    assert {path.stat().st_mode & 0o777 for path in directory.glob("*.duckdb")} == {0o600}
    # The same process goes on: reading beside, landing, publishing.
    assert len(warehouse.known_bookings("main", DECEMBER)) == 40
    report = warehouse.land(landing(december([booking(1, retail=7)], 1000)))
    assert report.written["core.bookings"] == 1
    with warehouse.drafting(directory / "octo.read.duckdb") as draft:
        draft.publish()
    said = everything(warehouse)
    warehouse.close()
    again = opened(directory)
    assert everything(again) == said
    again.close()


def _linked(link):
    with contextlib.suppress(OSError):
        return str(link.readlink())
    return ""


@pytest.mark.deep(7)
def test_departures_lie_in_the_order_in_which_they_are_read(directory):
    warehouse = opened(directory)
    slots = [slot(day, hour=hour, vacancies=(29 + hour) % 10) for day in range(1, 29) for hour in range(1, 23)]
    slots[0]["maxUnits"] = 77
    warehouse.land(landing(departures(slots, 1000)))
    lie = "select local_start_at from core.availability order by rowid"
    starts = warehouse.query(lie).rows
    assert starts != sorted(starts), "what was replaced lies at the end"
    warehouse.rewrite("warehouse", within=60)
    assert warehouse.query(lie).rows == sorted(starts)
    warehouse.close()


@pytest.mark.deep(8)
def test_what_takes_too_long_or_has_no_room_leaves_the_file_as_it_was(directory, monkeypatch):
    warehouse = opened(directory)
    before = everything(warehouse), (directory / "octo.duckdb").stat().st_ino
    real = caring.copy_rows

    def slow(db, *more):
        real(db, *more)
        db.execute("select count(*) from range(10000000000) a, range(1000) b").fetchall()

    monkeypatch.setattr(caring, "copy_rows", slow)
    with pytest.raises(WarehouseError, match=r"takes longer than 0.3 s; it is as it was"):
        warehouse.rewrite("warehouse", within=0.3)
    monkeypatch.setattr(caring, "copy_rows", real)
    monkeypatch.setattr(caring.shutil, "disk_usage", lambda _: SimpleNamespace(free=MB))
    with pytest.raises(WarehouseError, match="1 MB are free; free some"):
        warehouse.rewrite("warehouse", within=60)
    assert (everything(warehouse), (directory / "octo.duckdb").stat().st_ino) == before
    assert not list(directory.glob(".octo*anew*"))
    warehouse.land(landing(december([booking(1, retail=7)], 1000)))
    warehouse.close()


KILL = """
import datetime as dt, os, sys
from pathlib import Path
from octo_sync.destinations.duckdb import files as caring
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.tables import all_tables, nouns

folder, file, at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
count = 0

def step(what):
    global count
    if count == at:
        os._exit(9)
    count += 1

class Fuse:
    def __init__(self, real):
        self._real = real
    def execute(self, sql, *more):
        step(sql)
        return self._real.execute(sql, *more)
    def __getattr__(self, name):
        return getattr(self._real, name)

replace = Path.replace
def stepped(self, target):
    step("replace")
    done = replace(self, target)
    step("replaced")
    return done

warehouse = DuckDBWarehouse(folder / "octo.duckdb", folder / "octo.private.duckdb", tables=all_tables(), nouns=nouns(),
    now=dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC))
warehouse._db = Fuse(warehouse._db)
Path.replace = stepped
warehouse.rewrite(file, within=60)
Path.replace = replace
print(count)
os._exit(0)
"""


def killed(directory, file, at):
    done = subprocess.run(
        [sys.executable, "-c", KILL, str(directory), file, str(at)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == (9 if at >= 0 else 0), done.stderr
    return int(done.stdout) if at < 0 else 0


@pytest.mark.deep(25)
def test_a_kill_at_any_moment_leaves_a_whole_file(used, tmp_path):
    shutil.copytree(used, tmp_path / "probe")
    steps = killed(tmp_path / "probe", "warehouse", -1)
    assert steps > 50
    first = opened(tmp_path / "probe")
    before = everything(first)
    first.close()
    replaced = 0
    # All of the last steps, where the files change places, and some of the copying.
    for at in [*range(0, steps - 14, 13), *range(steps - 14, steps)]:
        victim = tmp_path / "victim"
        shutil.copytree(used, victim)
        size = (victim / "octo.duckdb").stat().st_size
        killed(victim, "warehouse", at)
        replaced += (victim / "octo.duckdb").stat().st_size < size
        warehouse = opened(victim)
        assert everything(warehouse) == before, at
        assert not list(victim.glob(".octo*anew*")), "what it left is swept"
        warehouse.close()
        shutil.rmtree(victim)
    assert replaced >= 3, "some of the kills came after the new file was in place"


class Clock:
    def __init__(self):
        self.at = NOW

    def now(self):
        return self.at


@contextlib.contextmanager
def what_care_needs(directory):
    clock = Clock()
    warehouse = opened(directory)
    warehouse.claim_writer(1, "test")
    with Journal.open(directory / "journal.sqlite", clock=clock) as journal:
        pipeline = SimpleNamespace(
            care=CareSettings(), retention=RetentionSettings(), webhooks=SimpleNamespace(keep=30 * 86400.0)
        )
        yield SimpleNamespace(pipeline=pipeline, clock=clock, journal=journal, warehouse=warehouse, run_id="run")
    warehouse.close()


@pytest.fixture
def ports(directory):
    """What care needs of a project whose files are full of waste."""
    with what_care_needs(directory) as needed:
        yield needed


@pytest.mark.deep(4)
def test_care_writes_anew_what_is_worth_it_and_not_again_soon(ports):
    ports.pipeline.care = CareSettings(waste=0.2, least=1024, small=0, every=3600.0)
    before = ports.warehouse.sizes()
    done = care(ports)
    assert set(done) == {"warehouse", "personal"}
    assert all(after < before[file].bytes for file, after in done.items())
    assert care(ports) == {}
    ports.clock.at += dt.timedelta(hours=2)
    assert care(ports) == {}, "nothing has grown"
    noted = json.loads(ports.journal.settings.get("care"))
    assert noted["bytes_per_value"].keys() == {"warehouse", "personal"}
    # Again many landings: it is measured by what it was after the first time.
    for turn in range(30):
        # A column without a history: rows come and go, and none are left.
        slots = [{**slot(day, hour=hour), "maxUnits": turn + hour} for day in range(1, 29) for hour in range(1, 23)]
        ports.warehouse.land(landing(departures(slots, 2000 + turn)))
    grown = ports.warehouse.sizes()["warehouse"].bytes
    assert care(ports) == {}, "not within the hour"
    ports.clock.at += dt.timedelta(hours=2)
    assert list(care(ports)) == ["warehouse"]
    assert ports.warehouse.sizes()["warehouse"].bytes < grown


@pytest.mark.deep(2)
def test_a_small_file_is_left_alone_however_much_of_it_is_waste(ports):
    ports.pipeline.care = CareSettings(waste=0.2, least=1024)
    sizes = {file: size.bytes for file, size in ports.warehouse.sizes().items()}
    large = max(sizes.values())
    assert large < ports.pipeline.care.small
    assert care(ports) == {}
    ports.clock.at += dt.timedelta(hours=2)
    ports.pipeline.care = CareSettings(waste=0.2, least=1024, small=large)
    assert [sizes[file] for file in care(ports)] == [large]


@pytest.mark.deep(5)
def test_a_file_that_cannot_be_written_anew_is_left_and_the_other_is_taken_care_of(ports, monkeypatch):
    ports.pipeline.care = CareSettings(least=1024, small=0)
    real = ports.warehouse.rewrite

    def rewrite(file, *, within):
        if file == "warehouse":
            raise WarehouseError("no room")
        return real(file, within=within)

    monkeypatch.setattr(ports.warehouse, "rewrite", rewrite)
    assert list(care(ports)) == ["personal"]
    assert care(ports) == {}, "and it is not tried again at once"


@pytest.fixture
def new_ports(tmp_path):
    with what_care_needs(tmp_path) as needed:
        yield needed


def test_files_that_a_first_run_has_just_written_are_left_alone(new_ports):
    ports, settings = new_ports, CareSettings(waste=-1.0, least=0, small=0)
    ports.pipeline.care = settings
    ports.journal.runs.start("sync", "test", run_id="first", fence=1)
    ports.clock.at += dt.timedelta(seconds=settings.every - 1)
    assert care(ports) == {}
    ports.clock.at += dt.timedelta(seconds=1)
    assert set(care(ports)) == {"warehouse", "personal"}


def test_old_payloads_and_runs_go_and_the_newest_payload_of_each_key_stays(new_ports):
    ports, journal, warehouse = new_ports, new_ports.journal, new_ports.warehouse
    for key, ages in {"a": (500, 450, 10), "b": (900, 800), "c": (3,)}.items():
        for age in ages:
            when = (NOW - age * DAY).isoformat()
            warehouse._db.execute(
                "insert into personal.raw.records values ('main', 'booking', $1, $2, $2, $3::timestamptz, 'user')",
                [key, f"{key}{age}", when],
            )
    for age in (500, 100):
        ports.clock.at = NOW - age * DAY
        for end in (True, False):
            journal.runs.start("sync", "test", run_id=f"{age}-{end}", fence=1)
            if end:
                journal.runs.end(f"{age}-{end}", "ok")
            ended = ports.clock.at if end else None
            row = {"run_id": f"{age}-{end}", "started_at_utc": ports.clock.at, "ended_at_utc": ended}
            warehouse.write_log("ops.runs", [row])
    ports.clock.at = NOW
    for version, age in enumerate((500, 410, 390), start=1):
        warehouse._db.execute(
            "insert into core.availability_history (connection_id, product_id, option_id, availability_id, version_no, "
            "valid_to_utc, is_current) values ('main', 'p', 'o', 'kept', $1, $2::timestamptz, false)",
            [version, (NOW - age * DAY).isoformat()],
        )
    versions = "select version_no from core.availability_history where availability_id = 'kept' order by 1"
    care(ports)
    assert warehouse.query(versions).rows == [(3,)]
    assert warehouse.query("select payload from personal.raw.records order by all").rows == [
        ("a10",),
        ("b800",),
        ("c3",),
    ]
    runs = {"100-True", "100-False", "500-False"}
    assert {run.run_id for run in journal.runs.last(10)} == runs
    assert {row[0] for row in warehouse.query("select run_id from ops.runs").rows} == runs
    warehouse.run_script(["update core.availability_history set version_no = version_no - 1"])
    again = "insert into core.availability_history by name select * replace (9 as version_no) from core.availability_history"
    warehouse.run_script([f"{again} where availability_id = 'kept'"])
    ports.pipeline.retention = RetentionSettings(raw=0.0, runs=0.0, availability_history=0.0)
    ports.clock.at = NOW + 5000 * DAY
    care(ports)
    assert len(warehouse.query("select payload from personal.raw.records").rows) == 3, "0 keeps all"
    assert warehouse.query(versions).rows == [(2,), (9,)]
    assert {run.run_id for run in journal.runs.last(10)} == runs


@pytest.fixture(scope="module")
def service():
    with Service(small(bookings=40, days=10, products=3)) as running:
        yield running


@pytest.mark.deep(4)
async def test_a_sync_and_a_quiet_program_take_care_by_themselves(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK)
    project.care = CareSettings(least=1, small=0, waste=0.01)
    await project.sync()
    project.clock.advance(hours=2)  # files that a run has made itself are left alone
    await project.sync()
    async with project.opened() as one:
        assert json.loads(one.ports.journal.settings.get("care"))["bytes_per_value"]
        one.ports.journal.settings.set("care", None)
    inode = (tmp_path / "octo.duckdb").stat().st_ino
    async with keeping(project) as keeper:
        for day in range(1, 8):
            when = (NOON + day * DAY).date().isoformat()
            service.control(
                "POST",
                "/admin/availability",
                {"product_id": service.state()["products"][0]["id"], "from": when, "to": when, "action": "capacity",
                 "capacity": 20 + day, "silent": True},
            )  # fmt: skip
            keeper.pull("availability")
            await settled(keeper)
        project.clock.advance(hours=3)
        keeper._compactor._looked_at = float("-inf")
        keeper.wake.set()
        await settled(keeper)
    assert (tmp_path / "octo.duckdb").stat().st_ino != inode
    assert project.differences() == []
