"""Every released schema comes to the present one, with all rows, however often it is killed on the way."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from tests.destinations.contract import NOW

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.destinations.migrations import SCHEMA_VERSION, STEPS
from octo_sync.errors import WarehouseError
from octo_sync.tables import all_tables, nouns

SCHEMAS = Path(__file__).parent / "schemas"
RELEASED = sorted(int(path.stem[1:]) for path in SCHEMAS.glob("v*.sql"))
PRIVATE = ("private.", "raw.")
_VALUES = {
    "VARCHAR": "'t{n}'",
    "BIGINT": "{n}",
    "INTEGER": "2",
    "BOOLEAN": "false",
    "DATE": "date '2026-12-0{n}'",
    "TIMESTAMP": "timestamp '2026-12-0{n} 09:00:00'",
    "TIMESTAMP WITH TIME ZONE": "timestamptz '2026-11-0{n} 08:00:00.123456Z'",
    "DECIMAL(18,4)": "{n}.2500",
}


def files(directory):
    return directory / "octo.duckdb", directory / "octo.private.duckdb"


def opened(directory):
    return DuckDBWarehouse(*files(directory), tables=all_tables(), nouns=nouns(), now=NOW)


def columns(directory):
    """Name, type and comment of every column in both files, in order."""
    found = []
    for file in files(directory):
        with duckdb.connect(file, read_only=True) as db:
            found += db.execute(
                "select schema_name, table_name, column_index, column_name, data_type, is_nullable, comment "
                "from duckdb_columns() where not internal and schema_name <> 'marts' order by all"
            ).fetchall()
            found += db.execute("select schema_name, table_name, comment from duckdb_tables() order by all").fetchall()
    return found


def rows(directory, of):
    """The rows of the tables and columns that `of` names."""
    found = {}
    for file in files(directory):
        with duckdb.connect(file, read_only=True) as db:
            db.execute("set timezone = 'UTC'")
            there = {
                row[0] for row in db.execute("select schema_name || '.' || table_name from duckdb_tables()").fetchall()
            }
            for table, names in of.items():
                if table in there:
                    found[table] = db.execute(f"select {', '.join(names)} from {table} order by all").fetchall()
    return found


def make(directory, version):
    """A project as a program of that version left it: two rows in every table."""
    script = (SCHEMAS / f"v{version}.sql").read_text(encoding="utf-8")
    lines = "\n".join(line for line in script.splitlines() if not line.startswith("--"))
    statements = [statement.strip() for statement in lines.split(";\n") if statement.strip()]
    kept = {}
    for file, is_private in zip(files(directory), (False, True), strict=True):
        with duckdb.connect(file, config={"storage_compatibility_version": "v1.2.0"}) as db:
            db.execute("set timezone = 'UTC'")
            for statement in statements:
                words = statement.split("(", 1)[0] if statement.startswith("create") else statement.split(" is ", 1)[0]
                if any(schema in f"{words}." for schema in PRIVATE) is is_private:
                    db.execute(statement)
            kept |= fill(db, version)
            if not is_private:
                db.execute("create schema marts")
                db.execute("create view marts.fct_bookings as select * from core.bookings")
    return kept


def fill(db, version):
    """Two rows in every table; the tables' columns, but for those that are forgotten on purpose."""
    kept = {}
    for (name,) in db.execute("select schema_name || '.' || table_name from duckdb_tables()").fetchall():
        if name == "ops.schema_migrations":
            for number in range(1, version + 1):
                db.execute(f"insert into {name} values ({number}, '2026-01-01 00:00:00Z', 'old')")
            continue
        described = db.execute(f"describe {name}").fetchall()
        for number in (1, 2) if name not in ("ops.writer", "private.landed") else (1,):
            values = ", ".join(_VALUES[type_].format(n=number) for _, type_, *_ in described)
            db.execute(f"insert into {name} values ({values})")
        kept[name] = [column for column, *_ in described if column not in ("answer_hash", "payload_digest")]
    return kept


KILL = """
import datetime as dt, json, os, sys
from pathlib import Path
from octo_sync.destinations.duckdb import warehouse as destination, migrations as migrating
from octo_sync.tables import all_tables, nouns

class Fuse:
    def __init__(self, real, at):
        self.real, self.left, self.said = real, at, []
    def execute(self, sql, *more):
        if self.left == len(self.said):
            os._exit(9)
        self.said.append(sql)
        return self.real.execute(sql, *more)

for line in sys.stdin:
    folder, at = json.loads(line)
    pid = os.fork()
    if not pid:
        migrate = destination.migrate
        def fused(db, *more, **named):
            fuse = Fuse(db, at)
            done = migrate(fuse, *more, **named)
            print(json.dumps(fuse.said), flush=True)
            if at == len(fuse.said):
                os._exit(9)
            return done
        destination.migrate = fused
        made = destination.DuckDBWarehouse(Path(folder) / "octo.duckdb", Path(folder) / "octo.private.duckdb",
            tables=all_tables(), nouns=nouns(), now=dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC))
        made.close()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(json.dumps({"code": code}), flush=True)
"""


