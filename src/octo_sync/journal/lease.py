"""The one writer."""

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sqlalchemy import select, update

from octo_sync.errors import LeaseHeld
from octo_sync.journal.database import WriterLock
from octo_sync.journal.faults import translated
from octo_sync.journal.models import LeaseRow, Run, columns, loaded
from octo_sync.journal.store import Store
from octo_sync.model import Clock

if TYPE_CHECKING:
    from octo_sync.journal.root import Journal

__all__ = ["Lease", "Leases"]

_KILLED = "The process ended without closing the run (killed, or the machine stopped); what it owed is still marked."


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

    def __init__(self, journal: "Journal", lock: WriterLock, fence: int) -> None:
        self.fence = fence
        self._journal = journal
        self._lock = lock

    @classmethod
    def acquire(cls, journal: "Journal", lock_path: Path, *, owner: str, clock: Clock) -> Self:
        """Take the lease at once or raise LeaseHeld, naming the owner. A journal on a server needs no file at `lock_path`.

        `owner` says what is being done, e.g. `octo-sync run sandbox`; process id and host are added. Runs that a
        killed owner left open are closed as `killed`.
        """
        with translated(journal.name):
            lock = journal.leases.lock(lock_path)
            taken = lock.acquire()
        if not taken:
            raise LeaseHeld(_holder(journal, clock))
        try:
            fence = journal.leases.take(owner=owner, pid=os.getpid(), host=socket.gethostname())
        except BaseException:
            lock.release()
            raise
        return cls(journal, lock, fence)

    def release(self) -> None:
        """Give the lease back. Twice is fine."""
        if not self._lock.is_locked:
            return
        try:
            self._journal.leases.drop(self.fence)
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _holder(journal: "Journal", clock: Clock) -> str:
    row = journal.leases.last()
    if row is None or row.released_at is not None:  # between its lock and its name-plate
        return "Another octo-sync process has just begun to work on this project; wait until it has ended."
    minutes = int((clock.now() - row.acquired_at).total_seconds() // 60)
    return (
        f"Another octo-sync process works on this project: {row.owner} (pid {row.pid} on {row.host}, since "
        f"{row.acquired_at:%Y-%m-%d %H:%M:%S} UTC, {minutes} min); wait until it has ended, or end it."
    )


class Leases:
    """The table `leases`: who writes, or wrote last."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self, name: str = "writer") -> LeaseRow | None:
        """Who holds the lease, or held it last; None before the first."""
        lease = columns(LeaseRow)
        with self._store.reading() as connection:
            return next(iter(loaded(connection, select(LeaseRow).where(lease.name == name, lease.pid > 0))), None)

    def take(self, *, owner: str, pid: int, host: str) -> int:
        """For `Lease.acquire`, which holds the lock: the next fence; runs left open by a killed process are closed."""
        lease, run = columns(LeaseRow), columns(Run)
        now = self._store.clock.now()
        with self._store.writing() as connection:
            fence = connection.execute(
                update(LeaseRow)
                .where(lease.name == "writer")
                .values(fence=lease.fence + 1, owner=owner, pid=pid, host=host, acquired_at=now, released_at=None)
                .returning(lease.fence)
            ).scalar_one()
            connection.execute(
                update(Run).where(run.status == "running").values(status="killed", ended_at=now, error=_KILLED)
            )
        self._store.fence = int(fence)
        return self._store.fence

    def lock(self, path: Path) -> WriterLock:
        """For `Lease.acquire`: the lock of the warehouse's one writer. A journal on a server needs no file at `path`."""
        return self._store.database.writer_lock(path)

    def drop(self, fence: int) -> None:
        """For `Lease.release`: note the end, unless there is a newer owner."""
        lease = columns(LeaseRow)
        with self._store.writing() as connection:
            connection.execute(
                update(LeaseRow)
                .where(lease.name == "writer", lease.fence == fence)
                .values(released_at=self._store.clock.now())
            )
        if self._store.fence == fence:
            self._store.fence = None
