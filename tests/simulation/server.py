"""The server that several workers share: sessions with their locks, and the warehouse. It goes on whoever dies.

A session ends with the process that opened it, and when nothing was said in it for as long as it asked for itself, as
PostgreSQL does with `idle_session_timeout`. It understands the few statements of `journal/postgres.py`, so that the program's
own lease, share and heartbeat run unchanged; rows are in the journal's file, which has the same tables.
"""

import re
import threading
from collections import defaultdict
from types import SimpleNamespace

import psycopg
from tests.simulation.loop import current

from octo_sync.app import project as app
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.journal import postgres, share
from octo_sync.journal.sqlite import SQLiteFile

__all__ = ["Server", "Warehouse", "install_sharing"]


class Server:
    """`warehouse` is open in it for as long as it runs."""

    def __init__(self, world, warehouse):
        self.world, self.warehouse, self._sessions = world, warehouse, []

    def connect(self):
        session = _Session(self, current())
        self._sessions.append(session)
        return session

    def open(self):
        """Its sessions, without those that have ended."""
        self._sessions = [session for session in self._sessions if not session.closed]
        return self._sessions

    def owner(self, connection):
        """The process whose session has the lock of a connection; None when it is free."""
        lock = postgres._NAMED, postgres._checksum(f"{share.SHARED}{connection}")
        return next((session.process for session in self.open() if lock in session.locks), None)

    def serves(self, process):
        """Whether a session of this process is open that has a lock."""
        return any(session.locks and session.process is process for session in self.open())


class _Session:
    def __init__(self, server, process):
        self._server, self.process, self.locks = server, process, []
        self._closed, self._patience, self._heard = False, None, server.world.loop.time()
        self.info = SimpleNamespace(get_parameters=dict)

    @property
    def closed(self):
        """Looked at only when somebody asks: nobody can tell when exactly it ended."""
        world = self._server.world
        if not self._closed and self._patience and world.loop.time() - self._heard >= self._patience:
            self.close()
            self._ended(world)
        return self._closed

    def _ended(self, world):
        one = self.process
        world.count("session of a worker that stood still ended")
        if one.alive and not one.frozen and one.went_on_at < self._heard:
            world.fail(f"{one.name} lost its session and its connections, though it was well")

    def close(self):
        self._closed, self.locks = True, []

    def execute(self, statement):
        if self.closed:
            raise psycopg.OperationalError("terminating connection due to idle-session timeout")
        self._heard = self._server.world.loop.time()
        text = statement.decode() if isinstance(statement, bytes) else statement
        answer = self._answer(text)
        return SimpleNamespace(fetchone=lambda: (answer,))

    def _answer(self, text):
        if text == "SELECT 1":
            return 1
        if "pg_locks" in text:
            lease = postgres._OURS, postgres._LEASE, "shared"
            return sum(lease in session.locks for session in self._server.open())
        name, arguments = re.fullmatch(r"(?:SELECT |SET )(\w+)(?: TO |\()([-\d, ]*)\)?", text).groups()
        key = tuple(int(one) for one in arguments.split(",") if one)
        match name:
            case "pg_try_advisory_lock" | "pg_try_advisory_lock_shared":
                return self._lock(key, is_shared=name.endswith("shared"))
            case "pg_advisory_unlock":
                self.locks.remove(key)
            case "pg_advisory_unlock_all":
                self.locks = []
            case "idle_session_timeout":
                self._patience = key[0] / 1000
            case _:
                raise AssertionError(text)
        return True

    def _lock(self, key, *, is_shared):
        alone, shared = key, (*key, "shared")
        for other in self._server.open():
            if other is not self and (alone in other.locks or (shared in other.locks and not is_shared)):
                return False
        self.locks.append(shared if is_shared else alone)
        return True


class Warehouse(DuckDBWarehouse):
    """One for all processes. At a server each has an object of its own, with the token that its logs are written with."""

    def __init__(self, *args, **more):
        self._tokens = defaultdict(int)
        super().__init__(*args, **more)

    @property
    def _fence(self):
        return self._tokens[current()]

    @_fence.setter
    def _fence(self, fence):
        self._tokens[current()] = fence


class _Later(BaseException):
    """A thread waits: it is begun anew after so many seconds, knowing that they are over."""

    def __init__(self, event, seconds):
        super().__init__()
        self.event, self.seconds = event, seconds


class _Event(threading.Event):
    is_over = False

    def wait(self, timeout=None):
        if not self.is_set() and not self.is_over:
            raise _Later(self, timeout)
        self.is_over = False
        return self.is_set()


class _Thread:
    """A thread that does nothing but wait and say something, in a loop: by the virtual clock, and still when its process is."""

    def __init__(self, *, target, args, daemon):
        assert daemon
        self._target, self._args, self._loop = target, args, current().world.loop

    def start(self):
        try:
            self._target(*self._args)
        except _Later as later:
            self._loop.call_later(later.seconds, self._go_on, later.event)

    def _go_on(self, event):
        event.is_over = True
        self.start()


def _server():
    program = current()
    return program and program.world.server


def install_sharing():
    """Let processes of a world with a server share it; for those of others nothing changes."""
    lock = SQLiteFile.writer_lock
    SQLiteFile.writer_lock = lambda self, path: postgres.SessionLease(_server()) if _server() else lock(self, path)
    postgres.threading = SimpleNamespace(Event=_Event, Thread=_Thread, Lock=threading.Lock)
    app.is_shared = lambda _: bool(_server())
    SQLiteFile.lease_outlives_its_lock = property(lambda _: bool(_server()))
