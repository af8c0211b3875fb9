"""Several workers of one project, each on connections of its own, where journal and warehouse are on a server."""

import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy import select, update

from octo_sync.errors import LeaseHeld
from octo_sync.journal import sql
from octo_sync.journal.faults import translated
from octo_sync.journal.lease import KILLED, Lease
from octo_sync.journal.models import LeaseRow, Run, columns, to_text
from octo_sync.journal.store import SHARED, WORKER

if TYPE_CHECKING:
    from octo_sync.journal.postgres import SessionLease
    from octo_sync.journal.root import Journal

_KEEPER = "keeper"


class Share(Lease):
    """The right to work on the project beside others: on the connections that were taken, and on nothing else.

    One of the workers **keeps**: it does what belongs to the copy as a whole. The locks are of the server and of one session,
    so that whoever dies leaves everything at once. Each connection has a **fence** of its own, higher than any before, for the
    worker that does not know that its session has ended.

    Every call raises LeaseHeld when the session has ended.
    """

    def __init__(self, journal: "Journal", lock: "SessionLease", owner: str) -> None:
        self._store, self._session, self._owner = journal, lock, owner
        # A worker that is told to stop ends while a thread of its own still takes.
        self._changing = threading.Lock()
        self.keeps = lock.hold(_KEEPER)
        # Of one who does not keep it tells its runs from others', and that it was given out wakes the others.
        super().__init__(journal.leases, lock, self._noted("writer") if self.keeps else self._numbered())
        lock.hold(_living(self.fence))
        journal.change(sql.WORKER, _living(self.fence), *self._plate)
        journal.fence, journal.shares = self.fence, {}
        self.close_killed()

    @property
    def owned(self) -> dict[str, int]:
        """The fence of each connection that is ours."""
        return self._store.shares or {}

    def take(self, connection: str) -> bool:
        """Own a connection from now on; False when another worker does."""
        with self._changing:
            if connection in self.owned:
                return True
            if self._store.shares is None or not self._session.hold(f"{SHARED}{connection}"):
                return False
            try:
                plate = columns(LeaseRow)
                left = plate.name == f"{SHARED}{connection}", plate.released_at.is_(None)
                was_left = bool(self._store.ask(select(plate.name).where(*left)))
                self._store.shares[connection] = self._noted(f"{SHARED}{connection}")
                if was_left:
                    self.close_killed()
            except BaseException:
                self._session.drop(f"{SHARED}{connection}")
                raise
            return True

    def give(self, connection: str) -> None:
        """Own it no longer. Nothing of it may be on its way."""
        with self._changing:
            if connection in self.owned:
                self._sign_off(connection, self.owned.pop(connection))
                self._session.drop(f"{SHARED}{connection}")

    def workers(self) -> int:
        """How many work on the project now, this one too."""
        return self._session.holders()

    def may_keep(self) -> bool:
        """Whether nobody does what belongs to the copy as a whole."""
        is_free = self._session.hold(_KEEPER)
        if is_free:
            self._session.drop(_KEEPER)
        return is_free

    def close_killed(self) -> None:
        """Workers that live no more are named no more, and their runs are over."""
        run, mine = columns(Run), _living(self.fence)
        running = self._store.ask(select(run.fence).where(run.status == "running").distinct())
        named = {_living(fence) for (fence,) in running} | {row.name for row in self._store.leases.workers()}
        for name in sorted(named - {mine}):
            if not self._session.hold(name):
                continue
            killed = {"status": "killed", "ended_at": self._store.clock.now(), "error": KILLED}
            theirs = run.fence == int(name.removeprefix(WORKER)), run.status == "running"
            self._store.change(update(Run).where(*theirs).values(**killed))
            self._store.change(sql.NO_WORKER, name)
            self._session.drop(name)

    def release(self) -> None:
        """Give everything back. Twice is fine."""
        with self._changing:
            owned, self._store.shares = self.owned, None
            try:
                for connection, fence in owned.items():
                    self._sign_off(connection, fence)
                self._store.change(sql.NO_WORKER, _living(self.fence))
            finally:
                super().release()
                if self._store.fence == self.fence:
                    self._store.fence = None

    def _sign_off(self, connection: str, fence: int) -> None:
        now, name = to_text(self._store.clock.now()), f"{SHARED}{connection}"
        self._store.change("UPDATE leases SET released_at = ? WHERE name = ? AND fence = ?", now, name, fence)

    def _numbered(self) -> int:
        with self._store.writing() as connection:
            return self._store.next_number(connection)

    @property
    def _plate(self) -> tuple[str, int, str, str]:
        return self._owner, os.getpid(), socket.gethostname(), to_text(self._store.clock.now())

    def _noted(self, name: str) -> int:
        """The next fence, with a name-plate."""
        given = name, *self._plate
        with self._store.writing(alone=name == "writer") as connection:
            for row in (name, "writer"):  # before the numbers are looked at: who waited sees those given out meanwhile
                connection.exec_driver_sql(sql.KEEP_LEASE, (row,))
            return int(connection.exec_driver_sql(sql.TAKE_SHARE, given).scalar_one())


def _living(fence: int) -> str:
    """What the lock of a worker is called that lives."""
    return f"{WORKER}{fence}"


def join(journal: "Journal", *, owner: str) -> Share:
    """Work on the project beside others. Its journal is on a server.

    Raises:
        LeaseHeld: A command has it for itself; the sentence names it.
    """
    lock = cast("SessionLease", journal.database.writer_lock(Path()))
    with translated(journal.name):
        taken = lock.acquire(shared=True)
    if not taken:
        raise LeaseHeld(journal.leases.holder())
    try:
        return Share(journal, lock, owner)
    except BaseException:
        lock.release()
        raise
