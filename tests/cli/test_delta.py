"""A project whose warehouse is in Delta tables, as a person runs it: the rows are those of a project of DuckDB files."""

import shutil

import deltalake
import duckdb
import pytest
from tests.cli.conftest import wait_until
from tests.destinations.test_delta import holding

from octo_sync.tables import all_tables


@pytest.fixture
def lake(fresh):
    """A project that was never synced, whose pipeline file names a folder for Delta tables."""
    return _with_lake(fresh)


def _with_lake(project):
    pipeline = project.directory / "pipelines/shop.toml"
    pipeline.write_text(f'destination = "delta+file://{project.directory}/lake/octo"\n' + pipeline.read_text())
    return project


def _differing(project, files, schema="core"):
    """How many rows only one of them has: Delta tables as they have landed, and a project's files."""
    root = project.directory / "lake/octo"
    state = deltalake.DeltaTable(str(root / "octo_sync_landed")).to_pyarrow_table().to_pylist()
    version = {row["table_name"]: row["version"] for row in state}
    found = {}
    with duckdb.connect(files / "octo.duckdb", read_only=True) as db:
        db.execute("set timezone = 'UTC'")
        for table in (t for t in all_tables() if t.schema == schema and t.tracked):
            told = ", ".join(f"{c.name}::{c.type} as {c.name}" for c in table.tracked if _is_of_the_service(c.name))
            path = str(root / table.schema / table.name)
            db.register("there", deltalake.DeltaTable(path, version=version[table.full_name]).to_pyarrow_dataset())
            here, there = f"select {told} from {table.full_name}", f"select {told} from there"
            ways = (here, f"{here} except all {there}", f"{there} except all {here}")
            found[table.full_name] = [db.execute(f"select count(*) from ({way})").fetchall()[0][0] for way in ways]
    return found


def _is_of_the_service(column):
    """When a copy heard of something, and as whose key it hashed it, is each copy's own."""
    return column not in {"valid_from_utc", "valid_to_utc", "contact_key"}


@pytest.mark.deep(20)
def test_a_sync_lands_the_rows_that_files_have_and_publishes_the_marts(lake, looked):
    lake.ok("sync", real=True)
    found = _differing(lake, looked.directory)
    assert sum(rows for rows, *_ in found.values()) > 4_000
    assert {name: differing for name, (_, *differing) in found.items() if any(differing)} == {}
    assert lake.json("tables", "--digests")["tables"] == looked.json("tables", "--digests")["tables"]
    asked = "select count(*), sum(pax_count) from fct_bookings"
    assert lake.json("sql", asked)["rows"] == looked.json("sql", asked)["rows"]
    root = lake.directory / "lake/octo"
    state = deltalake.DeltaTable(str(root / "octo_sync_published")).to_pyarrow_table().to_pylist()
    (bookings,) = (row for row in state if row["table_name"] == "marts/fct_bookings")
    assert bookings["rows"] == lake.json("sql", "select count(*) as n from fct_bookings")["rows"][0]["n"]
    shutil.rmtree(lake.directory / ".octo.lake")
    told = lake.json("sync", real=True)
    assert told["unchanged"] == told["subjects"], "another machine goes on where this one ended"


@pytest.mark.deep(40)
def test_a_sync_that_is_killed_again_and_again_lands_the_same_rows(lake, looked):
    """Killed when so many commits are there; the next one takes it up, from a copy that it cannot trust."""
    logs = (lake.directory / "lake").glob
    killed = 0
    for commits in (20, 40, 60, 90, 120):
        running = lake.start("sync")
        wait_until(lambda: running.poll() is not None or len(list(logs("**/_delta_log/*.json"))) >= commits)  # noqa: B023 - at once
        killed += running.poll() is None
        running.kill()
        running.communicate()
    assert killed >= 2
    lake.ok("sync", real=True)
    found = _differing(lake, looked.directory)
    assert {name: differing for name, (_, *differing) in found.items() if any(differing)} == {}
    assert lake.json("tables", "--digests")["tables"] == looked.json("tables", "--digests")["tables"]


@pytest.mark.deep(15)
def test_a_project_of_files_moves_into_delta_tables_with_all_it_has_and_on_from_there(project):
    former = project.directory / "former"
    former.mkdir()
    for file in project.directory.glob("octo*.duckdb"):
        file.rename(former / file.name)
    _with_lake(project)
    told = project.json("db", "rebuild", "--from", former / "octo.duckdb")
    assert told["rows"] > 4_000
    assert told["journal_rows"] is None
    found = _differing(project, former)
    assert {name: differing for name, (_, *differing) in found.items() if any(differing)} == {}
    synced = project.json("sync", real=True)
    assert synced["unchanged"] == synced["subjects"], "what the last sync of the files knew is known"
    assert project.json("db", "rebuild", "--from", former / "octo.duckdb")["rows"] == 0, "it is there already"


