"""`octo-sync db rebuild --from`: a project goes from files to PostgreSQL with all it has, and goes on there."""

import resource
import sqlite3

import duckdb
import psycopg
import pytest
from tests.cli.test_postgres import server  # noqa: F401 - a fixture

from octo_sync.app import move as moving
from octo_sync.errors import JournalError
from octo_sync.flows.backup import place as placing
from octo_sync.journal import locked
from octo_sync.journal.models import metadata
from octo_sync.pipeline import load
from octo_sync.tables import all_tables

FILES = ("octo.duckdb", "--journal", "octo.journal.sqlite")


@pytest.fixture
def moved(project, postgres_server, monkeypatch):
    """A project of files whose pipeline file names an empty database by now, and the database."""
    name = postgres_server.make()
    monkeypatch.chdir(project.directory)
    pipeline = project.directory / "pipelines/shop.toml"
    address = postgres_server.dsn(name)
    pipeline.write_text(f'destination = "{address}"\njournal = "{address}"\n' + pipeline.read_text())
    yield project, address
    postgres_server.drop(name)


def _rows_here(project, table):
    return _rows_in(project.directory / ("octo.private.duckdb" if table.private else "octo.duckdb"), table)


def _rows_in(file, table):
    names = ", ".join(c.name for c in table.all_columns)
    with duckdb.connect(file, read_only=True) as db:
        db.execute("set timezone = 'UTC'")
        return sorted(db.execute(f"select {names} from {table.full_name}").fetchall(), key=repr)


def _rows_there(address, table):
    names = ", ".join(c.name for c in table.all_columns)
    place = table.full_name if table.private else f"landing.{table.name}"
    with psycopg.connect(address) as db:
        db.execute("set timezone = 'UTC'")
        return sorted(db.execute(f"select {names} from {place}").fetchall(), key=repr)


def _journal_here(project):
    with sqlite3.connect(project.directory / "octo.journal.sqlite") as db:
        tables = [n for (n,) in db.execute("select name from sqlite_master where type = 'table'") if "sqlite" not in n]
        return {t: sorted(db.execute(f"select * from {t}").fetchall(), key=repr) for t in tables}


def _journal_there(address, tables):
    with psycopg.connect(address) as db:
        return {t: sorted(db.execute(f"select * from journal.{t}").fetchall(), key=repr) for t in tables}


@pytest.mark.deep(8)
def test_everything_moves_and_the_next_sync_goes_on_where_the_last_one_ended(moved):
    project, address = moved
    before = _journal_here(project)
    told = project.json("db", "rebuild", "--from", *FILES)
    assert told["rows"] > 4_000
    for table in all_tables():
        if table.full_name not in {"ops.writer", "ops.schema_migrations", "private.landed"}:
            here, there = _rows_here(project, table), _rows_there(address, table)
            assert [[str(v) for v in row] for row in there] == [[str(v) for v in row] for row in here], table.full_name
    of_owners = {"leases", "schema_version"}
    kept = {name: rows for name, rows in before.items() if name not in of_owners}
    assert _journal_there(address, kept) == kept
    assert told["journal_rows"] == sum(map(len, kept.values()))
    (fence_before,) = {
        row[[c.name for c in metadata.tables["leases"].columns].index("fence")] for row in before["leases"]
    }
    with psycopg.connect(address) as db:
        assert db.execute("select fence from journal.leases where name = 'writer'").fetchone()[0] > fence_before

    first = project.json("tables", "--digests")["tables"] if project("publish").returncode == 0 else []
    assert {t["table"]: (t["rows"], t["digest"]) for t in first} == {
        t["table"]: (t["rows"], t["digest"]) for t in told["tables"]
    }
    of_bookings = next(table for table in all_tables() if table.full_name == "core.booking_history")
    history = _rows_there(address, of_bookings)
    synced = project("sync", real=True)
    assert synced.returncode == 0, synced.stderr
    assert _rows_there(address, of_bookings) == history, "what the last sync of the files knew is known"
    again = project("db", "rebuild", "--from", *FILES)
    assert again.returncode == 1
    assert "belongs to a project already" in again.stderr


def test_a_move_that_was_cut_off_is_done_again(moved, monkeypatch):
    project, address = moved
    pipeline = load(
        project.directory / "pipelines/shop.toml",
        directory=project.directory,
        environ={"SHOP_TOKEN": "x"},
        overrides={},
    )
    former, journal = project.directory / "octo.duckdb", project.directory / "octo.journal.sqlite"

    def broken(*_):
        raise JournalError("the server went away")

    with monkeypatch.context() as patched:
        patched.setattr(moving, "move_rows", broken)
        with pytest.raises(JournalError, match="went away"):
            moving.move(pipeline, former, journal)
    made = moving.move(pipeline, former, journal)
    assert made.rows == 0 < made.journal_rows
    assert _journal_there(address, ["subjects"])["subjects"] == _journal_here(project)["subjects"]


