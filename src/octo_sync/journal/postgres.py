"""The journal in a PostgreSQL database, in the schema `journal`: for several machines, or where the warehouse is too.

What SQLite gives for nothing is asked for: every session commits durably, who gives out numbers waits for those before it (so
that numbers are committed in their order), and the lease is a lock of a session that exists for nothing else.
"""

import select
import threading
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.string import StrDumperUnknown
from sqlalchemy import Connection, Engine, Table, create_engine, event, func
from sqlalchemy import select as selected
from sqlalchemy.pool import NullPool

from octo_sync.errors import JournalError, LeaseHeld
from octo_sync.journal import translation
from octo_sync.journal.database import Database
from octo_sync.journal.faults import BUSY_TIMEOUT_MS
from octo_sync.journal.models import metadata
from octo_sync.statements import statements

_Session = psycopg.Connection[Any]
_OLDEST = 14
_OURS = 0x4F43_544A
"""`OCTJ`: the first half of the journal's advisory locks, so that other programs' locks of the database are not ours."""
_NAMED = _OURS + 1
"""The first half of the locks that have a name; the second is its checksum. Two names that share one wait for each other."""
_WRITERS, _LEASE = 1, 2
_STILL = 25000
"""Milliseconds after which a worker that stands still is taken for gone, where the address does not say it."""
_PATIENCE: dict[str, Any] = {
    "connect_timeout": 5,
    # A machine that vanished without a word is noticed within half a minute, on both sides.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": _STILL,
    "application_name": "octo-sync journal",
}
_SQL = statements(Path(__file__).with_name("postgres.sql"))
_DURABLE = ("on", "remote_apply")
_TABLES = ("deliveries", "subjects", "quarantined_records", "runs", "settings", "differences", "acceptances", "acts")
"""Those that hold what may have to be forgotten."""