@pytest.mark.deep(15)
def test_a_person_is_erased_from_a_lake_in_the_project_and_no_file_of_it_is_left_to_be_looked_at(project):
    former = project.directory.parent / "former"
    former.mkdir()
    for file in project.directory.glob("octo*.duckdb"):
        file.rename(former / file.name)
    _with_lake(project)
    project.ok("db", "rebuild", "--from", former / "octo.duckdb")
    with duckdb.connect(former / "octo.private.duckdb", read_only=True) as db:
        ((address,),) = db.execute(
            "select email_address from private.booking_contacts group by 1 having count(*) = 1 order by 1 limit 1"
        ).fetchall()
    assert {"lake", ".octo.lake"} & holding(project.directory, address)
    project.ok("privacy", "erase", "--email", address, "--yes")
    assert holding(project.directory, address) == set()


def test_what_copies_files_says_that_these_are_in_delta_tables(lake):
    for command in (("db", "backup", "to"), ("db", "rebuild")):
        refused = lake(*command)
        assert refused.returncode == 2
        assert "Delta tables" in refused.stderr


def _versions(root):
    """The versions that readers see, and how many files lie there that none of them needs."""
    rows = deltalake.DeltaTable(str(root / "octo_sync_published")).to_pyarrow_table().to_pylist()
    versions = {row["table_name"]: row["version"] for row in rows}
    there = {name: deltalake.DeltaTable(str(root / name), version=version) for name, version in versions.items()}
    former = [len(list((root / name).glob("*.parquet"))) - len(table.file_uris()) for name, table in there.items()]
    return versions, sum(former)


def _published_too(project):
    """Where a project publishes to from now on, which it has done once."""
    pipeline = project.directory / "pipelines/shop.toml"
    pipeline.write_text('publish.delta = "lake"\n' + pipeline.read_text())
    project.ok("publish")
    return project.directory / "lake"


def test_what_a_project_of_files_publishes_is_in_delta_tables_too(project):
    root = _published_too(project)
    before, _ = _versions(root)
    with duckdb.connect(project.directory / "octo.read.duckdb", read_only=True) as db:
        db.execute("set timezone = 'UTC'")
        named = "select schema_name || '/' || table_name from duckdb_columns() where schema_name in ('core', 'ops', 'marts')"
        assert before.keys() == {name for (name,) in db.execute(named).fetchall()}
        for name, version in before.items():
            there = deltalake.DeltaTable(str(root / name), version=version)
            schema_and_name = name.split("/")
            asked = "select comment from duckdb_{} where schema_name = $1 and {}_name = $2"
            tables, views = (asked.format(f"{kind}s()", kind) for kind in ("table", "view"))
            ((told,),) = db.execute(f"{tables} union all {views}", schema_and_name).fetchall()
            assert there.metadata().description == told, name
            asked = "select column_name, comment from duckdb_columns() where schema_name = $1 and table_name = $2"
            meant = {field.name: field.metadata.get("comment") for field in there.schema().fields}
            assert meant == dict(db.execute(asked, schema_and_name).fetchall()), name
            db.register("there", there.to_pyarrow_dataset())
            here = ", ".join(
                f"{column}::varchar" if kind == "TIMESTAMP" else column
                for column, kind, *_ in db.execute(f"describe {name.replace('/', '.')}").fetchall()
            )
            rows = f"select {here} from {name.replace('/', '.')}", "select * from there"
            for a, b in (rows, rows[::-1]):
                wall = "replace(columns(*)::varchar, 'T', ' ')"
                left = f"select count(*) from (select {wall} from ({a}) except all select {wall} from ({b}))"
                assert db.execute(left).fetchall() == [(0,)], name


@pytest.mark.deep(20)
def test_equal_rows_are_not_published_twice_and_an_erasure_goes_through_all_versions(project):
    root = _published_too(project)
    before, former = _versions(root)
    assert former == 0
    with duckdb.connect(project.directory / "octo.read.duckdb", read_only=True) as db:
        ((booking,),) = db.execute(
            "select booking_uuid from core.bookings where cancellation_reason is not null order by 1 limit 1"
        ).fetchall()
    project.ok("publish")
    after, former = _versions(root)
    assert {name for name in after if after[name] != before[name]} == {"ops/writer"}, "equal rows are not written again"
    project.ok("privacy", "erase", "--booking", booking, "--yes")
    erased, former = _versions(root)
    assert former == 0, "what had it is gone, also of former versions"
    rows = (
        deltalake.DeltaTable(str(root / "core/bookings"), version=erased["core/bookings"])
        .to_pyarrow_table()
        .to_pylist()
    )
    assert [row["cancellation_reason"] for row in rows if row["booking_uuid"] == booking] == [None]
