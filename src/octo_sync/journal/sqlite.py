"""The journal as one SQLite file: made whole, opened durable, its write-ahead log folded beside the writer."""

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import NullPool

from octo_sync.disk import fsync
from octo_sync.errors import JournalError
from octo_sync.journal.damage import APPLICATION_ID, find_damage, move_aside, wal_of
from octo_sync.journal.database import Database
from octo_sync.journal.faults import BUSY_TIMEOUT_MS
from octo_sync.model import Clock

_PAGE_SIZE = 2048
"""Of new journals. A commit writes every page that it touched, and marks touch pages all over the indexes: half of SQLite's
usual page is half of the bytes to sync (32 deliveries: 5.7 → 4.0 ms), a quarter is too small for long ids."""
_SQLITES_OWN, _LONGEST_LOG = 1000, 32_768
"""Pages in the write-ahead log before a commit folds it into the database itself: by default, and when somebody else does
it meanwhile."""


class SQLiteFile(Database):
    """The journal in a file."""

    lease_outlives_its_lock = False

    def __init__(self, path: Path) -> None:
        self.place = path
        self.name = str(path)
        self._opened: tuple[int, int] | None = None
        """Device and inode of the file that was opened."""
        self._folding = threading.Lock()
        self._folder: sqlite3.Connection | None = None
        self._pages_before_checkpoint = _SQLITES_OWN
        self._closed = False

    # ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────

    def exists(self) -> bool:
        """Whether it was ever made."""
        return self.place.exists()

    def prepare(self, clock: Clock, fill: Callable[[Path], None]) -> Path | None:
        """Move a damaged file aside and make a fresh one where there is none; where the damaged one is now, or None.

        `fill` makes the tables of the file it is given.
        """
        self.place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        recovered_from = _recover(self.place, clock)
        if not self.place.exists():
            _create(self.place, fill)
        return recovered_from

    def engine(self) -> Engine:
        """What runs statements over connections that `connect` opens."""
        return create_engine("sqlite://", creator=self.connect, poolclass=NullPool, isolation_level="AUTOCOMMIT")

    def connect(self) -> sqlite3.Connection:
        """Open it; what a transaction says is committed is on the disk."""
        if self._opened:
            self._check_place()
        # mode=rw: a file that has vanished is an error, not an empty journal.
        uri = f"{self.place.resolve().as_uri()}?mode=rw"
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
            self._opened = self._opened or self._place_now()
        except BaseException:
            connection.close()
            raise
        return connection

    def _place_now(self) -> tuple[int, int] | None:
        try:
            found = self.place.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _check_place(self) -> None:
        """A file that another has taken the place of has numbers, and owes things, that this process does not know of."""
        if self._place_now() != self._opened:
            raise JournalError(
                f"The journal {self.name} was removed or replaced while it was in use, so that nothing is kept any more. "
                "Start octo-sync again, or put the former file back."
            )

    def driver(self, connection: Connection) -> Any:  # noqa: ANN401 - the driver's own connection
        """The driver's own connection: SQLAlchemy's share of a statement is as much as a small one takes."""
        return connection.connection.driver_connection

    def close(self) -> None:
        """Let go of what this object holds itself."""
        with self._folding:
            self._closed = True
            self._drop_folder()

    # ── transactions ──────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, connection: Connection, *, alone: bool) -> None:
        """`IMMEDIATE`, because a transaction that reads first and writes later cannot wait for another writer."""
        del alone  # a file has one writer at a time
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    def commit(self, connection: Connection) -> None:
        """Make it durable, in the file that whoever opens the journal next will find."""
        connection.exec_driver_sql("COMMIT")
        self._check_place()

    # ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────

    def has_tables(self, connection: Connection) -> bool:
        """Whether any migration was ever applied."""
        return bool(
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_schema WHERE name = 'schema_version'").scalar_one()
        )

    # ── the write-ahead log ───────────────────────────────────────────────────────────────────────────────────────

    def leave_checkpoints(self, connection: Connection | None) -> None:
        """Somebody calls `checkpoint` from now on."""
        self._pages_before_checkpoint = _LONGEST_LOG
        if connection is not None:
            connection.exec_driver_sql(f"PRAGMA wal_autocheckpoint={_LONGEST_LOG}")

    def checkpoint(self, nobody_writes: AbstractContextManager[Any]) -> None:
        """Nearly everything beside the writer; then, while `nobody_writes`, what was committed during the first step."""
        with self._folding:
            if self._closed:
                return
            try:
                if self._folder is None:
                    self._folder = self.connect()
                self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                with nobody_writes:
                    self._folder.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            except BaseException:
                self._drop_folder()
                raise

    def _drop_folder(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            with suppress(sqlite3.Error):
                folder.close()

    def compact(self, connection: Connection) -> bool:
        """Rewrite the file without what was deleted, and empty the log: both keep deleted bytes."""
        connection.exec_driver_sql("VACUUM")
        busy, _, _ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
        return not busy

    def size(self, _connection: Connection) -> int:
        """Bytes of the file and of its log."""
        found = 0
        for file in (self.place, wal_of(self.place)):
            with suppress(FileNotFoundError):
                found += file.stat().st_size
        return found

    # ── the one writer ────────────────────────────────────────────────────────────────────────────────────────────

    def writer_lock(self, path: Path) -> "FileLease":
        """The lock of the warehouse's one writer."""
        return FileLease(path)


class FileLease:
    """`flock` on a file. The kernel drops it with its owner, however it dies.

    The file stays in place when the lock ends: deleting it would let two owners lock two files of one name. A child process
    made by `fork` without `exec` shares the lock and keeps it alive.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # Without fallback: a lock that is a mere file would outlive a kill.
        self._lock = FileLock(path, mode=0o600, thread_local=False, fallback_to_soft=False)

    @property
    def is_locked(self) -> bool:
        """Whether this object has it."""
        return self._lock.is_locked

    def acquire(self) -> bool:
        """Take it at once; False when another owner has it."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            return False
        return True

    def release(self) -> None:
        """Give it back."""
        self._lock.release(force=True)


def _recover(path: Path, clock: Clock) -> Path | None:
    """Move a damaged journal aside; its new name, or None when there is no damage."""

    def damaged() -> bool:
        return (path.exists() or wal_of(path).exists()) and find_damage(path) is not None

    if not damaged():
        return None
    # Two processes may notice at once: the second looks again and finds what the first has put in place.
    with FileLock(path.with_name(path.name + ".recovery.lock"), mode=0o600, fallback_to_soft=False):
        return move_aside(path, clock.now()) if damaged() else None


def _create(path: Path, fill: Callable[[Path], None]) -> None:
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
        fill(draft)
        try:
            os.link(draft, path)
        except OSError:  # another process was faster, or a file system without hard links
            if not path.exists():
                draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    with suppress(OSError):  # where the system can
        fsync(path.parent)
