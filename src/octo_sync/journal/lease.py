"""The one writer."""

import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from octo_sync.errors import LeaseHeld
from octo_sync.journal.faults import translated
from octo_sync.journal.journal import Journal
from octo_sync.journal.store import WriterLock
from octo_sync.model import Clock

__all__ = ["Lease"]


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

    def __init__(self, journal: Journal, lock: WriterLock, fence: int) -> None:
        self.fence = fence
        self._journal = journal
        self._lock = lock

    @classmethod
    def acquire(cls, journal: Journal, lock_path: Path, *, owner: str, clock: Clock) -> Self:
        """Take the lease at once or raise LeaseHeld, naming the owner. A journal on a server needs no file at `lock_path`.

        `owner` says what is being done, e.g. `octo-sync run sandbox`; process id and host are added. Runs that a
        killed owner left open are closed as `killed`.
        """
        with translated(journal.name):
            lock = journal.writer_lock(lock_path)
            taken = lock.acquire()
        if not taken:
            raise LeaseHeld(_holder(journal, clock))
        try:
            fence = journal.take_lease(owner=owner, pid=os.getpid(), host=socket.gethostname())
        except BaseException:
            lock.release()
            raise
        return cls(journal, lock, fence)

    def release(self) -> None:
        """Give the lease back. Twice is fine."""
        if not self._lock.is_locked:
            return
        try:
            self._journal.drop_lease(self.fence)
        finally:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _holder(journal: Journal, clock: Clock) -> str:
    row = journal.lease()
    if row is None or row.released_at is not None:  # between its lock and its name-plate
        return "Another octo-sync process has just begun to work on this project; wait until it has ended."
    minutes = int((clock.now() - row.acquired_at).total_seconds() // 60)
    return (
        f"Another octo-sync process works on this project: {row.owner} (pid {row.pid} on {row.host}, since "
        f"{row.acquired_at:%Y-%m-%d %H:%M:%S} UTC, {minutes} min); wait until it has ended, or end it."
    )
