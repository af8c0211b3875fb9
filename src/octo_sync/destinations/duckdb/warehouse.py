"""The warehouse in DuckDB files: `octo.duckdb`, and `octo.private.duckdb` for personal data and payloads.

Facts this module is built on, all measured: one process only may open a DuckDB file, and a process that holds one must
not open or copy it by other means (the lock silently drops), so publishing copies in a subprocess. Two attached files
cannot be written in one transaction, so the private file is landed first and idempotently. A primary key would make bulk
landings twenty times slower, so uniqueness is the landing's duty and a check's proof.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from octo_sync.destinations import digests
from octo_sync.destinations.base import Absence, Fence, FileSize, Landing, LandingReport, Rows
from octo_sync.destinations.ddl import MAIN, PRIVATE, placed
from octo_sync.destinations.duckdb.carry_over import carry_over, make_up, rows_to_move
from octo_sync.destinations.duckdb.files import attach, bytes_of, database, size_of, sweep, write_anew
from octo_sync.destinations.duckdb.migrations import migrate
from octo_sync.destinations.duckdb.pair import is_torn, look_anew, note, number
from octo_sync.destinations.duckdb.publish import DuckDBDraft, copy_beside, discard, rows_of, said, say
from octo_sync.destinations.duckdb.transactions import transaction, translated
from octo_sync.destinations.landing.tombstones import bury, bury_private
from octo_sync.destinations.relations import Run, drop_work_tables, run
from octo_sync.destinations.warehouse import Destination, check_fence
from octo_sync.errors import WarehouseError
from octo_sync.tables.schema import Noun, Table

T = TypeVar("T")

_MEMORY = "192MB"
"""DuckDB's limit, beyond which it spills to disk. The checks of a copy may have as much again."""
_PATIENCE = 0.05
"""Seconds until checks and questions are told, again, that the warehouse is to be closed."""
_SHED_WITHIN = 3600.0
"""Seconds that writing a file anew may take after an erasure: it has to be done, however long it takes."""


