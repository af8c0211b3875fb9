"""The one writer."""

import os
import socket
from pathlib import Path
from typing import Self

from sqlalchemy import select

from octo_sync.errors import LeaseHeld
from octo_sync.journal import sql
from octo_sync.journal.database import WriterLock
from octo_sync.journal.faults import translated
from octo_sync.journal.models import LeaseRow, columns, to_text
from octo_sync.journal.store import SHARED, WORKER, Table

KILLED = "The process ended without closing the run (killed, or the machine stopped); what it owed is still marked."


class Lease:
    """The right to write the warehouse: a lock of the operating system, and a number.

    The **lock** keeps a second process out: `flock` on a file, or for a journal on PostgreSQL an advisory lock of a session
    of its own. The kernel or the server drops it with its owner, however it dies, so a restart after `kill -9` needs no
    human and no time-out. A row with a time-out could do neither: too short and a slow owner is robbed, too long and nobody
    works after a kill.

    The **fence** is for the owner who does not know that it is one no more: a process stopped for a minute (SIGSTOP, a
    suspended laptop, a migrated virtual machine) whose lock file was deleted, whose network file system dropped the
    lock, or whose session with the server ended. Each owner gets a number one higher than the one before. The warehouse
    keeps the highest it has seen and checks it inside every landing transaction, so a zombie's landing is rolled back (R9);
    a journal on a server checks it too, when the owner says what has landed or failed.
    """

    def __init__(self, leases: "Leases", lock: WriterLock, fence: int) -> None:
        self.fence = fence
        self._leases = leases
        self._lock = lock

    def release(self) -> None:
        """Give the lease back. Twice is fine."""
        if not self._lock.is_locked:
            return
        try:
            self._leases.drop(self.fence)
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class Leases(Table):
    """The table `leases`: who writes, or wrote last."""

    def acquire(self, lock_path: Path, *, owner: str) -> Lease:
        """Take the lease at once or raise LeaseHeld, naming the owner. A journal on a server needs no file at `lock_path`.

        `owner` says what is being done, e.g. `octo-sync run sandbox`; process id and host are added. Runs that a
        killed owner left open are closed as `killed`.
        """
        with translated(self._store.name):
            lock = self._store.database.writer_lock(lock_path)
            taken = lock.acquire()
        if not taken:
            raise LeaseHeld(self.holder())
        try:
            return Lease(self, lock, self.take(owner=owner, pid=os.getpid(), host=socket.gethostname()))
        except BaseException:
            lock.release()
            raise

    def owners(self) -> dict[str, LeaseRow]:
        """Who owns which connection, where several workers share the project; who was killed is still named."""
        row = columns(LeaseRow)
        held = self._store.rows(select(LeaseRow).where(row.name.like(f"{SHARED}%"), row.released_at.is_(None)))
        return {each.name.removeprefix(SHARED): each for each in held}

    def workers(self) -> list[LeaseRow]:
        """All workers, where several share the project; who was killed is still named."""
        row = columns(LeaseRow)
        return self._store.rows(select(LeaseRow).where(row.name.like(f"{WORKER}%")).order_by(row.acquired_at, row.name))

    def last(self) -> LeaseRow | None:
        """Who holds the lease, or held it last; None before the first."""
        row = columns(LeaseRow)
        return next(iter(self._store.rows(select(LeaseRow).where(row.pid > 0, row.name == "writer"))), None)

    def holder(self) -> str:
        """Who works on the project, as a sentence."""
        row = self.last()
        if row is None or row.released_at is not None:  # between its lock and its name-plate
            return "Another octo-sync process has just begun to work on this project; wait until it has ended."
        minutes = int((self._store.clock.now() - row.acquired_at).total_seconds() // 60)
        return (
            f"Another octo-sync process works on this project: {row.owner} (pid {row.pid} on {row.host}, since "
            f"{row.acquired_at:%Y-%m-%d %H:%M:%S} UTC, {minutes} min); wait until it has ended, or end it."
        )

    def take(self, *, owner: str, pid: int, host: str) -> int:
        """For `acquire`, which holds the lock: the next fence; runs left open by a killed process are closed."""
        now = to_text(self._store.clock.now())
        with self._store.writing(alone=True) as connection:
            fence = connection.exec_driver_sql(sql.TAKE_LEASE, (owner, pid, host, now)).scalar_one()
            # Whoever owned one connection, and does not know that it is over, is refused.
            connection.exec_driver_sql("DELETE FROM leases WHERE name <> 'writer'")
            connection.exec_driver_sql(sql.CLOSE_KILLED, (now, KILLED))
        self._store.fence = int(fence)
        return self._store.fence

    def drop(self, fence: int) -> None:
        """For `Lease.release`: note the end, unless there is a newer owner."""
        ended = to_text(self._store.clock.now())
        self._store.change("UPDATE leases SET released_at = ? WHERE name = 'writer' AND fence = ?", ended, fence)
        if self._store.fence == fence:
            self._store.fence = None
