"""Two roads to the schema meet; versions are kept apart; the rules stand in the database itself."""

import re
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from tests.journal.helpers import ON_A_FILE, HandClock, booking

from octo_sync.errors import JournalError
from octo_sync.journal import Journal, store
from octo_sync.journal.damage import APPLICATION_ID
from octo_sync.model import Source

AS_OF_0_2 = Path(__file__).with_name("schema_0_2.sql")
"""What octo-sync 0.2 made. Never edited: a change of a model is a migration in `store.MIGRATIONS`."""


def schema(connection: sqlite3.Connection) -> dict[str, object]:
    """Every table as the set of its clauses, every index as its text; spacing, quotes and comments do not count."""
    found: dict[str, object] = {}
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    for kind, name, text in rows:
        plain = re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", text).replace('"', ""))
        plain = re.sub(r"\s*([(),])\s*", r"\1", plain).strip()
        if kind == "index":
            found[name] = plain
            continue
        clauses, depth, clause = set(), 0, ""
        inner, _, options = plain.partition("(")[2].rpartition(")")
        for letter in inner + ",":
            depth += {"(": 1, ")": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                clauses.add(clause)
                clause = ""
            else:
                clause += letter
        found[name] = (clauses, options.strip())
    return found


@ON_A_FILE
def test_older_schema_and_a_new_one_meet(journal: Journal, path, tmp_path, clock: HandClock) -> None:
    older = tmp_path / "older.sqlite"
    with closing(sqlite3.connect(older)) as made:
        made.execute("PRAGMA journal_mode = wal")
        made.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        made.executescript(AS_OF_0_2.read_text(encoding="utf-8"))
        made.execute("INSERT INTO schema_version VALUES (1, '2026-11-24T00:00:00.000000Z')")
        made.commit()
    Journal.open(older, clock=clock).close()
    with closing(sqlite3.connect(older)) as migrated, closing(sqlite3.connect(path)) as fresh:
        assert schema(migrated) == schema(fresh)
        assert len(schema(fresh)) >= 10


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [number for number, _ in store.MIGRATIONS] == list(range(2, store.newest_schema() + 1))


def test_older_program_refuses_a_newer_schema_in_one_line(journal: Journal, path, clock: HandClock) -> None:
    journal.subjects.mark([booking()], Source.USER)
    with journal.writing() as connection:
        connection.exec_driver_sql("INSERT INTO schema_version VALUES (999, '2030-01-01T00:00:00.000000Z')")
    journal.close()
    with pytest.raises(JournalError, match=r"newer octo-sync .*999.*upgrade octo-sync") as refused:
        Journal.open(path, clock=clock)
    assert "\n" not in str(refused.value)
    assert isinstance(path, str) or sorted(one.name for one in path.parent.iterdir()) == [path.name]


def test_failed_migration_leaves_nothing_and_is_tried_again(
    journal: Journal, path, clock: HandClock, monkeypatch
) -> None:
    journal.subjects.mark([booking()], Source.USER)
    journal.close()
    number, table = store.newest_schema() + 1, "CREATE TABLE half (a TEXT)"
    with monkeypatch.context() as patched:
        patched.setattr(store, "MIGRATIONS", (*store.MIGRATIONS, (number, (table, table))))
        with pytest.raises(JournalError, match="half"):
            Journal.open(path, clock=clock)
    monkeypatch.setattr(store, "MIGRATIONS", (*store.MIGRATIONS, (number, (table,))))
    for _ in range(2):
        with Journal.open(path, clock=clock) as migrated:
            assert migrated.subjects.dirty_count() == 1
            assert migrated.recovered_from is None
            assert migrated.schema_version() == number


@pytest.mark.deep(0.1, everyday=4)
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE subjects SET landed_seq = wanted_seq + 1",
        "UPDATE subjects SET kind = ''",
        "UPDATE subjects SET connection = ''",
        "UPDATE subjects SET source = ''",
        "UPDATE subjects SET \"key\" = 'not json'",
        "UPDATE subjects SET attempts = -1",
        "UPDATE subjects SET landed_seq = wanted_seq, attempts = 1",
        "UPDATE subjects SET quarantined_at = '2026-07-01T12:00:00.000000Z'",
        "UPDATE counters SET value = -1",
        "UPDATE leases SET fence = -1",
        "UPDATE runs SET status = 'fine'",
        "UPDATE runs SET status = 'ok'",
        "UPDATE runs SET options = 'x'",
    ],
)
def test_database_itself_refuses_what_must_not_be(journal: Journal, change: str) -> None:
    journal.subjects.mark([booking()], Source.USER)
    journal.runs.start("run", "sandbox", run_id="r", fence=1)
    with pytest.raises(JournalError, match="rules"), journal.writing() as connection:
        connection.exec_driver_sql(change)
    assert journal.subjects.dirty_count() == 1


@ON_A_FILE
def test_file_is_private_and_durable(journal: Journal, path) -> None:
    journal.subjects.mark([booking()], Source.USER)
    for name in ("", "-wal", "-shm"):
        assert stat.S_IMODE(path.with_name(path.name + name).stat().st_mode) == 0o600
    with journal.reading() as connection:
        for pragma, value in {
            "journal_mode": "wal",
            "synchronous": 2,
            "busy_timeout": 5_000,
            "foreign_keys": 1,
            "page_size": 2048,
        }.items():
            assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar_one() == value


def test_missing_directories_are_made_private(tmp_path, clock: HandClock) -> None:
    with Journal.open(tmp_path / "state" / "journal.sqlite", clock=clock):
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


@ON_A_FILE
def test_closing_leaves_one_file(journal: Journal, path) -> None:
    journal.subjects.mark([booking()], Source.USER)
    journal.close()
    journal.close()
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    with pytest.raises(JournalError, match="closed"):
        journal.subjects.dirty_count()
