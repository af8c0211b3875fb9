"""What is behind the journal: opening, migrating, transactions. One connection, one lock, short transactions.

A journal is a file (`sqlite.py`) or a schema of a server (`postgres.py`); what differs between them is a `Database`.
"""

import json
import sqlite3
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
from sqlalchemy import Connection, CursorResult, Executable, Select, insert
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, SQLModel

from octo_sync.errors import JournalError, LeaseHeld, install
from octo_sync.journal import sql
from octo_sync.journal.database import Database
from octo_sync.journal.faults import translated
from octo_sync.journal.models import Act, SchemaVersion, metadata, to_text
from octo_sync.journal.sqlite import SQLiteFile
from octo_sync.model import Clock

if TYPE_CHECKING:
    from octo_sync.journal.root import Journal

T = TypeVar("T")
_Row = TypeVar("_Row", bound=SQLModel)
_Wanted = TypeVar("_Wanted", bound=Select[Any])

MIGRATIONS: tuple[tuple[int, tuple[str | type[SQLModel], ...]], ...] = (
    (2, (Act, "ALTER TABLE differences ADD COLUMN both_rows TEXT")),
    (
        3,
        (
            "DROP INDEX subjects_dirty",
            """CREATE INDEX subjects_dirty ON subjects (connection, priority DESC, kind_rank, month, "key", kind, due_at)
            WHERE wanted_seq > landed_seq AND quarantined_at IS NULL""",
        ),
    ),
)
"""What brings an older schema up to the models: numbers from 2 on, in order, each with statements that both engines know and
models whose table it makes. When the columns of such a model change, the two changes become one here."""
SHARED = "connection "
"""What the name of a connection's row in `leases` begins with."""
WORKER = "worker "
"""What the name of a worker's row there begins with, where several share the project."""
_FIRST = 1
"""The schema that octo-sync 0.2 made."""


def newest_schema() -> int:
    """The version of the schema that this program makes."""
    return max((number for number, _ in MIGRATIONS), default=_FIRST)


def _database(path: Path | str) -> Database:
    if isinstance(path, Path):
        return SQLiteFile(path)
    try:
        from octo_sync.journal.postgres import PostgresServer  # noqa: PLC0415 - its driver is an extra
    except ImportError:
        raise JournalError(f"A journal in PostgreSQL needs the package psycopg: {install('postgres')}.") from None
    return PostgresServer(path)


