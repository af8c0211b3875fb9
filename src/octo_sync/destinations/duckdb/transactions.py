"""Contexts around DuckDB: a transaction, a limit of time, and the place where its errors become ours."""

import atexit
import contextlib
import re
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

import duckdb

from octo_sync.errors import RowsRefused, WarehouseError, WarehouseLocked

_INSIST = 0.05
_TELLING = 5.0
_REFUSED = (
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.InvalidInputException,
    duckdb.ConstraintException,  # a part of a key that is missing
)


@contextlib.contextmanager
def transaction(db: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Everything in the block, or nothing."""
    db.execute("begin transaction")
    try:
        yield
        db.execute("commit")
    except BaseException:
        # A commit that failed, for want of space for example, leaves the transaction open.
        with contextlib.suppress(duckdb.Error):
            db.execute("rollback")
        raise


@dataclass(slots=True)
class Stopped:
    """Why a statement was interrupted: the time was up, or a signal came."""

    is_late: bool = False
    signals: "SimpleQueue[int]" = field(default_factory=SimpleQueue)

    def signal(self) -> int:
        """The signal that came. DuckDB may know of it before the thread that is told which one it is."""
        try:
            return self.signals.get(timeout=_TELLING)
        except Empty:
            return signal.SIGINT


@contextlib.contextmanager
def stopping_after(db: duckdb.DuckDBPyConnection, seconds: float | None) -> Iterator[Stopped]:
    """Interrupt whatever statement runs after so many seconds, and those that follow; DuckDB then raises.

    A signal interrupts it too, in the main thread: Python would handle it only when the statement has ended.
    """
    stopped, is_done = Stopped(), threading.Event()

    def interrupt() -> None:
        if not is_done.wait(seconds):
            stopped.is_late = True
            # Again and again: between two statements an interruption says nothing to the next one.
            while not is_done.wait(_INSIST):
                db.interrupt()

    watching = threading.Thread(target=interrupt, daemon=True) if seconds else None
    if watching:
        watching.start()
    if threading.current_thread() is threading.main_thread():
        _signals.listen()
        _signals.running[id(stopped)] = db, stopped
    try:
        yield stopped
    finally:
        _signals.running.pop(id(stopped), None)
        is_done.set()
        if watching:
            watching.join()


class _Signals:
    """Interrupts the statements that run in the main thread as soon as a signal comes to the process.

    One for the process, and for ever: streams end in any order, and not always in the thread that began them.
    """

    def __init__(self) -> None:
        self.running: dict[int, tuple[duckdb.DuckDBPyConnection, Stopped]] = {}
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._never = threading.Event()

    def listen(self) -> None:
        """Have Python tell of signals, unless a loop is told of them."""
        if self._ends is None:
            self._ends = socket.socketpair()
            self._ends[1].settimeout(0)
            hearing = threading.Thread(target=self._hear, args=[self._ends[0]], daemon=True, name="octo-sync signals")
            hearing.start()
            atexit.register(self._end, hearing)
        number = self._ends[1].fileno()
        before = signal.set_wakeup_fd(number, warn_on_full_buffer=False)
        if before not in (-1, number):
            with contextlib.suppress(OSError, ValueError):  # of a loop that is gone
                signal.set_wakeup_fd(before)

    def _end(self, hearing: threading.Thread) -> None:
        """A thread that outlives the interpreter holds DuckDB's types, which it would then report as leaked."""
        signal.set_wakeup_fd(-1)
        # A stream that nobody reads to its end is one of them; it must not be waited for.
        self.running.clear()
        if self._ends is not None:
            self._ends[1].close()
        hearing.join()

    def _hear(self, told: socket.socket) -> None:
        while heard := told.recv(1):
            found = dict(self.running)
            for _, stopped in found.values():
                stopped.signals.put(heard[0])
            while still := found.keys() & self.running.keys():
                for key in still:
                    found[key][0].interrupt()
                self._never.wait(_INSIST)


_signals = _Signals()


def _without_values(text: str) -> str:
    """The message up to the value it quotes: a value may be a person's."""
    return text.split('"', maxsplit=1)[0].split("'", maxsplit=1)[0].strip()[:200]


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """DuckDB's errors become ours once, here."""
    try:
        yield
    except duckdb.Error as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        lowered = text.lower()
        if "conflicting lock" in lowered or "could not set lock" in lowered:
            holder = re.search(r"PID (\d+)", text)
            raise WarehouseLocked(
                f"{path.name} is open in another process{f' (pid {holder[1]})' if holder else ''}; close it there. "
                f"Readers use the read copy."
            ) from error
        if "no space left" in lowered or "disk full" in lowered:
            raise WarehouseError(f"No space is left for {path}; free some and run again. Nothing was lost.") from error
        if "permission denied" in lowered or "read-only" in lowered or "cannot open file" in lowered:
            raise WarehouseError(f"{path} cannot be written: {text[:160]}") from error
        if isinstance(error, _REFUSED):
            raise RowsRefused(f"The warehouse {path.name} cannot hold a value: {_without_values(text)}") from error
        line = re.search(r"^LINE (\d+):", str(error), re.MULTILINE)
        where = f" (line {line[1]})" if line else ""
        raise WarehouseError(f"The warehouse {path.name} refused a statement: {text[:400]}{where}") from error
    except OSError as error:
        place = error.filename2 or error.filename or path.parent
        raise WarehouseError(f"{place} cannot be written: {error.strerror or error}.") from error
