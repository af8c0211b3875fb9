"""A DuckDB file for readers: copied in a subprocess, because its owner must not open it by other means, and swapped in.

Marts are made and checked in the copy, before anybody else sees it, so that landings wait for the copying only.
"""

import contextlib
import glob
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import duckdb

from octo_sync.destinations.base import Draft, Rows
from octo_sync.destinations.ddl import quoted
from octo_sync.destinations.duckdb.files import database
from octo_sync.destinations.duckdb.transactions import transaction, translated
from octo_sync.disk import rename
from octo_sync.errors import WarehouseError

_COPY = "warehouse"
"""The copy's name in SQL while marts are made, which is that of the file it is a copy of."""
_Noted = Literal["definition", "checked"]
"""What is said of the marts beside them, for the next publish."""
_COPYING = """
import os, shutil, sys
source, target = sys.argv[1:]
with open(source, 'rb') as a, open(target, 'wb') as b:
    shutil.copyfileobj(a, b, 1 << 22)
    b.flush()
    os.fsync(b.fileno())
"""


def copy_beside(source: Path, target: Path) -> Path:
    """Copy a file beside the one whose place it will take, flushed; who gives it up removes it."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        sweep_copies(target)
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise WarehouseError(
            f"{target} cannot be written: {error.strerror or error}; set publish.path to a place that can be written."
        ) from error
    os.close(handle)
    fresh = Path(name)
    with contextlib.ExitStack() as given_up:
        given_up.callback(fresh.unlink, missing_ok=True)
        done = subprocess.run(  # noqa: S603 - our own interpreter and a constant program
            [sys.executable, "-I", "-S", "-c", _COPYING, str(source), name], capture_output=True, check=False
        )
        if done.returncode or fresh.stat().st_size != source.stat().st_size:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            reason = said[-1] if said else "the copy was cut"
            raise WarehouseError(f"{source.name} could not be copied into {fresh.parent}: {reason}.")
        fresh.chmod(0o600)
        given_up.pop_all()
    return fresh


def sweep_copies(target: Path) -> None:
    """Remove what was to take this file's place and was killed before. Only the one writer may call it."""
    for left_over in target.parent.glob(f".{glob.escape(target.name)}.*"):
        left_over.unlink(missing_ok=True)


def rows_of(cursor: duckdb.DuckDBPyConnection, limit: int | None) -> Rows:
    """What was asked last, at most `limit` rows of it."""
    columns = tuple(d[0] for d in cursor.description or ())
    types = tuple(str(d[1]) for d in cursor.description or ())
    rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)
    cut = limit is not None and len(rows) > limit
    return Rows(columns, rows[:limit] if cut else rows, types, cut)


def discard(fresh: Path) -> None:
    """Remove a copy that is not to be shown, with its log."""
    for file in (fresh, fresh.with_name(fresh.name + ".wal")):
        file.unlink(missing_ok=True)


def say(db: duckdb.DuckDBPyConnection, what: _Noted, text: str) -> None:
    """Note something beside the marts: it goes when they go. A macro, because schemas can have no comment here."""
    db.execute(f"create or replace macro marts.{what}() as {quoted(text)}")


def said(db: duckdb.DuckDBPyConnection, what: _Noted) -> str | None:
    """What was noted last."""
    try:  # to look for it in the catalog takes twenty times as long
        found = db.execute(f"select {_COPY}.marts.{what}()").fetchone()
    except duckdb.CatalogException:
        return None
    return str(found[0]) if found else None


