"""One session at a PostgreSQL server: connecting, and the place where the driver's errors become ours.

No error repeats a password or a value of a row: of an address only the database and its host are shown, and of a refused value
only what kind of refusal it was.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from octo_sync.destinations.postgres import Session
from octo_sync.destinations.postgres.landed import LandingCursor
from octo_sync.destinations.relations import sql
from octo_sync.errors import RowsRefused, WarehouseError, WarehouseLocked

_SESSION = {
    "application_name": "octo-sync",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    # What was sent and is not confirmed is not kept alive by the three above.
    "tcp_user_timeout": "60000",
}
STUCK_AFTER = 600.0
"""Seconds that a transaction may stand still before the server ends it."""
_DURABLE = ("on", "remote_apply")
_PASSING = frozenset(
    {
        "40001",  # serialization failure
        "40P01",  # deadlock
        "55P03",  # a lock was not to be had within lock_timeout
        "57P01",  # the server shuts down, or an administrator ended the session
        "57P02",  # it crashed
        "57P03",  # it starts
        "53300",  # too many connections
        "25P03",  # idle in a transaction for longer than the server allows
        "25P04",  # a transaction longer than the server allows
    }
)
# A session that is not made has no code, only words; whose server speaks another language is tried again in vain.
_REFUSED = ("password", "pg_hba.conf", "does not exist", "not permitted to log in", "permission denied", "certificate")
_LOCKED = "55P03"
_READ_ONLY = "25006"
_NO_SPACE = "53100"


class Passing(Exception):  # noqa: N818 - it reads as what happened, and never leaves this folder
    """Something that may be over when it is tried again; `error` is what to raise when it is not."""

    def __init__(self, error: WarehouseError) -> None:
        super().__init__(str(error))
        self.error = error


def parts_of(address: str) -> dict[str, str]:
    """What an address says, by libpq's names: `host`, `port`, `user`, `dbname`, `sslmode`, ….

    Raises:
        WarehouseError: It is none.
    """
    try:
        return {name: str(value) for name, value in psycopg.conninfo.conninfo_to_dict(address).items()}
    except psycopg.Error:
        raise WarehouseError(
            "The PostgreSQL address cannot be read; expected for example postgresql://octo@db.example/octo."
        ) from None


def place(address: str) -> str:
    """What a database is called in sentences: `octo at db.example`, never with a user or a password."""
    parts = parts_of(address)
    return f"{parts.get('dbname') or parts.get('user') or 'the database'} at {parts.get('host') or 'the local server'}"


def connect(
    address: str,
    *,
    lock_timeout: float,
    stuck_after: float = STUCK_AFTER,
    read_only: bool = False,
    landing: bool = False,
) -> Session:
    """Open a session in UTC; `lock_timeout` and `stuck_after` in seconds. A reading one commits each statement by itself.

    With `landing` its statements are about what has landed, without it about what was published.

    Raises:
        Passing: It cannot be reached now.
        WarehouseError: It refuses us, or the address is wrong.
    """
    name = place(address)
    given = parts_of(address)
    settings = {key: value for key, value in _SESSION.items() if key not in given}
    with translated(name):
        # Prepared statements would be planned for lists of any length; and a pooler may stand between.
        session: Session = psycopg.connect(
            psycopg.conninfo.make_conninfo(address, **settings, client_encoding="utf8"),
            prepare_threshold=None,
            autocommit=True,
            cursor_factory=LandingCursor if landing else psycopg.RawCursor,
        )
        times = {"lock_timeout": int(lock_timeout * 1000), "stuck_after": int(stuck_after * 1000)}
        session.execute(sql("session", **times))
        if read_only:
            session.execute("set default_transaction_read_only = on")
        _check(session, name)
    return session


def _check(session: Session, name: str) -> None:
    """Text must stay as it is, and what is committed must be on the disk before the journal hears of it."""
    asked = "select current_setting('server_encoding'), current_setting('synchronous_commit')"
    encoding, commit = session.execute(asked).fetchone() or ("", "")
    if encoding != "UTF8":
        session.close()
        raise WarehouseError(f"{name} is encoded in {encoding}; expected a database made with encoding 'UTF8'.")
    if commit not in _DURABLE:
        session.execute("set synchronous_commit = on")


@contextlib.contextmanager
def at_once() -> Iterator[None]:
    """Nothing in the block is tried again: what may pass is an error all the same."""
    try:
        yield
    except Passing as passing:
        raise passing.error from passing.__cause__


@contextlib.contextmanager
def asking(address: str, *, lock_timeout: float = 1.0) -> Iterator[Session]:
    """A session that only reads, for the block.

    Raises:
        WarehouseError: It cannot be reached, or refuses us.
    """
    with (
        at_once(),
        contextlib.closing(connect(address, lock_timeout=lock_timeout, read_only=True)) as session,
        translated(place(address)),
    ):
        yield session


def examine(address: str) -> tuple[str, bool]:
    """The server's version, and whether we may make schemas in the database, as publishing does.

    Raises:
        WarehouseError: It cannot be reached, or refuses us.
    """
    with asking(address) as session:
        asked = "select current_setting('server_version'), has_database_privilege(current_database(), 'create')"
        version, may_create = session.execute(asked).fetchone() or ("unknown", False)
    return str(version), bool(may_create)


def value_of(session: Session, statement: str, parameters: Sequence[Any] | None = None) -> Any:  # noqa: ANN401
    """The first value of what a statement selects."""
    row = session.execute(statement.encode(), parameters).fetchone()
    return row[0] if row else None


def has_marts(session: Session) -> bool:
    """Whether anything was published; every role may ask."""
    return bool(value_of(session, "select exists (select from pg_class where relnamespace = to_regnamespace('marts'))"))


def is_published(address: str) -> bool:
    """Whether anything was published in a database.

    Raises:
        WarehouseError: It cannot be reached, or refuses us.
    """
    with asking(address) as session:
        return has_marts(session)


def bytes_of(session: Session, schemas: Sequence[str]) -> int:
    """Bytes of the tables in these schemas, with their indexes."""
    return int(value_of(session, sql("postgres_bytes"), [list(schemas)]))


def size_of(address: str) -> int:
    """Bytes of our schemas' tables with their indexes.

    Raises:
        WarehouseError: It cannot be reached, or refuses us.
    """
    with asking(address) as session:
        return bytes_of(session, ("core", "landing", "marts", "ops", "private", "raw"))


@contextlib.contextmanager
def translated(name: str) -> Iterator[None]:
    """The driver's errors become ours once, here; those that may pass come as `Passing`."""
    try:
        yield
    except psycopg.Error as error:
        raise _ours(error, name) from error
    except OSError as error:
        raise WarehouseError(f"The working storage of {name} cannot be written: {error.strerror or error}.") from error