@pytest.fixture(scope="module")
def killed():
    """`killed(directory, n)`: open the warehouse in a process that dies before its n-th statement (-1: never)."""
    process = subprocess.Popen([sys.executable, "-c", KILL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(directory, at):
        process.stdin.write(json.dumps([str(directory), at]) + "\n")
        process.stdin.flush()
        said = []
        while isinstance(answer := json.loads(process.stdout.readline()), list):
            said = answer
        assert answer["code"] == (9 if at >= 0 else 0)
        return said

    yield run
    process.communicate(timeout=120)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    directory = tmp_path_factory.mktemp("fresh")
    opened(directory).close()
    return columns(directory)


def decisive(said):
    """The statements to die at: all but the endless comments and creations, of which every few."""
    dull = ("comment on", "create ", "drop table", "select ")
    return [n for n, sql in enumerate(said) if not sql.startswith(dull) or n % 61 == 0] + [len(said)]


def test_every_version_is_a_step_and_has_its_schema_on_record():
    assert [step.version for step in STEPS] == list(range(1, SCHEMA_VERSION + 1))
    assert all(step.what.endswith(".") for step in STEPS)
    assert list(range(1, len(RELEASED) + 1)) == RELEASED
    assert SCHEMA_VERSION - 1 <= RELEASED[-1] <= SCHEMA_VERSION, "a released schema is written down once, in schemas/"


@pytest.mark.deep(2, everyday=["1"])
@pytest.mark.parametrize("version", RELEASED)
def test_a_migrated_warehouse_is_a_fresh_one_with_all_its_rows(tmp_path, fresh, version):
    kept = make(tmp_path, version)
    before = rows(tmp_path, kept)
    assert len(before) > 20
    warehouse = opened(tmp_path)
    taken = warehouse.migrated
    warehouse.close()
    assert [step.version for step in taken] == list(range(version + 1, SCHEMA_VERSION + 1))
    assert columns(tmp_path) == fresh
    assert rows(tmp_path, kept) == before
    again = opened(tmp_path)
    assert again.migrated == ()
    assert [v for (v,) in again.query("select version from ops.schema_migrations order by 1").rows] == list(
        range(1, SCHEMA_VERSION + 1)
    )
    again.close()


@pytest.mark.deep(50)
@pytest.mark.parametrize("version", RELEASED)
def test_a_migration_killed_at_any_statement_goes_on_at_the_next_opening(tmp_path, fresh, killed, version):
    source = tmp_path / "source"
    source.mkdir()
    kept = make(source, version)
    before = rows(source, kept)
    whole = tmp_path / "whole"
    shutil.copytree(source, whole)
    said = killed(whole, -1)
    every = {f"{c[0]}.{c[1]}": [] for c in fresh if c[1] != "schema_migrations"}
    for schema, table, _, name, *_ in (c for c in fresh if len(c) > 3 and c[1] != "schema_migrations"):
        every[f"{schema}.{table}"].append(name)
    unkilled = rows(whole, every)
    moments = decisive(said)
    assert sum(sql.startswith("commit") for sql in said) >= SCHEMA_VERSION - version
    assert len(moments) > 10 or version == SCHEMA_VERSION
    for moment in moments:
        victim = tmp_path / "victim"
        shutil.copytree(source, victim)
        killed(victim, moment)
        opened(victim).close()
        assert columns(victim) == fresh, said[moment : moment + 1]
        assert rows(victim, kept) == before, said[moment : moment + 1]
        assert rows(victim, every) == unkilled, said[moment : moment + 1]
        shutil.rmtree(victim)


def test_a_file_of_a_newer_program_is_refused_and_left_alone(tmp_path):
    opened(tmp_path).close()
    with duckdb.connect(files(tmp_path)[0]) as db:
        db.execute("insert into ops.schema_migrations values (999, now(), '99.0')")
    sizes = [file.stat().st_size for file in files(tmp_path)]
    with pytest.raises(
        WarehouseError, match=rf"newer octo-sync \(schema 999, this one knows {SCHEMA_VERSION}\); upgrade"
    ):
        opened(tmp_path)
    assert [file.stat().st_size for file in files(tmp_path)] == sizes
