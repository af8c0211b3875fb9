"""The warehouse's two sessions at its server: one that writes, and one that reads beside a landing.

Work that fails because the server was away, or somebody held a lock, is begun anew as a whole. Nothing is remembered in a
session, so that the next one is as good as the last.
"""

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from octo_sync.destinations.base import Fence
from octo_sync.destinations.postgres import Session
from octo_sync.destinations.postgres.rows import run_in
from octo_sync.destinations.postgres.session import STUCK_AFTER, Passing, at_once, connect, place, translated
from octo_sync.destinations.relations import sql
from octo_sync.destinations.warehouse import check_fence
from octo_sync.errors import WarehouseError

T = TypeVar("T")
_ROWS = "select from ops.writer where connection_id = any($1) order by connection_id"
"""In one order, so that no two wait for each other."""


class Sessions:
    """Both sessions of one database. Thread-safe: each runs one piece of work at a time.

    Args:
        address: `postgresql://…`
        lock_timeout: Seconds to wait for a lock that somebody else holds before beginning again.
        waits: Seconds between attempts when the server is away or a lock is held; afterwards it is given up.
        stuck_after: Seconds that a transaction may stand still before the server ends it.
    """

    def __init__(
        self, address: str, *, lock_timeout: float, waits: Sequence[float], stuck_after: float = STUCK_AFTER
    ) -> None:
        self.name = place(address)
        self.address, self.lock_timeout = address, lock_timeout
        self.lock = threading.RLock()
        """Held by whoever writes."""
        self._reader_lock = threading.RLock()
        self._waits = tuple(waits)
        self._connect = partial(connect, address, lock_timeout=lock_timeout, stuck_after=stuck_after, landing=True)
        self._closing = threading.Event()
        self._open: dict[bool, Session] = {}
        """By whether they only read."""

    def close(self) -> None:
        """Let go of both; whoever waits for the server waits no longer."""
        self._closing.set()
        for session in tuple(self._open.values()):
            with contextlib.suppress(Exception):
                session.close()

    def opened(self, *, read_only: bool) -> Session:
        """One of the sessions, made when it is not there.

        Raises:
            Passing: It cannot be made now.
            WarehouseError: It cannot be made at all, or these were closed.
        """
        if self._closing.is_set():
            raise WarehouseError(f"{self.name} was closed; open it again.")
        if read_only not in self._open or self._open[read_only].closed:
            self._open[read_only] = self._connect(read_only=read_only)
        return self._open[read_only]

    def persist(
        self, work: Callable[[Session], T], *, read_only: bool = False, waits: Sequence[float] | None = None
    ) -> T:
        """Do it, and again when the server was away or a lock was held; each time from its beginning.

        `waits` are other ones than usual.
        """
        for wait in (*(self._waits if waits is None else waits), None):
            try:
                session = self.opened(read_only=read_only)
                with translated(self.name):
                    return work(session)
            except Passing as passing:
                for session in tuple(self._open.values()):
                    if session.broken:
                        session.close()
                if wait is None or self._closing.wait(wait):
                    raise passing.error from passing.__cause__
        raise AssertionError

    def read(self, work: Callable[[Session], T]) -> T:
        """Statements that only read; what is committed, also while something lands."""
        with self._reader_lock:
            return self.persist(work, read_only=True)

    def write(self, work: Callable[[Session], T]) -> T:
        """One transaction, begun anew as a whole when it fails for a passing reason."""

        def whole(session: Session) -> T:
            with session.transaction():
                return work(session)

        with self.lock:
            return self.persist(whole)

    @contextlib.contextmanager
    def once(self) -> Iterator[Session]:
        """One transaction that is not begun anew, because what is done in it is given only once."""
        with self.lock:
            self.persist(lambda session: session.execute("select 1"))
            with at_once():
                session = self.opened(read_only=False)
                with translated(self.name), session.transaction():
                    yield session


def lock_out(session: Session, fence: Fence, name: str) -> int:
    """Keep other writers out until the transaction ends; the number of the last landing.

    The lock stands in nobody's way but writers'. `name` is what the database is called.

    Raises:
        WriterFenced: A writer with a newer token was here.
    """
    session.execute("lock table ops.writer in share row exclusive mode")
    return check_fence(run_in(session), fence, name) or 0


def take_turn(session: Session, fence: Fence, name: str) -> int:
    """Keep out, until the transaction ends, whoever lands rows of the same connections; the number of the last landing.

    Landings of other connections go on beside it, and `lock_out` waits for them all.

    Raises:
        WriterFenced: A writer with a newer token was here.
    """
    if isinstance(fence, int):
        return lock_out(session, fence, name)
    session.execute("lock table ops.writer in row exclusive mode")
    # A commit whose answer was lost may still be under way.
    _lock_rows(session, fence)
    return check_fence(run_in(session), fence, name) or 0


def take_over(session: Session, connections: Iterable[str]) -> None:
    """Keep out, until the transaction ends, whoever else takes these connections over or lands rows of them.

    Where rows of theirs are held, a landing that stands still in the middle of a COPY, as of a process that was stopped, is
    ended by this.
    """
    session.execute("lock table ops.writer in share update exclusive mode")
    named = [list(connections)]
    if session.execute(f"{_ROWS} for update skip locked", named).rowcount < session.execute(_ROWS, named).rowcount:
        session.execute(sql("end_still"))
    _lock_rows(session, connections)


def _lock_rows(session: Session, connections: Iterable[str]) -> None:
    session.execute(f"{_ROWS} for update", [list(connections)])
