"""What differs between a journal in a file (`sqlite.py`) and one on a server (`postgres.py`)."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, Engine, Table

from octo_sync.model import Clock


class WriterLock(Protocol):
    """A lock that ends with its owner, however that dies."""

    @property
    def is_locked(self) -> bool:
        """Whether this object took it and has not given it back."""

    def acquire(self) -> bool:
        """Take it at once; False when another owner has it."""

    def release(self) -> None:
        """Give it back."""


class Database(Protocol):
    """What differs between a file and a server."""

    name: str
    """What sentences call it; without a password."""
    lease_outlives_its_lock: bool
    """Whether an owner can lose its lock and not know, so that the fence must be looked at."""

    def exists(self) -> bool:
        """Whether a journal was ever made there."""

    def prepare(self, clock: Clock, fill: Callable[[Path], None]) -> Path | None:
        """Make it ready to be opened; where a damaged predecessor is now, or None.

        `fill` makes the tables of the file it is given.
        """
        del clock, fill  # a server keeps its files, and an administrator made the database
        return None

    def engine(self) -> Engine:
        """What runs statements over connections that `connect` opens."""

    def connect(self) -> Any:  # noqa: ANN401 - the driver's own connection
        """Open it; what a transaction says is committed is durable."""

    def usable(self, connection: Connection) -> bool:
        """Whether nothing is known against a connection that was fine a while ago."""
        del connection
        return True

    def driver(self, connection: Connection) -> Any:  # noqa: ANN401 - the driver's own connection
        """What runs a statement of `queries.sql` with the least ceremony: `execute(text, values)`."""

    def together(self, connection: Connection) -> AbstractContextManager[Any]:
        """Statements of the block find nothing that anybody reads, so that a server can be sent them together."""
        del connection
        return nullcontext()

    def begin(self, connection: Connection, *, alone: bool) -> None:
        """Begin a transaction that keeps other writers out, of a file always, from its first word."""

    def commit(self, connection: Connection) -> None:
        """Make it durable, or raise."""

    def has_tables(self, connection: Connection) -> bool:
        """Whether any migration was ever applied."""

    def make_room(self, connection: Connection) -> None:
        """Whatever must be there before the first table."""
        del connection

    def number_on(self, connection: Connection, table: Table) -> None:
        """Rows were written with numbers of their own: the next one gets a higher one."""
        del connection, table  # a file does it by itself

    def leave_checkpoints(self, connection: Connection | None) -> None:
        """Somebody calls `checkpoint` from now on."""
        del connection

    def checkpoint(self, nobody_writes: AbstractContextManager[Any]) -> None:
        """Fold what was committed into the database."""
        del nobody_writes

    def compact(self, connection: Connection) -> bool:
        """Rewrite it without the bytes of what was deleted; whether nobody stood in the way."""

    def size(self, connection: Connection) -> int:
        """Bytes that it takes."""

    def writer_lock(self, path: Path) -> WriterLock:
        """The lock of the warehouse's one writer; `path` is for those that need a file."""

    def close(self) -> None:
        """Let go of what this object holds itself."""
        return
