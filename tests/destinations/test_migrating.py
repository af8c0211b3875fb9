"""A file of an older schema comes to the present one, with all rows, however often it is killed on the way."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import asdict

import duckdb
import pytest
from tests.destinations.contract import NOW

from octo_sync.destinations import ddl, migrations
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.destinations.migrations import SCHEMA_VERSION, STEPS, Step
from octo_sync.errors import WarehouseError
from octo_sync.tables import all_tables, nouns

SECOND = Step(SCHEMA_VERSION + 1, "Another one.", ("update core.bookings set status = 'later'",))
"""A step that is not there yet, which the tests add."""
COLUMNS = (5, "4cb354faa3117eaf")
"""The newest version, and a digest of what its tables look like."""
OLDER = {
    "core.": ("alter table core.products drop column title", "alter table core.options add column gone text"),
    "private.": ("alter table private.booking_contacts drop column locales",),
}
"""What a program of the former version had otherwise; and it had no histories of bookings."""
_VALUES = {
    "VARCHAR": "'t{n}'",
    "BIGINT": "{n}",
    "INTEGER": "2",
    "BOOLEAN": "false",
    "DATE": "date '2026-12-0{n}'",
    "TIMESTAMP": "timestamp '2026-12-0{n} 09:00:00'",
    "TIMESTAMP WITH TIME ZONE": "timestamptz '2026-11-0{n} 08:00:00.123456Z'",
    "DECIMAL(18,4)": "{n}.2500",
    "DECIMAL(38,4)": "{n}.2500",
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


def make(directory):
    """A project as a program of the former version left it: two rows in every table. The columns that stay, by table."""
    opened(directory).close()
    kept = {}
    for file, schema in zip(files(directory), OLDER, strict=True):
        with duckdb.connect(file) as db:
            db.execute("set timezone = 'UTC'")
            for statement in OLDER[schema]:
                db.execute(statement)
            if schema == "core.":
                db.execute("drop table core.booking_history")
            kept |= fill(db)
            if schema == "core.":
                db.execute("create view marts.fct_bookings as select * from core.bookings")
    return kept


def fill(db):
    """Two rows in every table; the columns that no step changes."""
    kept = {}
    for (name,) in db.execute("select schema_name || '.' || table_name from duckdb_tables()").fetchall():
        if name == "ops.schema_migrations":
            continue
        described = db.execute(f"describe {name}").fetchall()
        for number in (1, 2) if name not in ("ops.writer", "private.landed") else (1,):
            values = ", ".join(_VALUES[type_].format(n=number) for _, type_, *_ in described)
            db.execute(f"insert into {name} values ({values})")
        kept[name] = [
            column for column, *_ in described if column != "gone" and (name, column) != ("core.bookings", "status")
        ]
    return kept


@pytest.fixture
def a_step_more(monkeypatch):
    """The program knows a version more."""
    monkeypatch.setattr(migrations, "STEPS", (*STEPS, SECOND))
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", SECOND.version)


KILL = """
import datetime as dt, json, os, sys
from pathlib import Path
from octo_sync.destinations import migrations
from octo_sync.destinations.duckdb import warehouse as destination
from octo_sync.tables import all_tables, nouns

more = json.loads(sys.argv[1])
migrations.STEPS += (migrations.Step(more["version"], more["what"], tuple(more["statements"])),)
migrations.SCHEMA_VERSION = more["version"]

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
    process = subprocess.Popen(
        [sys.executable, "-c", KILL, json.dumps(asdict(SECOND))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

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


def test_every_version_is_a_step():
    assert [step.version for step in STEPS] == list(range(1, SCHEMA_VERSION + 1))
    assert all(step.what.endswith(".") for step in STEPS)


def test_other_columns_are_another_version():
    said = "\n".join(ddl.create_table(table) for table in all_tables())
    digest = hashlib.sha256(said.encode()).hexdigest()[:16]
    assert (SCHEMA_VERSION, digest) == COLUMNS, (
        "a table has other columns: add a Step to destinations/migrations.py, and put its version and this digest here"
    )


def test_a_migrated_warehouse_is_a_fresh_one_with_all_its_rows(tmp_path, fresh, request):
    kept = make(tmp_path)
    before = rows(tmp_path, kept)
    assert len(before) > 20
    assert columns(tmp_path) != fresh
    request.getfixturevalue("a_step_more")
    warehouse = opened(tmp_path)
    assert warehouse.migrated == (SECOND,)
    assert warehouse.query("select distinct status from core.bookings").rows == [("later",)]
    warehouse.close()
    assert columns(tmp_path) == fresh
    assert rows(tmp_path, kept) == before
    again = opened(tmp_path)
    assert again.migrated == ()
    assert again.query("select version from ops.schema_migrations order by 1").rows == [
        (SCHEMA_VERSION,),
        (SECOND.version,),
    ]
    again.close()


@pytest.mark.deep(25)
def test_a_migration_killed_at_any_statement_goes_on_at_the_next_opening(tmp_path, fresh, killed, request):
    source = tmp_path / "source"
    source.mkdir()
    kept = make(source)
    before = rows(source, kept)
    whole = tmp_path / "whole"
    shutil.copytree(source, whole)
    said = killed(whole, -1)
    every = {f"{c[0]}.{c[1]}": [] for c in fresh if c[1] != "schema_migrations"}
    for schema, table, _, name, *_ in (c for c in fresh if len(c) > 3 and c[1] != "schema_migrations"):
        every[f"{schema}.{table}"].append(name)
    unkilled = rows(whole, every)
    moments = decisive(said)
    assert sum(sql.startswith("commit") for sql in said) >= 1
    assert len(moments) > 10
    request.getfixturevalue("a_step_more")
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
