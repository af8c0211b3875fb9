"""The file behind the journal: opening, migrating, transactions. One connection, one lock, short transactions."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from octo_sync.errors import JournalError
from octo_sync.journal.damage import APPLICATION_ID, find_damage, move_aside, sync_directory, wal_of
from octo_sync.journal.faults import BUSY_TIMEOUT_MS, translated
from octo_sync.journal.models import to_text
from octo_sync.model import Clock

__all__ = ["Store", "migrations"]

_PAGE_SIZE = 2048
"""Of new journals. A commit writes every page that it touched, and marks touch pages all over the indexes: half of SQLite's
usual page is half of the bytes to sync (32 deliveries: 5.7 → 4.0 ms), a quarter is too small for long ids."""
_SQLITES_OWN, _LONGEST_LOG = 1000, 32_768
"""Pages in the write-ahead log before a commit folds it into the database itself: by default, and when somebody else does
it meanwhile."""


def migrations() -> list[tuple[int, str]]:
    """The numbered migrations, in order: (number, SQL text)."""
    folder = resources.files("octo_sync.journal") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [(int(file.name.split("_")[0]), file.read_text(encoding="utf-8")) for file in files]


class Store:
    """An open journal file. Thread-safe: every statement runs under one lock. Not to be used across a fork."""

    def __init__(self, path: Path, *, clock: Clock, recovered_from: Path | None = None) -> None:
        self.path = path
        self.recovered_from = recovered_from
        """Where a damaged predecessor was moved to when this file was opened; the caller then marks everything."""
        self._clock = clock
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._folding = threading.Lock()
        self._folder: sqlite3.Connection | None = None
        self._pages_before_checkpoint = _SQLITES_OWN
        self._closed = False
        self._engine: Engine = create_engine(
            "sqlite://", creator=self._connect_driver, poolclass=NullPool, isolation_level="AUTOCOMMIT"
        )

    @classmethod
    def open(cls, path: Path, *, clock: Clock) -> Self:
        """Open the journal, or create it; move a damaged one aside and start a fresh one.

        Raises JournalError: another program's database, a newer octo-sync's schema, no right to write, locked, disk
        full.
        """
        with translated(path):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            recovered_from = _recover(path, clock)
            if not path.exists():
                _create(cls, path, clock)
        store = cls(path, clock=clock, recovered_from=recovered_from)
        try:
            store._migrate()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the file; the last one to close it also empties the write-ahead log. Closing twice is fine."""
        with self._folding:
            self._closed = True
            self._drop_folder()
        with self._lock:
            self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ── the write-ahead log ───────────────────────────────────────────────────────────────────────────────────────

    def leave_checkpoints(self) -> None:
        """Somebody calls `checkpoint` from now on: commits do not stop for it any more, unless the log grows long."""
        with self._lock, translated(self.path):
            self._pages_before_checkpoint = _LONGEST_LOG
            if self._connection is not None:
                self._connection.exec_driver_sql(f"PRAGMA wal_autocheckpoint={_LONGEST_LOG}")

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the database; whoever writes meanwhile hardly waits.

        Two steps: nearly everything on a connection of its own, beside the writer; then, while no one writes, what was
        committed during the first. So the log is folded whole and is written from its beginning again: that costs no
        growing of a file, which would make each commit wait for the file system's own journal.

        What is in the log is durable before and after. Call it from another thread than the one that commits.
        """
        with self._folding, translated(self.path):
            if self._closed:
                return
            try:
                if self._folder is None:
                    self._folder = self._connect_driver()
                self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                with self._lock:
                    self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except BaseException:
                self._drop_folder()
                raise

    def _drop_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            with suppress(sqlite3.Error):
                folder.close()

    # ── transactions ──────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """Statements that only read; each sees one committed state."""
        with self._lock, self._fresh_after_error(), translated(self.path):
            yield self._connect()

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """One transaction, durable when the block is left; nothing of it remains when the block raises.

        `IMMEDIATE`, because a transaction that reads first and writes later cannot wait for another writer.
        """
        with self._lock, self._fresh_after_error(), translated(self.path):
            connection = self._connect()
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                with suppress(SQLAlchemyError):
                    connection.exec_driver_sql("ROLLBACK")
                raise

    @contextmanager
    def _fresh_after_error(self) -> Iterator[None]:
        """After an error the connection is not trusted any more: the next statement opens a new one and goes on."""
        try:
            yield
        except JournalError:
            self._disconnect()
            raise

    def _connect(self) -> Connection:
        if self._closed:
            raise JournalError(f"The journal {self.path} was closed.")
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError, sqlite3.Error):
                connection.close()

    def _connect_driver(self) -> sqlite3.Connection:
        # mode=rw: a file that has vanished is an error, not an empty journal.
        uri = f"{self.path.resolve().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in (
                f"busy_timeout={BUSY_TIMEOUT_MS}",
                "journal_mode=WAL",
                "synchronous=FULL",  # with NORMAL, a power cut lost commits in 389 of 400 crash images
                "foreign_keys=ON",
                f"wal_autocheckpoint={self._pages_before_checkpoint}",
                "cache_size=-16000",  # 16 MB: the indexes of 100,000 subjects
            ):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    # ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _version(self, connection: Connection) -> int:
        known = connection.exec_driver_sql(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_version'"
        ).scalar_one()
        if not known:
            return 0
        return int(connection.exec_driver_sql("SELECT coalesce(max(version), 0) FROM schema_version").scalar_one())

    def _migrate(self) -> None:
        """Apply what is missing, each migration in one transaction; refuse what a newer program wrote."""
        steps = migrations()
        with self._reading() as connection:
            version = self._version(connection)
        if version > steps[-1][0]:
            raise JournalError(
                f"The journal {self.path} was written by a newer octo-sync (schema {version}, this program knows "
                f"{steps[-1][0]}); upgrade octo-sync."
            )
        for number, script in steps:
            if number <= version:
                continue
            with self._writing() as connection:
                if self._version(connection) >= number:  # another process was faster
                    continue
                for statement in _statements(script):
                    connection.exec_driver_sql(statement)
                if number == 1:
                    self._first_numbers(connection)
                connection.exec_driver_sql(
                    "INSERT INTO schema_version (version, applied_at) VALUES (?, ?)",
                    (number, to_text(self._clock.now())),
                )

    def _first_numbers(self, connection: Connection) -> None:
        """Where a new journal starts to count: at the clock, not at 0.

        The warehouse remembers request numbers (R6) and fences (R9) and refuses smaller ones. A journal that was
        damaged, or deleted by hand, must therefore go on above all that its predecessor ever gave out: microseconds
        since 1970 are above it as long as it gave out less than a million numbers a second, seconds as long as it had
        less than one owner a second. `Journal.at_least` closes what remains.
        """
        now = self._clock.now()
        connection.exec_driver_sql("INSERT INTO counters VALUES ('seq', ?)", (int(now.timestamp() * 1_000_000),))
        connection.exec_driver_sql(
            "INSERT INTO leases (name, fence, owner, pid, host, acquired_at, released_at) "
            "VALUES ('writer', ?1, 'nobody', 0, '', ?2, ?2)",
            (int(now.timestamp()), to_text(now)),
        )


def _statements(script: str) -> Iterator[str]:
    """The script's statements, one by one: `executescript` would commit what is open."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _recover(path: Path, clock: Clock) -> Path | None:
    """Move a damaged journal aside; its new name, or None when there is no damage."""

    def damaged() -> bool:
        return (path.exists() or wal_of(path).exists()) and find_damage(path) is not None

    if not damaged():
        return None
    # Two processes may notice at once: the second looks again and finds what the first has put in place.
    with FileLock(path.with_name(path.name + ".recovery.lock"), mode=0o600, fallback_to_soft=False):
        return move_aside(path, clock.now()) if damaged() else None


def _create(cls: type[Store], path: Path, clock: Clock) -> None:
    """Build the file under another name and give it its own when it is whole.

    So an empty or half-made file under the journal's name is always damage, a kill at any moment leaves none, and of
    two processes that create it at once one wins whole.
    """
    draft = path.with_name(f".{path.name}.new-{os.getpid()}-{threading.get_ident()}")
    draft.unlink(missing_ok=True)
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(draft)) as connection:
            connection.execute(f"PRAGMA page_size={_PAGE_SIZE}")
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        with cls(draft, clock=clock) as store:
            store._migrate()
        try:
            os.link(draft, path)
        except OSError:  # another process was faster, or a file system without hard links
            if not path.exists():
                draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(path.parent)
