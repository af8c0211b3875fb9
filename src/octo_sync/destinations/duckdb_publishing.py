"""A DuckDB file for readers: copied in a subprocess, because its owner must not open it by other means, and swapped in.

What was copied is checked where it lies, before anybody else sees it, so that landings wait for the copying only.
"""

import contextlib
import glob
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from octo_sync.destinations.base import Rows, Scripted
from octo_sync.destinations.transactions import translated
from octo_sync.errors import WarehouseError

__all__ = ["DuckDBDraft", "copy_beside", "copy_into_place", "rows_of"]

_COPYING = """
import os, shutil, sys
source, target = sys.argv[1:]
with open(source, 'rb') as a, open(target, 'wb') as b:
    shutil.copyfileobj(a, b, 1 << 22)
    b.flush()
    os.fsync(b.fileno())
"""


def copy_into_place(source: Path, target: Path) -> int:
    """Copy a file for readers, who have the old one or the new one, never half of one; its size in bytes."""
    return _place(copy_beside(source, target), target)


def copy_beside(source: Path, target: Path) -> Path:
    """Copy a file beside the one whose place it will take, flushed; who gives it up removes it."""
    for left_over in target.parent.glob(f".{glob.escape(target.name)}.*"):
        left_over.unlink(missing_ok=True)  # of one that was killed; there is one writer, so nobody else's
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    fresh = Path(name)
    try:
        _copy(source, fresh, target.name)
        fresh.chmod(0o600)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return fresh


def _copy(source: Path, fresh: Path, name: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own interpreter and a constant program
        [sys.executable, "-I", "-S", "-c", _COPYING, str(source), str(fresh)], capture_output=True, check=False
    )
    if done.returncode or fresh.stat().st_size != source.stat().st_size:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise WarehouseError(f"{name} could not be published: {reason[-1] if reason else 'copy was cut'}.")


def _place(fresh: Path, target: Path) -> int:
    """Rename it over the target, for good; its size in bytes."""
    try:
        size = fresh.stat().st_size
        fresh.replace(target)
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        return size
    finally:
        fresh.unlink(missing_ok=True)


def rows_of(cursor: duckdb.DuckDBPyConnection, limit: int | None) -> Rows:
    """What was asked last, at most `limit` rows of it."""
    columns = tuple(d[0] for d in cursor.description or ())
    types = tuple(str(d[1]) for d in cursor.description or ())
    rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)
    cut = limit is not None and len(rows) > limit
    return Rows(columns, rows[:limit] if cut else rows, types, cut)


class DuckDBDraft:
    """Marts in the making, then the copy that holds them; see `Draft`.

    Args:
        warehouse: What they are made in.
        path: Its file, for what is said of errors.
        copied: Copies what is to be published beside its places (target, contacts), lets landings go on, and gives the copies
            with their places, and a connection to the first one.
    """

    def __init__(
        self,
        warehouse: Scripted,
        path: Path,
        copied: Callable[[Path, Path | None], tuple[list[tuple[Path, Path]], duckdb.DuckDBPyConnection]],
    ) -> None:
        self._warehouse, self._path, self._copied = warehouse, path, copied
        self._fresh: list[tuple[Path, Path]] = []
        self._copy: duckdb.DuckDBPyConnection | None = None
        self._is_ended = False

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction, before it is frozen."""
        self._warehouse.run_script(statements)

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement; on the copy, once there is one."""
        if self._copy is None:
            return self._warehouse.query(sql, parameters, limit=limit)
        if self._is_ended:
            raise WarehouseError(f"{self._path.name} is being closed, so nothing was published.")
        with translated(self._path):
            given = parameters if isinstance(parameters, Mapping) else list(parameters)
            return rows_of(self._copy.execute(sql, given), limit)

    def freeze(self, target: Path, *, contacts: Path | None = None) -> None:
        """Copy what is to be published beside its place; landings go on from here; see `Draft`."""
        self._fresh, self._copy = self._copied(target, contacts)

    def publish(self) -> int:
        """Put the copies in place; the size of the first."""
        self._let_go()
        with translated(self._path):
            sizes = [_place(fresh, place) for fresh, place in self._fresh]
        return sizes[0]

    def withdraw(self) -> None:
        """Nothing is to be done: nobody has seen it."""

    def interrupt(self) -> None:
        """End what it is asked, from another thread, because everything is to be closed."""
        self._is_ended, copy = True, self._copy
        if copy is not None:
            with contextlib.suppress(duckdb.Error):  # it may be let go of at this moment
                copy.interrupt()

    def close(self) -> None:
        """Remove what was not published."""
        self._let_go()
        for fresh, _ in self._fresh:
            fresh.unlink(missing_ok=True)

    def _let_go(self) -> None:
        if self._copy is not None:
            self._copy.close()
            self._copy = None