class DuckDBDraft(Draft):
    """Marts in a copy that nobody else sees; see `Draft`.

    Args:
        path: The file that was copied, for what is said of errors.
        fresh: The copies with their places: the one that marts are made in, and perhaps one with personal data.
        memory: Of the database that they are made with: one of its own, so that what it needs is not taken from landings.
        spill: A folder for what does not fit into it.
    """

    at_once = 2

    def __init__(self, path: Path, fresh: list[tuple[Path, Path]], *, memory: str, spill: Path) -> None:
        self._path, self._fresh, self._is_ended = path, fresh, False
        self._db: duckdb.DuckDBPyConnection | None = None
        self._questions: set[duckdb.DuckDBPyConnection] = set()
        self._digest = self.checked = ""
        """`checked` is the digest of rows that were published because they passed, where it is news."""
        try:
            with translated(path):
                self._db = database(threads=1, memory=memory, spill=spill)
                self._db.execute(f"attach {quoted(str(fresh[0][0]))} as {_COPY}")
                self._db.execute(f"use {_COPY}")
        except BaseException:
            self.close()
            raise

    @property
    def is_published(self) -> bool:
        """Whether readers see it."""
        return not self._fresh

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction."""
        with self._open() as db, transaction(db):
            for statement in statements:
                db.execute(statement)

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement."""
        with self._asking() as db:
            given = parameters if isinstance(parameters, Mapping) else list(parameters)
            return rows_of(db.execute(sql, given), limit)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection of its own, so that two threads may ask: one alone gains nothing from two of DuckDB's."""
        with self._open() as db, db.cursor() as own:
            own.execute(f"use {_COPY}")
            own.execute("set timezone = 'UTC'")
            self._questions.add(own)
            try:
                yield own
            finally:
                self._questions.discard(own)

    @contextlib.contextmanager
    def _open(self) -> Iterator[duckdb.DuckDBPyConnection]:
        if self._is_ended or self._db is None:
            raise WarehouseError(f"{self._path.name} is being closed, so nothing was published.")
        with translated(self._path):
            yield self._db

    def kept_marts(self, marts: Mapping[str, str], definition: str) -> Collection[str]:
        """The views, which the copy brought along; see `Draft`."""
        with self._open() as db:
            if said(db, "definition") != definition:
                return ()
            there = db.execute("select view_name from duckdb_views() where schema_name = 'marts'").fetchall()
        return [name for (name,) in there if marts.get(name) == "view"]

    def passed(self, tables: Mapping[str, Collection[str]], definition: str) -> bool:
        """Whether a digest of the rows is that of the last publish; see `Draft`."""
        # The order of rows says nothing; the sum also tells a row that is there twice from one that is not there. Hashed twice,
        # because DuckDB's hash of several values lets the last one through: two rows that swap a truth would add up as before.
        asked = (
            f"select '{name}', count(*), sum(hash(hash({', '.join(columns)}))) from {name}"
            for name, columns in sorted(tables.items())
        )
        with self._asking() as db:
            rows = sorted(db.execute(" union all ".join(asked)).fetchall())
            digest = hashlib.sha256(f"{definition} {rows}".encode()).hexdigest()
            is_known = said(db, "checked") == digest
        self._digest = "" if is_known else digest
        return is_known

    def publish(self) -> int:
        """Put the copies in place; the size of the first."""
        with self._open() as db:
            # What marts are must be in the file that is renamed, and not in a log beside it.
            db.execute(f"checkpoint {_COPY}")
        self._let_go()
        self.checked = self._digest
        sizes = []
        with translated(self._fresh[0][1]):
            while self._fresh:
                fresh, target = self._fresh.pop(0)
                try:
                    sizes.append(fresh.stat().st_size)
                    rename(fresh, target)
                finally:
                    fresh.unlink(missing_ok=True)
        return sizes[0]

    def withdraw(self) -> None:
        """Nothing is to be done: nobody has seen it."""

    def interrupt(self) -> None:
        """End what it is asked, from another thread, because everything is to be closed."""
        self._is_ended = True
        for db in (self._db, *self._questions):
            with contextlib.suppress(duckdb.Error):  # it may be let go of at this moment
                if db is not None:
                    db.interrupt()

    def close(self) -> None:
        """Remove what was not published."""
        self._let_go()
        for fresh, _ in self._fresh:
            discard(fresh)

    def _let_go(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()
