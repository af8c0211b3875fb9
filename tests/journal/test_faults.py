"""Driver errors are sentences, nothing is half done, and the journal goes on by itself."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection
from tests.journal.helpers import ON_A_FILE, HandClock, booking, bookings

from octo_sync.errors import JournalError
from octo_sync.journal import Journal, faults, sqlite
from octo_sync.model import Source


@ON_A_FILE
def test_full_disk_is_said_nothing_is_kept_and_work_goes_on_after(journal: Journal) -> None:
    with journal.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 3}")
    with pytest.raises(JournalError, match="disk is full"):
        journal.subjects.mark(bookings(5000), Source.NOTIFICATION)
    assert journal.subjects.dirty_count() == 0
    journal.subjects.mark(bookings(5000), Source.NOTIFICATION)
    assert journal.subjects.dirty_count() == 5000


@ON_A_FILE
def test_claims_survive_an_error_of_the_file(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.USER)
    (claim,) = journal.subjects.claim(1, run_id="r")
    with journal.reading() as connection:
        connection.exec_driver_sql("PRAGMA query_only = 1")
    with pytest.raises(JournalError, match="read-only"):
        journal.subjects.landed([claim], run_id="r")
    assert journal.subjects.claim(1, run_id="r") == []
    journal.subjects.landed([claim], run_id="r")
    assert journal.subjects.dirty_count() == 0


@ON_A_FILE
def test_journal_locked_for_too_long_is_said(journal: Journal, path, monkeypatch) -> None:
    with journal.reading() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 20")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalError, match="locked by another process"):
            journal.subjects.mark([booking()], Source.USER)
    journal.subjects.mark([booking()], Source.USER)
    assert journal.subjects.dirty_count() == 1


@ON_A_FILE
def test_writer_keeps_other_writers_out_from_its_first_word(journal: Journal, path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other:
        with journal.writing(), pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.execute("BEGIN IMMEDIATE")


def test_directory_that_cannot_be_is_said(tmp_path, clock: HandClock) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot be"):
        Journal.open(tmp_path / "file" / "journal.sqlite", clock=clock)
    (tmp_path / "folder.sqlite").mkdir()
    with pytest.raises(JournalError, match="cannot be"):
        Journal.open(tmp_path / "folder.sqlite", clock=clock)


@ON_A_FILE
def test_vanished_file_is_an_error_and_not_an_empty_journal(journal: Journal, path) -> None:
    journal._disconnect()
    path.unlink()
    with pytest.raises(JournalError, match="was removed or replaced"):
        journal.subjects.dirty_count()
    assert not path.exists()


@pytest.mark.parametrize(
    "name", ["SQLITE_IOERR_FSYNC", "SQLITE_READONLY_DIRECTORY", "SQLITE_CORRUPT_VTAB", "SQLITE_ODD"]
)
def test_every_driver_error_is_one_line_that_names_the_file(tmp_path, name: str) -> None:
    error = sqlite3.OperationalError("driver's words")
    error.sqlite_errorname = name
    with pytest.raises(JournalError) as said, faults.translated(tmp_path / "journal.sqlite"):
        raise error
    for part in (str(tmp_path), name, "driver's words"):
        assert part in str(said.value)
    assert "\n" not in str(said.value)


def test_parameters_never_show_in_an_error(journal: Journal) -> None:
    journal.runs.start("run", "sandbox", run_id="r", fence=1, options={"secret": "hunter2"})
    with pytest.raises(JournalError) as said:
        journal.runs.start("run", "sandbox", run_id="r", fence=1, options={"secret": "hunter2"})
    assert "hunter2" not in str(said.value)


@ON_A_FILE
def test_draft_of_a_kill_during_creation_does_not_hinder(path, clock: HandClock, monkeypatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(sqlite.os, "link", killed)
        with pytest.raises(KeyboardInterrupt):
            Journal.open(path, clock=clock)
    assert not path.exists()
    with Journal.open(path, clock=clock) as journal:
        assert journal.recovered_from is None


@ON_A_FILE
def test_file_system_without_hard_links_will_do(path, clock: HandClock, monkeypatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(sqlite.os, "link", refused)
    with Journal.open(path, clock=clock) as journal:
        journal.subjects.mark([booking()], Source.USER)
    with Journal.open(path, clock=clock) as journal:
        assert journal.subjects.dirty_count() == 1


@ON_A_FILE
def test_process_that_loses_the_race_to_create_uses_the_winners_file(path, clock: HandClock, monkeypatch) -> None:
    link = sqlite.os.link

    def slower(*names: Path) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite.os, "link", link)
            with Journal.open(path, clock=clock) as winner:
                winner.subjects.mark([booking()], Source.USER)
        link(*names)

    monkeypatch.setattr(sqlite.os, "link", slower)
    with Journal.open(path, clock=clock) as journal:
        assert journal.recovered_from is None
        assert journal.subjects.dirty_count() == 1
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_process_that_loses_the_race_to_migrate_applies_nothing_twice(journal: Journal, path, clock: HandClock) -> None:
    class Slow(Journal):
        stale = True

        def _version(self, connection: Connection) -> int:
            version, self.stale = 0 if self.stale else super()._version(connection), False
            return version

    with Slow.open(path, clock=clock) as slow:
        assert slow.subjects.mark([booking()], Source.USER) > 0