class PostgresServer(Database):
    """The journal on a server. `url` is what libpq understands: `postgresql://user@host:port/database?sslmode=verify-full`."""

    lease_outlives_its_lock = True
    """A session ends with the server or the network, and its owner goes on: so the fence is looked at, too."""

    def __init__(self, url: str) -> None:
        self.place = url
        parts = urlsplit(url)
        # What is after the question mark may be a password.
        self.name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    # ── the database ──────────────────────────────────────────────────────────────────────────────────────────────

    def exists(self) -> bool:
        """Whether a journal was ever made there."""
        with closing(self.connect()) as driver:
            found = driver.execute(_SQL["has_tables"].encode()).fetchone()
            return bool(found and found[0])

    def engine(self) -> Engine:
        """What runs statements over the connections that `connect` opens; SQLite's spelling is translated on the way."""
        engine = create_engine(
            "postgresql+psycopg://",
            creator=self.connect,
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            use_native_hstore=False,
        )
        event.listen(engine, "before_cursor_execute", _translated, retval=True)
        # Said only here: an option of an engine makes SQLAlchemy load it, and most journals are files.
        for table in metadata.tables.values():
            for index in table.indexes:
                index.dialect_options["postgresql"]["where"] = index.dialect_options["sqlite"]["where"]
        return engine

    def connect(self) -> _Session:
        """A session whose commits are durable when they are answered."""
        try:
            asked = conninfo_to_dict(self.place)
        except psycopg.Error:
            # Its own words repeat the address, and with it what may be a password.
            raise JournalError(
                f"The journal's address {self.name} is not one that PostgreSQL understands; "
                "expected postgresql://user@host:port/database."
            ) from None
        address = make_conninfo(**({**_PATIENCE, **asked} | {"client_encoding": "utf8"}))
        driver: _Session = psycopg.connect(address, autocommit=True)
        try:
            commit = _setting(driver, "synchronous_commit")
            durably = commit if commit in _DURABLE else "on"
            driver.execute(_SQL["session"].format(commit=durably, patience=BUSY_TIMEOUT_MS).encode())
            self._check(driver)
            driver.adapters.register_dumper(str, _Words)
        except BaseException:
            driver.close()
            raise
        return driver

    def _check(self, driver: _Session) -> None:
        version = driver.info.server_version // 10000
        if version < _OLDEST:
            raise JournalError(
                f"The journal {self.name} is on PostgreSQL {version}; octo-sync needs {_OLDEST} or newer. Upgrade the server."
            )
        encoding = driver.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise JournalError(
                f"The journal {self.name} is a database in {encoding}; octo-sync needs one in UTF8. "
                "Create the database with ENCODING 'UTF8'."
            )
        if _setting(driver, "synchronous_commit") not in _DURABLE:
            raise JournalError(
                f"The journal {self.name} cannot be used: its sessions do not commit durably (synchronous_commit is off "
                "and stays so, perhaps because of a connection pool in between). Connect to the server itself."
            )

    def usable(self, connection: Connection) -> bool:
        """Whether the server has not hung up since the last call; so a restart in between costs nobody an error."""
        driver: _Session = _driver(connection)
        if driver.closed:
            return False
        if driver.info.transaction_status != 0:  # in use by an outer block
            return True
        try:  # a server that was asked nothing and yet says something says goodbye
            return not select.select([driver.fileno()], [], [], 0)[0]
        except (OSError, ValueError):
            return False

    def driver(self, connection: Connection) -> "_Spelled":
        """The driver's own connection: SQLAlchemy's share of a statement is as much as a small one takes."""
        return _Spelled(_driver(connection))

    # ── transactions ──────────────────────────────────────────────────────────────────────────────────────────────

    def together(self, connection: Connection) -> AbstractContextManager[Any]:
        """As a pipeline: whoever needs a number waits for this one, and so for each of its ways to the server and back."""
        pipeline: AbstractContextManager[Any] = _driver(connection).pipeline()
        return pipeline

    def begin(self, connection: Connection, *, alone: bool) -> None:
        """Beside others that are not alone. Who gives out numbers waits for the counter's row."""
        lock = "pg_advisory_xact_lock" if alone else "pg_advisory_xact_lock_shared"
        _driver(connection).execute(f"BEGIN; SELECT {lock}({_OURS}, {_WRITERS})")

    def commit(self, connection: Connection) -> None:
        """Make it durable. An answer that does not come counts as a failure: the caller may do everything again."""
        answer = _driver(connection).execute("COMMIT").statusmessage
        if answer != "COMMIT":  # PostgreSQL answers the commit of a failed transaction without an error
            raise JournalError(f"The journal {self.name} did not keep a transaction; nothing was changed.")

    # ── schema ────────────────────────────────────────────────────────────────────────────────────────────────────

    def has_tables(self, connection: Connection) -> bool:
        """Whether any migration was ever applied."""
        return bool(connection.exec_driver_sql(_SQL["has_tables"]).scalar_one())

    def make_room(self, connection: Connection) -> None:
        """The schema, unless an administrator has made it for a user who may not."""
        there = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = 'journal')"
        if not connection.exec_driver_sql(there).scalar_one():
            connection.exec_driver_sql("CREATE SCHEMA journal")

    def number_on(self, connection: Connection, table: Table) -> None:
        """Rows were written with numbers of their own: the next one gets a higher one."""
        if "id" in table.columns:
            counter = func.pg_get_serial_sequence(f"journal.{table.name}", "id")
            connection.execute(selected(func.setval(counter, func.coalesce(func.max(table.c.id), 0) + 1, False)))  # noqa: FBT003 - SQL's argument

    def compact(self, connection: Connection) -> bool:
        """Rewrite the tables without what was deleted. The server's own log and its backups are out of reach.

        What the planner sampled of the values goes too; a role that does not own the database is warned, and passed over.
        """
        for table in _TABLES:
            connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {table}")
        connection.exec_driver_sql("VACUUM (FULL) pg_catalog.pg_statistic")
        return True

    def size(self, connection: Connection) -> int:
        """Bytes of the tables and their indexes."""
        return int(connection.exec_driver_sql(_SQL["size"]).scalar_one())

    # ── the one writer ────────────────────────────────────────────────────────────────────────────────────────────

    def writer_lock(self, _path: Path) -> "SessionLease":
        """The lock of the warehouse's one writer; it needs no file."""
        return SessionLease(self)