class Store:
    """An open journal. Thread-safe: every statement runs under one lock. Not to be used across a fork."""

    def __init__(self, path: Path | str, *, clock: Clock, recovered_from: Path | None = None) -> None:
        self.path = path
        """The file, or the `postgresql://` address."""
        self.recovered_from = recovered_from
        """Where a damaged predecessor was moved to when this file was opened; the caller then marks everything."""
        self.database = _database(path)
        self.name = self.database.name
        """What sentences call it; without a password."""
        self.clock = clock
        self.lock = threading.RLock()
        self._connection: Connection | None = None
        self._closed = False
        self.fence: int | None = None
        """The lease that was taken over this object; None: it is nobody's writer."""
        self.shares: dict[str, int] | None = None
        """Fence of each connection that it owns, where several workers share the project; None: it owns all of them."""
        self._engine = self.database.engine()

    @classmethod
    def open(cls, path: Path | str, *, clock: Clock) -> Self:
        """Open the journal, or create it; move a damaged file aside and start a fresh one.

        `path` is an SQLite file or the address of a PostgreSQL database, `postgresql://user@host/database`.

        Raises:
            JournalError: Another program's database, a newer octo-sync's schema, no right to write, locked, disk full, no
                server.
        """

        def fill(draft: Path) -> None:
            with cls(draft, clock=clock) as store:
                store._migrate()

        database = _database(path)
        with translated(database.name):
            recovered_from = database.prepare(clock, fill)
        store = cls(path, clock=clock, recovered_from=recovered_from)
        try:
            store._migrate()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def exists(cls, path: Path | str) -> bool:
        """Whether a journal was ever made there; looking makes none."""
        database = _database(path)
        with translated(database.name):
            return database.exists()

    def close(self) -> None:
        """Close it; the last one to close a file also empties its write-ahead log. Closing twice is fine."""
        self.database.close()
        with self.lock:
            self._closed = True
            self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ── upkeep ────────────────────────────────────────────────────────────────────────────────────────────────────

    def leave_checkpoints(self) -> None:
        """Somebody calls `checkpoint` from now on: commits do not stop for it any more, unless the log grows long."""
        with self.lock, translated(self.name):
            self.database.leave_checkpoints(self._connection)

    def checkpoint(self) -> None:
        """Fold the write-ahead log into the database; whoever writes meanwhile hardly waits.

        Two steps: nearly everything on a connection of its own, beside the writer; then, while no one writes, what was
        committed during the first. So the log is folded whole and is written from its beginning again: that costs no
        growing of a file, which would make each commit wait for the file system's own journal.

        What is in the log is durable before and after. Call it from another thread than the one that commits.
        """
        with translated(self.name):
            self.database.checkpoint(self.lock)

    def compact(self) -> bool:
        """Rewrite the file without what was deleted, and empty the write-ahead log; whether nobody stood in the way.

        SQLite leaves deleted bytes in free pages and old frames of the log. Writers wait meanwhile.
        """
        with self.reading() as opened:
            return self.database.compact(opened)

    def size(self) -> int:
        """Bytes that the journal takes, its write-ahead log included."""
        with self.reading() as opened:
            return self.database.size(opened)

    # ── transactions ──────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Statements that only read; each sees one committed state."""
        with self.lock:
            try:
                with translated(self.name):
                    yield self._connect()
            except JournalError:  # it is not trusted any more: the next statement opens a new one and goes on
                self._disconnect()
                raise

    @contextmanager
    def writing(self, *, alone: bool = False) -> Iterator[Connection]:
        """One transaction, durable when the block is left; nothing of it remains when the block raises.

        On a server others write meanwhile, unless it is `alone`, which is for who takes over or makes the whole project. So
        rows that others write too are written in the order of their keys, so that no two wait for each other, after the
        number that they are given, if any; and what was read before may have changed.
        """
        with self.reading() as connection:
            self.database.begin(connection, alone=alone)
            try:
                yield connection
                self.database.commit(connection)
            except BaseException:
                with suppress(SQLAlchemyError):
                    connection.exec_driver_sql("ROLLBACK")
                raise

    def ask(self, statement: str | Executable, *values: object) -> Sequence[Any]:
        """What one statement finds."""
        with self.reading() as opened:
            return _run(opened, statement, values).all()

    def value(self, statement: str | Executable, *values: object) -> Any:  # noqa: ANN401 - any column
        """The one value that one statement finds; None when it finds nothing."""
        with self.reading() as opened:
            return _run(opened, statement, values).scalar_one_or_none()

    def rows(self, wanted: Select[_Row]) -> list[_Row]:
        """The rows of a table that one statement finds, free of the database."""
        with self.reading() as opened, Session(opened, autoflush=False) as session:
            return list(session.scalars(wanted))

    def counted(self, kind: type[T], statement: str, *values: object) -> list[T]:
        """What a counting statement finds; its columns are called as the fields, and texts become what these are."""
        with self.reading() as opened:
            return [msgspec.convert(row, kind) for row in _run(opened, statement, values).mappings()]

    def change(self, statement: str | Executable, *values: object) -> int:
        """Carry out one statement in a transaction of its own; in how many rows it changed something."""
        with self.writing() as opened:
            return _run(opened, statement, values).rowcount

    def next_number(self, connection: Connection, count: int = 1) -> int:
        """Give out so many numbers and return the last of them; the transaction makes them durable."""
        return int(connection.exec_driver_sql(sql.NEXT_NUMBERS, (count,)).scalar_one())

    def check_fence(self, connection: Connection, names: Collection[str] | None, *, lasting: bool = True) -> None:
        """With a call that only the owner of these connections (None: of all) makes: nobody has taken over (R9).

        With `lasting` nobody does, on a server, before the transaction has ended.

        Raises:
            LeaseHeld: Somebody has, or it never was theirs.
        """
        if self.fence is None or not self.database.lease_outlives_its_lock:
            return
        if self.shares is None:
            if lasting:
                connection.exec_driver_sql(sql.KEEP_LEASE, ("writer",))
            owns = connection.exec_driver_sql("SELECT max(fence) FROM leases").scalar_one() <= self.fence
        else:
            asked = json.dumps([f"{SHARED}{name}" for name in names or ()])
            shares = sql.SHARES + " /* FOR SHARE */" * lasting
            fences = {row[0]: row[1] for row in connection.exec_driver_sql(shares, (asked,))}
            owns = names is not None and all(self.shares.get(n, -1) == fences.get(f"{SHARED}{n}") for n in names)
        if not owns:
            raise LeaseHeld(
                "Another octo-sync process has taken over this project, because this one had lost its connection to the "
                "journal; nothing of this step was kept, and the other one carries on."
            )

    def _connect(self) -> Connection:
        if self._closed:
            raise JournalError(f"The journal {self.name} was closed.")
        if self._connection is not None and not self.database.usable(self._connection):
            self._disconnect()
        if self._connection is None:
            self._connection = self._engine.connect()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(SQLAlchemyError, sqlite3.Error):
                connection.close()

    # ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _version(self, connection: Connection) -> int:
        if not self.database.has_tables(connection):
            return 0
        return int(connection.exec_driver_sql("SELECT coalesce(max(version), 0) FROM schema_version").scalar_one())

    def schema_version(self) -> int:
        """The version of the schema in the database."""
        with self.reading() as connection:
            return self._version(connection)

    def _migrate(self) -> None:
        """Make the tables, or apply what is missing, each migration in one transaction; refuse what a newer program wrote."""
        newest = newest_schema()
        with self.reading() as connection:
            version = self._version(connection)
        if version > newest:
            raise JournalError(
                f"The journal {self.name} was written by a newer octo-sync (schema {version}, this program knows "
                f"{newest}); upgrade octo-sync."
            )
        steps = [step for step in MIGRATIONS if step[0] > version] if version else [(newest, None)]
        for number, statements in steps:
            with self.writing(alone=True) as connection:
                if self._version(connection) >= number:  # another process was faster
                    continue
                if statements is None:
                    self.database.make_room(connection)
                    metadata.create_all(connection, checkfirst=False)
                    self._first_numbers(connection)
                for statement in statements or ():
                    if isinstance(statement, str):
                        connection.exec_driver_sql(statement)
                    else:
                        metadata.tables[str(statement.__tablename__)].create(connection)
                connection.execute(insert(SchemaVersion).values(version=number, applied_at=self.clock.now()))

    def _first_numbers(self, connection: Connection) -> None:
        """Where a new journal starts to count: at the clock, not at 0.

        The warehouse remembers request numbers (R6) and fences (R9) and refuses smaller ones. A journal that was
        damaged, or deleted by hand, must therefore go on above all that its predecessor ever gave out: microseconds
        since 1970 are above it as long as it gave out less than a million numbers a second, seconds as long as it had
        less than one owner a second. `Journal.at_least` closes what remains.
        """
        now = self.clock.now()
        connection.exec_driver_sql("INSERT INTO counters VALUES ('seq', ?)", (int(now.timestamp() * 1_000_000),))
        connection.exec_driver_sql(sql.FIRST_LEASE, (int(now.timestamp()), to_text(now)))


def chosen(wanted: _Wanted, **values: object) -> _Wanted:
    """Of what is wanted, the rows that have these values; None stands for any."""
    return wanted.filter_by(**{name: value for name, value in values.items() if value is not None})


def _run(opened: Connection, statement: str | Executable, values: tuple[object, ...]) -> CursorResult[Any]:
    if isinstance(statement, str):
        return opened.exec_driver_sql(statement, values or None)
    return opened.execute(statement)


class Table:
    """One noun of the journal, which it may ask for its others."""

    def __init__(self, journal: "Journal") -> None:
        self._store = journal