def _ours(error: psycopg.Error, name: str) -> Exception:  # noqa: PLR0911 - one sentence for each kind
    state = error.sqlstate or ""
    said = " ".join((error.diag.message_primary or str(error)).split())[:400]
    if state == _LOCKED:
        return Passing(
            WarehouseLocked(
                f"Another session holds a lock on a table of {name}; nothing was kept. "
                f"docs/postgresql.md says how to find it."
            )
        )
    if not state and any(word in said for word in _REFUSED):
        return WarehouseError(
            f"{name} refuses us: {_user_left_out(said)} The password comes from PGPASSWORD or a password file."
        )
    if state in _PASSING or state.startswith("08") or (isinstance(error, psycopg.OperationalError) and not state):
        return Passing(WarehouseError(f"{name} cannot be reached or ended the session: {_first_line(said)}"))
    if state == _READ_ONLY:
        return WarehouseError(
            f"{name} can only be read now (a standby, or default_transaction_read_only); nothing was kept. "
            f"Point `destination` at the server that takes writes."
        )
    if state == _NO_SPACE:
        return WarehouseError(f"No space is left at {name}; free some and run again. Nothing was lost.")
    if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
        where = ".".join(part for part in (error.diag.table_name, error.diag.column_name) if part)
        kind = type(error).__name__
        return RowsRefused(f"{name} cannot hold a value{f' of {where}' if where else ''}: {kind} ({state}).")
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return WarehouseError(f"{name} does not allow it: {said}. docs/postgresql.md lists the rights that are needed.")
    line = f" (at character {error.diag.statement_position})" if error.diag.statement_position else ""
    return WarehouseError(f"{name} refused a statement: {said}{line}")


def _user_left_out(text: str) -> str:
    """What comes after the address, without the name of the role."""
    said = re.sub(r'((?:user|role) )"[^"]*"', r"\1", text.rpartition("FATAL:")[2])
    return f"{' '.join(said.split())[:300].rstrip('.')}."


def _first_line(text: str) -> str:
    return text.split(" Is the server", maxsplit=1)[0][:300]