@pytest.mark.deep(6)
def test_another_copy_in_the_database_is_left_alone(moved):
    project, address = moved
    project.ok("sync", real=True)
    with psycopg.connect(address) as db:
        db.execute("drop schema journal cascade")
        (before,) = db.execute("select count(*) from landing.bookings where last_seen_at_utc is not null").fetchone()
        db.execute("update landing.bookings set pax_count = 77")
    ended = project("db", "rebuild", "--from", *FILES)
    assert ended.returncode == 1
    assert "has another copy already" in ended.stderr
    with psycopg.connect(address) as db:
        assert db.execute("select count(*) from landing.bookings where pax_count = 77").fetchone() == (before,)


def test_nothing_moves_while_something_works_on_the_files(moved):
    project, address = moved
    with locked(placing.lock_beside(project.directory / "octo.journal.sqlite")):
        ended = project("db", "rebuild", "--from", *FILES)
    assert ended.returncode == 6
    with psycopg.connect(address) as db:
        assert db.execute("select to_regnamespace('landing'), to_regnamespace('journal')").fetchone() == (None, None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nothing.duckdb", "--journal", "octo.journal.sqlite"), "nothing.duckdb is not there"),
        (("octo.duckdb",), "say in which file it was"),
        (("octo.duckdb", "--journal", "nothing.sqlite"), "nothing.sqlite is not there"),
    ],
)
def test_what_cannot_be_moved_is_a_sentence(moved, words, sentence):
    project, _ = moved
    ended = project("db", "rebuild", "--from", *words)
    assert ended.returncode == 2
    assert sentence in ended.stderr


def test_files_stay_files(project, monkeypatch):
    monkeypatch.chdir(project.directory)
    ended = project("db", "rebuild", "--from", "octo.duckdb")
    assert ended.returncode == 2
    assert "The destination is a file" in ended.stderr


@pytest.mark.deep(12)
@pytest.mark.parametrize("destination", ["octo2.duckdb", "delta+file://{}/lake"])
def test_everything_comes_back_from_the_server(moved, destination):
    project, address = moved
    project.ok("db", "rebuild", "--from", *FILES)
    project.ok("sync", real=True)
    before = _journal_there(address, [t for t in metadata.tables if t not in {"leases", "schema_version"}])
    pipeline = project.directory / "pipelines/shop.toml"
    text = pipeline.read_text().replace(f'destination = "{address}"', f'destination = "{destination}"')
    text = text.replace(f'journal = "{address}"', 'journal = "journal2.sqlite"')
    pipeline.write_text(text.replace("{}", str(project.directory)))
    told = project.json("db", "rebuild", "--from", address, "--journal", address)
    main = project.directory / ("octo2.duckdb" if "octo2" in destination else ".lake.lake/octo.duckdb")
    names = {False: main, True: main.with_name(main.name.replace(".duckdb", ".private.duckdb"))}
    for table in all_tables():
        if table.full_name not in {"ops.writer", "ops.schema_migrations", "private.landed"}:
            here, there = _rows_in(names[table.private], table), _rows_there(address, table)
            assert [[str(v) for v in row] for row in here] == [[str(v) for v in row] for row in there], table.full_name
    with sqlite3.connect(project.directory / "journal2.sqlite") as db:
        here = {t: sorted(db.execute(f"select * from {t}").fetchall(), key=repr) for t in before}
    assert here == before
    assert told["journal_rows"] == sum(map(len, before.values()))
    assert sorted(project.directory.glob("octo-move-*")) == []
    synced = project("sync", real=True)
    assert synced.returncode == 0, synced.stderr


@pytest.mark.parametrize(
    ("destination", "words", "sentence"),
    [
        ("{address}", ("{address}",), "move the database with its own tools"),
        ("octo2.duckdb", ("{address}",), "say where it was"),
        ("octo2.duckdb", ("{address}", "--journal", "{address}"), "there is no journal of octo-sync"),
        ("octo2.duckdb", ("octo.duckdb", "--journal", "{address}"), "First write the new one"),
    ],
)
def test_what_cannot_come_back_is_a_sentence(moved, destination, words, sentence):
    project, address = moved
    pipeline = project.directory / "pipelines/shop.toml"
    _, _, rest = pipeline.read_text().split("\n", 2)
    pipeline.write_text(
        f'destination = "{destination}"\njournal = "octo2.sqlite"\n{rest}'.replace("{address}", address)
    )
    ended = project("db", "rebuild", "--from", *(word.replace("{address}", address) for word in words))
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert not (project.directory / "octo2.duckdb").exists()


@pytest.mark.deep(8)
def test_a_full_disk_on_the_way_back_is_one_sentence_and_the_next_try_goes_through(moved):
    project, address = moved
    project.ok("db", "rebuild", "--from", *FILES)
    pipeline = project.directory / "pipelines/shop.toml"
    _, _, rest = pipeline.read_text().split("\n", 2)
    pipeline.write_text(f'destination = "octo2.duckdb"\njournal = "octo2.sqlite"\n{rest}')
    words = ("db", "rebuild", "--from", address, "--journal", address)

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))

    ended = project(*words, preexec_fn=little_room)
    assert ended.returncode == 1
    assert ended.stderr.startswith("octo-sync: error: The working storage of ")
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert sorted(project.directory.glob("octo-move-*")) == []
    assert project.json(*words)["rows"] > 4_000