class DuckDBWarehouse(Destination):
    """A warehouse in one DuckDB file beside one private file.

    Args:
        path: The warehouse file; made when it is not there. Its mode follows the process's umask, which `app` sets.
        private_path: The file for contacts and payloads.
        tables: What to keep; from `octo_sync.tables`.
        nouns: What can be staged.
        now: When it is opened, for the record of migrations.
    """

    private = f"{PRIVATE}."
    _spelling = digests.DUCKDB

    def __init__(
        self, path: Path, private_path: Path, *, tables: Sequence[Table], nouns: Mapping[str, Noun], now: datetime
    ) -> None:
        self.path, self.private_path, self.name = path, private_path, path.name
        self._tables, self._nouns = tuple(tables), nouns
        self._lock = threading.RLock()
        self._drafting = threading.RLock()
        """Held until the marts are published; the lock above only while the file is copied."""
        self._draft: DuckDBDraft | None = None
        self._filled: set[str] = set()
        self._half_landed = True
        """Whether the private file may have been written by a landing that then failed."""
        self._files = {MAIN: path, PRIVATE: private_path}
        self._spool = path.parent / f".{path.stem}.spool"
        with translated(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # With two threads, landings take from whoever fetches: more processor time, and not less of the clock.
            self._db = database(threads=1, memory=_MEMORY, spill=self._spool / "tmp")
            try:
                self._open(now)
            except BaseException:
                self._db.close()
                raise

    def _open(self, now: datetime) -> None:
        for name, file in self._files.items():
            attach(self._db, file, name, is_private=name == PRIVATE)
            sweep(file)
        # Only now is it sure that the spool is nobody else's: what lies there is a killed run's working storage.
        self._spool.mkdir(mode=0o700, exist_ok=True)
        for left_over in (*self._spool.glob("*.ndjson"), *self._spool.glob("tmp/*"), *self._spool.glob("checks/*")):
            left_over.unlink(missing_ok=True)
        self._db.execute(f"use {MAIN}")
        # Reading what is committed must not wait for a landing that is under way.
        self._reader = self._db.cursor()
        self._reader.execute(f"use {MAIN}")
        self._reader.execute("set timezone = 'UTC'")
        self._reader_lock = threading.Lock()
        self._db.execute("set checkpoint_threshold = '64MB'")
        self._db.execute("create or replace temp macro landing_now() as getvariable('landing_now')::timestamptz")
        self.migrated = migrate(self._db, self._tables, now=now, name=self.path.name)
        """The steps of the schema that were taken when it was opened."""
        self._mend()

    def close(self) -> None:
        """Let go of both files; everything committed is in them. What is being checked is not published, what is asked ends."""
        while not self._drafting.acquire(timeout=_PATIENCE):
            # Again and again, because one that comes just before a statement begins is lost.
            if (draft := self._draft) is not None:
                draft.interrupt()
        try:
            with self._lock:
                while not self._reader_lock.acquire(timeout=_PATIENCE):
                    self._reader.interrupt()
                try:
                    with contextlib.suppress(duckdb.Error):
                        self._db.close()
                finally:
                    self._reader_lock.release()
        finally:
            self._drafting.release()

    # -- writing ------------------------------------------------------------------------------------------------

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._db.execute(sql, list(parameters)).fetchall()

    def _read(self, work: Callable[[Run], T]) -> T:
        def run(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
            return self._reader.execute(sql, list(parameters)).fetchall()

        with self._reader_lock, translated(self.path):
            return work(run)

    def _write(self, fence: Fence, work: Callable[[Run], T]) -> T:
        with self._once(fence) as run:
            return work(run)

    @contextlib.contextmanager
    def _once(self, fence: Fence) -> Iterator[Run]:
        with self._lock, translated(self.path), transaction(self._db):
            if fence != {}:
                self._check_fence(fence)
            yield self._run

    def _check_fence(self, fence: Fence) -> None:
        check_fence(self._run, fence, self.name)

    def land(self, landing: Landing) -> LandingReport:
        """Land everything or nothing; see `Destination`."""
        with self._lock, translated(self.path):
            self._mend()
            work = self._work(self._db, self._run, landing, filled=self._filled)
            work.stage()
            if work.has_private:
                with self._private_transaction(landing.fence):
                    work.land_private()
            with transaction(self._db):
                self._check_fence(landing.fence)
                work.land()
                if work.has_private:
                    note(self._db)
            self._half_landed = False
            work.clean_up()
        return work.report

    @contextlib.contextmanager
    def _private_transaction(self, fence: Fence) -> Iterator[None]:
        """The first of two: until the warehouse's own is committed, the private file is ahead of it."""
        self._half_landed = True
        with transaction(self._db):
            self._check_fence(fence)
            yield
            number(self._db)

    def _mend(self) -> None:
        """If a landing ended between the two files, have everything that feeds the private one looked at anew."""
        if self._half_landed and is_torn(self._db):
            with transaction(self._db):
                look_anew(self._db)
        self._half_landed = False

    def bury(self, absences: Sequence[Absence], *, now: datetime, fence: Fence) -> int:
        """Mark proven deletions; see `Destination`."""
        tables = {t.full_name: t for t in self._tables}
        with self._lock, translated(self.path):
            self._mend()
            self._db.execute("set variable landing_now = $1::timestamptz", [now])
            with self._private_transaction(fence):
                bury_private(self._db, tables, absences)
            with transaction(self._db):
                self._check_fence(fence)
                marked = bury(self._db, tables, absences)
                note(self._db)
            self._half_landed = False
        return marked

    # -- reading ------------------------------------------------------------------------------------------------

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement; see `Destination`."""
        given = parameters if isinstance(parameters, Mapping) else list(parameters)
        with self._reader_lock, translated(self.path):
            found = rows_of(self._reader.execute(sql, given), limit)
            if limit is not None:
                # What is not read to its end would hold up each checkpoint.
                self._reader.execute("select 1").fetchall()
            return found

    # -- care ---------------------------------------------------------------------------------------------------

    def _tables_of(self, name: str) -> list[Table]:
        return [t for t in self._tables if t.private is (name == PRIVATE)]

    def sizes(self, *, least: int = 0) -> Mapping[str, FileSize]:
        """Both files, or those that are large; see `Destination`."""
        with self._lock, translated(self.path):  # a landing may fold a log into its file and remove it
            large = {name: file for name, file in self._files.items() if bytes_of(file) >= least}
            return {name: size_of(self._db, name, file, self._tables_of(name)) for name, file in large.items()}

    def rewrite(self, file: str, *, within: float) -> int:
        """Write one file anew; see `Destination`. The lock on the old file is given up before the new one is in place."""
        path = self._files[file]
        with self._lock, self._reader_lock, translated(path):
            return write_anew(self._db, self._reader, file, path, self._tables_of(file), within=within)

    def shed(self, *, core: bool) -> None:
        """Write the files anew, and let go of the last landing's work tables; see `Destination`."""
        with self._lock:
            with translated(self.path):
                drop_work_tables(self._db)
            self.rewrite(PRIVATE, within=_SHED_WITHIN)
            if core:
                self.rewrite(MAIN, within=_SHED_WITHIN)

    def take_over(self, warehouse: Path, private: Path) -> tuple[int, list[str]]:
        """Take every row that can be read from former files into these, which are new; how many, and what cannot be read.

        Those are named by table, or by file where nothing of it can be read. Every answer is written anew from then on.
        """
        with self._lock, translated(self.path):
            rows, lost = carry_over(self._db, warehouse, self._tables_of(MAIN))
            more, private_lost = carry_over(self._db, private, self._tables_of(PRIVATE))
            if lost or private_lost:
                make_up(self._db, self._tables_of(MAIN), lost)
        return rows + more, [
            *([warehouse.name] if lost and not rows else lost),
            *([private.name] if private_lost and not more else private_lost),
        ]

    def move_in(self, files: Mapping[bool, Path], fence: int) -> int:
        """Take every row of a project's files into these, in which no landing has been; how many.

        What is private goes first, and goes again when it was cut off: until the rest is there, the warehouse is empty.

        Args:
            files: Whether it is the private one → the file, of this program's schema and open nowhere.
            fence: Of who owns this warehouse.
        """
        with self._lock, translated(self.path):
            with (
                rows_to_move(self._db, files[True], self._tables_of(PRIVATE)) as moving,
                self._private_transaction(fence),
            ):
                rows = self._moved(moving)
            with rows_to_move(self._db, files[False], self._tables_of(MAIN)) as moving, transaction(self._db):
                self._check_fence(fence)
                rows += self._moved(moving)
                note(self._db)
            self._half_landed = False
        return rows

    def _moved(self, moving: Sequence[tuple[Table, str]]) -> int:
        """Have these rows instead of ours; how many."""
        for table, _ in moving:
            self._run(f"delete from {placed(table)}")
        return sum(run(self._db, f"insert into {placed(table)} ({table.names}) {rows}") for table, rows in moving)

    # -- publishing ---------------------------------------------------------------------------------------------

    def keep_marts(self, definition: str, make: Callable[[], None]) -> None:
        """Have them in the file; see `Destination`."""
        with self._lock, translated(self.path):
            if said(self._db, "definition") != definition:
                make()
                say(self._db, "definition", definition)

    @contextlib.contextmanager
    def drafting(self, target: Path | None = None, *, contacts: Path | None = None) -> Iterator[DuckDBDraft]:
        """Marts in a copy of the file, which nothing lands in; see `Destination`."""
        place = target or self._spool / "checks" / self.path.name
        with self._drafting, contextlib.closing(self._copied(place, contacts)) as draft:
            self._draft = draft
            try:
                yield draft
            finally:
                self._draft = None
            # Readers have it: were it not noted, the checks would run again, and that is all.
            with contextlib.suppress(WarehouseError), self._lock, translated(self.path):
                if draft.checked:
                    say(self._db, "checked", draft.checked)

    def _copied(self, target: Path, contacts: Path | None) -> DuckDBDraft:
        """The one moment in which nothing lands."""
        with contextlib.ExitStack() as stack, translated(self.path), self._lock:
            fresh: list[tuple[Path, Path]] = []
            for name, file, place in ((MAIN, self.path, target), (PRIVATE, self.private_path, contacts)):
                if place is not None:
                    # DuckDB folds nothing into the file while what was read before the last landing is still being read.
                    with self._reader_lock:
                        self._db.execute(f"checkpoint {name}")
                    fresh.append((copy_beside(file, place), place))
                    stack.callback(discard, fresh[-1][0])
            stack.pop_all()
        return DuckDBDraft(self.path, fresh, memory=_MEMORY, spill=self._spool / "checks")