class SessionLease:
    """An advisory lock of a session of its own. The server drops it when the session ends, however it does."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._session: _Session | None = None
        self._lock = threading.Lock()
        self._released = threading.Event()

    @property
    def is_locked(self) -> bool:
        """Whether this object took it and has not given it back; the server may have dropped it since."""
        return self._session is not None

    def acquire(self, *, shared: bool = False) -> bool:
        """Take it at once, alone or with others; False when another session has it otherwise.

        Of a process that shares it and stands still (SIGSTOP, a suspended machine) the server ends the session after the
        address's `tcp_user_timeout`, so that others take over its connections.
        """
        with self._lock:
            session = self._server.connect()
            try:
                kind = "_shared" if shared else ""
                row = session.execute(f"SELECT pg_try_advisory_lock{kind}({_OURS}, {_LEASE})").fetchone()
                self._session = session if row and row[0] else None
            finally:
                if self._session is not session:
                    session.close()
            if self._session is not None and shared:
                patience = session.info.get_parameters().get("tcp_user_timeout")
                milliseconds = int(patience or 0) or _STILL
                session.execute(f"SET idle_session_timeout TO {milliseconds}")
                threading.Thread(target=self._stay, args=(milliseconds / 5000,), daemon=True).start()
            return self._session is not None

    def _stay(self, every: float) -> None:
        """Say now and then that we are there, until the session ends."""
        with suppress(LeaseHeld):
            while not self._released.wait(every):
                self.ask("SELECT 1")

    def ask(self, statement: str) -> Any:  # noqa: ANN401 - any value
        """The one value that a statement finds, in this session.

        Raises:
            LeaseHeld: The session has ended, and the locks with it.
        """
        with self._lock:
            if self._session is not None:
                with suppress(psycopg.Error):
                    row = self._session.execute(statement.encode()).fetchone()
                    return row and row[0]
        raise LeaseHeld("The connection to the journal has ended, and another worker may have taken over meanwhile.")

    def hold(self, name: str) -> bool:
        """Take a lock with a name at once; False when another session has it. It goes with the session."""
        return bool(self.ask(f"SELECT pg_try_advisory_lock({_NAMED}, {_checksum(name)})"))

    def drop(self, name: str) -> None:
        """Give such a lock back."""
        self.ask(f"SELECT pg_advisory_unlock({_NAMED}, {_checksum(name)})")

    def holders(self) -> int:
        """How many sessions share it."""
        return int(self.ask(_SQL["holders"].format(ours=_OURS, lease=_LEASE)))

    def release(self) -> None:
        """Give it back, and all that have a name."""
        self._released.set()
        with self._lock:
            session, self._session = self._session, None
            if session is not None:
                with suppress(psycopg.Error):
                    # Ending the session would do, a moment later: the next owner need not wait for that.
                    session.execute("SELECT pg_advisory_unlock_all()")
                session.close()


def _driver(connection: Connection) -> Any:  # noqa: ANN401 - the driver's own connection
    return connection.connection.driver_connection


def _checksum(name: str) -> int:
    """A name as a number of 32 bits with a sign."""
    number = zlib.crc32(name.encode())
    return number - (1 << 32) if number >> 31 else number


class _Spelled:
    """A psycopg connection that takes SQLite's spelling."""

    def __init__(self, driver: Any) -> None:  # noqa: ANN401 - the driver's own connection
        self._driver = driver

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - the driver's own cursor
        """Run one statement; the plan is kept by the server from its second time on."""
        return self._driver.execute(translation.statement(statement), translation.named(values), prepare=True)


def _translated(
    _connection: Any,  # noqa: ANN401 - SQLAlchemy's signature
    _cursor: Any,  # noqa: ANN401
    statement: str,
    parameters: Any,  # noqa: ANN401
    _context: Any,  # noqa: ANN401
    executemany: bool,  # noqa: FBT001 - SQLAlchemy's signature
) -> tuple[str, Any]:
    """A statement of ours has its values in a row; what SQLAlchemy composed has them by name and is right already."""
    rows = parameters if executemany else [parameters]
    if not rows or isinstance(rows[0], dict):
        return statement, parameters
    named = [translation.named(values) for values in rows]
    return translation.statement(statement), named if executemany else named[0]


def _setting(driver: _Session, name: str) -> str:
    row = driver.execute(f"SHOW {name}".encode()).fetchone()
    return str(row[0]) if row else ""


class _Words(StrDumperUnknown):
    """How texts travel: PostgreSQL cannot store the character 0, which an error message may hold."""

    def dump(self, obj: str) -> Any:  # noqa: ANN401 - the driver's buffer
        return super().dump(obj.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in obj else obj)
