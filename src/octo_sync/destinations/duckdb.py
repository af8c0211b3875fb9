"""The warehouse in DuckDB files: `octo.duckdb`, and `octo.private.duckdb` for personal data and payloads.

Facts this module is built on, all measured: one process only may open a DuckDB file, and a process that holds one must
not open or copy it by other means (the lock silently drops), so publishing copies in a subprocess. Two attached files
cannot be written in one transaction, so the private file is landed first and idempotently. A primary key would make bulk
landings twenty times slower, so uniqueness is the landing's duty and a check's proof.
"""

import contextlib
import glob
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from octo_sync.destinations import caring, carrying, digests
from octo_sync.destinations.base import (
    Absence,
    Catalog,
    CatalogOption,
    Covered,
    FileSize,
    KnownBookings,
    Landing,
    LandingReport,
    Rows,
    TableDigest,
)
from octo_sync.destinations.burying import bury, bury_private
from octo_sync.destinations.erasing import Scrubber
from octo_sync.destinations.landing import LandingWork
from octo_sync.destinations.migrating import migrate
from octo_sync.destinations.pairing import is_torn, look_anew, note, number
from octo_sync.destinations.transactions import transaction, translated
from octo_sync.errors import WarehouseError, WriterFenced
from octo_sync.model import Subject, Window
from octo_sync.schema import Merge, Noun, Table

__all__ = ["DuckDBWarehouse"]

_STORAGE = "v1.2.0"
_MAIN, _PRIVATE = "warehouse", "personal"
_SHED_WITHIN = 3600.0
"""Seconds that writing a file anew may take after an erasure: it has to be done, however long it takes."""


class DuckDBWarehouse:
    """A warehouse in one DuckDB file beside one private file.

    Args:
        path: The warehouse file; made when it is not there. Its mode follows the process's umask, which `app` sets.
        private_path: The file for contacts and payloads.
        tables: What to keep; from `octo_sync.tables`.
        nouns: What can be staged.
        now: When it is opened, for the record of migrations.
        memory: DuckDB's memory limit, e.g. `192MB`; beyond it spills to disk.
    """

    def __init__(
        self,
        path: Path,
        private_path: Path,
        *,
        tables: Sequence[Table],
        nouns: Mapping[str, Noun],
        now: datetime,
        memory: str = "192MB",
        threads: int = 2,
    ) -> None:
        self.path, self.private_path = path, private_path
        self._tables, self._nouns = tuple(tables), nouns
        self._lock = threading.RLock()
        self._filled: set[str] = set()
        self._half_landed = True
        """Whether the private file may have been written by a landing that then failed."""
        self._threads = self._threads_now = threads
        self._spool = path.parent / f".{path.stem}.spool"
        with translated(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = duckdb.connect(
                ":memory:",
                config={"threads": threads, "memory_limit": memory, "temp_directory": str(self._spool / "tmp")},
            )
            try:
                self._open(now)
            except BaseException:
                self._db.close()
                raise

    def _open(self, now: datetime) -> None:
        self._attach()
        # Only now is it sure that the spool is nobody else's: what lies there is a killed run's working storage.
        self._spool.mkdir(mode=0o700, exist_ok=True)
        for left_over in (*self._spool.glob("*.ndjson"), *self._spool.glob("tmp/*")):
            left_over.unlink(missing_ok=True)
        for file in (self.path, self.private_path):
            caring.sweep(file)
        self._db.execute(f"use {_MAIN}")
        self._db.execute("set timezone = 'UTC'")
        # Reading what is committed must not wait for a landing that is under way.
        self._reader = self._db.cursor()
        self._reader.execute(f"use {_MAIN}")
        self._reader.execute("set timezone = 'UTC'")
        self._reader_lock = threading.Lock()
        self._db.execute("set checkpoint_threshold = '64MB'")
        self._db.execute("create or replace temp macro landing_now() as getvariable('landing_now')::timestamptz")
        self.migrated = migrate(self._db, self._tables, main=_MAIN, private=_PRIVATE, now=now, name=self.path.name)
        """The steps of the schema that were taken when it was opened."""
        self._mend()

    def _attach(self) -> None:
        for name, file in self._files.items():
            self._attach_file(file, name, is_private=name == _PRIVATE)

    @property
    def _files(self) -> Mapping[str, Path]:
        return {_MAIN: self.path, _PRIVATE: self.private_path}

    def _attach_file(self, file: Path, name: str, *, is_private: bool) -> None:
        # Payloads are long and few: in small row groups they go straight to the file instead of through its log.
        options = ", row_group_size 2048" if is_private else ""
        escaped = str(file).replace("'", "''")
        self._db.execute(f"attach '{escaped}' as {name} (storage_version '{_STORAGE}'{options})")

    def close(self) -> None:
        """Let go of both files; everything committed is in them."""
        with self._lock, contextlib.suppress(duckdb.Error):
            self._db.close()

    # -- writing ------------------------------------------------------------------------------------------------

    def claim_writer(self, fence: int, owner: str) -> None:
        """Take over as the writer; see `Destination`."""
        with self._lock, translated(self.path), transaction(self._db):
            self._check_fence(fence)
            landed = self._db.execute("select max(landed) from ops.writer").fetchone() or (None,)
            self._db.execute("delete from ops.writer")
            self._db.execute("insert into ops.writer values ($1, $2, $3)", [fence, owner, landed[0]])

    def _check_fence(self, fence: int) -> None:
        row = self._db.execute("select max(fence) from ops.writer").fetchone()
        if row and row[0] is not None and row[0] > fence:
            raise WriterFenced(
                f"A newer writer (token {row[0]}) took over {self.path.name}; this one (token {fence}) stops. "
                f"Nothing of its landing was kept."
            )

    def land(self, landing: Landing) -> LandingReport:
        """Land everything or nothing; see `Destination`."""
        with self._lock, translated(self.path):
            self._mend()
            work = LandingWork(
                self._db,
                landing,
                covered=self.covered([a.subject for a in landing.answered]),
                tables=self._tables,
                nouns=self._nouns,
                spool=self._spool,
                private=_PRIVATE,
                main=_MAIN,
                filled=self._filled,
            )
            self._use_threads(1 if work.is_small else self._threads)
            work.stage()
            if work.has_private:
                with self._private_transaction(landing.fence):
                    work.land_private()
            with transaction(self._db):
                self._check_fence(landing.fence)
                work.land()
                if work.has_private:
                    note(self._db, _PRIVATE)
            self._half_landed = False
            work.clean_up()
        return work.report

    @contextlib.contextmanager
    def _private_transaction(self, fence: int) -> Iterator[None]:
        """The first of two: until the warehouse's own is committed, the private file is ahead of it."""
        self._half_landed = True
        with transaction(self._db):
            self._check_fence(fence)
            yield
            number(self._db, _PRIVATE)

    def _mend(self) -> None:
        """If a landing ended between the two files, have everything that feeds the private one looked at anew."""
        if self._half_landed and is_torn(self._db, _PRIVATE):
            with transaction(self._db):
                look_anew(self._db, _PRIVATE)
        self._half_landed = False

    def _use_threads(self, count: int) -> None:
        """For a handful of rows a second thread costs more to start than it saves: a sixth of a small landing."""
        if count != self._threads_now:
            self._db.execute(f"set threads = {count}")
            self._threads_now = count

    def bury(self, absences: Sequence[Absence], *, now: datetime, fence: int) -> int:
        """Mark proven deletions; see `Destination`."""
        tables = {t.full_name: t for t in self._tables}
        with self._lock, translated(self.path):
            self._mend()
            self._db.execute("set variable landing_now = $1::timestamptz", [now])
            with self._private_transaction(fence):
                bury_private(self._db, tables, absences, catalog=_PRIVATE)
            with transaction(self._db):
                self._check_fence(fence)
                marked = bury(self._db, tables, absences)
                note(self._db, _PRIVATE)
            self._half_landed = False
        return marked

    def write_log(self, table: str, rows: Iterable[Mapping[str, Any]], *, replace: bool = False) -> None:
        """Upsert rows of a log table; see `Destination`."""
        target = next(t for t in self._tables if t.full_name == table)
        columns = [c.name for c in target.columns]
        with self._lock, translated(self.path), transaction(self._db):
            if replace:
                self._db.execute(f"delete from {table}")
            for row in rows:
                where = " and ".join(f"{c} = ${i + 1}" for i, c in enumerate(target.key))
                self._db.execute(f"delete from {table} where {where}", [row[c] for c in target.key])
                marks = ", ".join(f"${i + 1}" for i in range(len(columns)))
                self._db.execute(f"insert into {table} values ({marks})", [row.get(c) for c in columns])

    # -- reading ------------------------------------------------------------------------------------------------

    def highest_numbers(self) -> tuple[int, int]:
        """The highest request number and fence seen; see `Destination`."""
        with self._lock, translated(self.path):
            seq = self._db.execute("select coalesce(max(request_seq), 0) from ops.coverage").fetchone() or (0,)
            fence = self._db.execute("select coalesce(max(fence), 0) from ops.writer").fetchone() or (0,)
        return int(seq[0]), int(fence[0])

    def covered(self, subjects: Collection[Subject]) -> Mapping[Subject, Covered]:
        """The last landing of each subject; see `Destination`."""
        wanted = {(s.connection, str(s.kind), s.key): s for s in subjects}
        if not wanted:
            return {}
        keys = list(wanted)
        with self._reader_lock, translated(self.path):
            found = self._reader.execute(
                "select connection_id, resource, key, request_seq, answer_hash, window_start, window_end, row_count "
                "from ops.coverage semi join (select unnest($1::varchar[]) as connection_id, "
                "unnest($2::varchar[]) as resource, unnest($3::varchar[]) as key) using (connection_id, resource, key)",
                [[k[0] for k in keys], [k[1] for k in keys], [k[2] for k in keys]],
            ).fetchall()
        return {
            wanted[row[0], row[1], row[2]]: Covered(row[3], row[4], Window(row[5], row[6]) if row[5] else None, row[7])
            for row in found
        }

    def known_bookings(self, connection: str, window: Window) -> KnownBookings:
        """What live bookings of a window were landed from; see `Destination`."""
        with self._reader_lock, translated(self.path):
            found = self._reader.execute(
                "select payload_digest, booking_uuid, local_date, utc_created_at::date from core.bookings "
                "where connection_id = $1 and payload_digest is not null and not is_deleted and "
                "(local_date between $2 and $3 or utc_created_at::date between $2 - 1 and $3 + 1)",
                [connection, window.start, window.end],
            ).fetchall()
        return {digest: (uuid, travel, created) for digest, uuid, travel, created in found}

    def absences(self) -> list[Absence]:
        """Rows missed at present; see `Destination`."""
        with self._lock, translated(self.path):
            found = self._db.execute(
                "select connection_id, table_name, key, resource, subject_key, misses from ops.absences order by all"
            ).fetchall()
        return [Absence(c, t, k, Subject.from_key(c, r, s), m) for c, t, k, r, s, m in found]

    def live_rows(self) -> Mapping[tuple[str, str], int]:
        """Live rows per connection and merged table; see `Destination`."""
        tables = [t.full_name for t in self._tables if t.merge is Merge.MERGE and not t.private]
        sql = " union all ".join(
            f"select connection_id, '{t}', count(*) from {t} where not is_deleted group by all" for t in tables
        )
        with self._lock, translated(self.path):
            return {(c, t): n for c, t, n in self._db.execute(sql).fetchall()}

    def catalog(self) -> Catalog:
        """Options offered now; see `Destination`."""
        with self._lock, translated(self.path):
            found = self._db.execute(
                "select o.connection_id, o.product_id, o.option_id, p.time_zone from core.options o "
                "join core.products p using (connection_id, product_id) "
                "where not o.is_deleted and not p.is_deleted order by all"
            ).fetchall()
        return [CatalogOption(*row) for row in found]

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement; see `Destination`."""
        with self._lock, translated(self.path):
            cursor = self._db.execute(sql, list(parameters) if not isinstance(parameters, Mapping) else parameters)
            columns = tuple(d[0] for d in cursor.description or ())
            types = tuple(str(d[1]) for d in cursor.description or ())
            rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)
        cut = limit is not None and len(rows) > limit
        return Rows(columns, rows[:limit] if cut else rows, types, cut)

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Count and hash live rows; see `Destination`."""
        chosen = [t for t in self._tables if t.schema == "core" and (tables is None or t.full_name in tables)]
        with self._lock, translated(self.path):
            return [digests.of(self._db, t) for t in chosen if t.noun]

    # -- care ---------------------------------------------------------------------------------------------------

    def prune(self, *, raw_before: datetime | None, runs_before: datetime | None) -> int:
        """Remove old payloads and runs; see `Destination`."""
        same = "n.connection_id = r.connection_id and n.resource = r.resource and n.key = r.key"
        newer = f"from {_PRIVATE}.raw.records n where {same} and n.fetched_at_utc > r.fetched_at_utc"
        payloads = f"delete from {_PRIVATE}.raw.records r where fetched_at_utc < $1 and exists (select 1 {newer})"
        runs = "delete from ops.runs where started_at_utc < $1 and ended_at_utc is not null"
        gone = 0
        for statement, before in ((payloads, raw_before), (runs, runs_before)):
            if before is not None:
                with self._lock, translated(self.path), transaction(self._db):
                    gone += int((self._db.execute(statement, [before]).fetchone() or (0,))[0])
        return gone

    def _tables_of(self, name: str) -> list[Table]:
        return [t for t in self._tables if t.private is (name == _PRIVATE)]

    def sizes(self) -> Mapping[str, FileSize]:
        """Both files; see `Destination`."""
        with self._lock, translated(self.path):
            return {n: caring.size_of(self._db, n, file, self._tables_of(n)) for n, file in self._files.items()}

    def rewrite(self, file: str, *, within: float) -> int:
        """Write one file anew; see `Destination`. The lock on the old file is given up before the new one is in place."""
        path = self._files[file]
        fresh = caring.fresh_path(path)
        with self._lock, self._reader_lock, translated(path):
            caring.room_for(path, path.stat().st_size)
            caring.sweep(path)
            try:
                self._attach_file(fresh, "anew", is_private=file == _PRIVATE)
                try:
                    with caring.stopping_after(self._db, within):
                        caring.copy_rows(self._db, file, "anew", self._tables_of(file))
                        self._db.execute("checkpoint anew")
                finally:
                    self._db.execute(f"use {_MAIN}")
                    self._db.execute("detach anew")
                self._swap(file, fresh)
            except duckdb.InterruptException as error:
                raise WarehouseError(
                    f"Writing {path.name} anew takes longer than {within:g} s (care.within); it is as it was."
                ) from error
            finally:
                caring.sweep(path)
            return path.stat().st_size

    @contextlib.contextmanager
    def scrubbing(self, fence: int) -> Iterator[Scrubber]:
        """A transaction in one of the two files; see `Destination`."""

        def run(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
            return self._db.execute(sql, list(parameters)).fetchall()

        with self._lock, translated(self.path), transaction(self._db):
            self._check_fence(fence)
            yield Scrubber(run, f"{_PRIVATE}.")

    def shed(self, *, core: bool) -> None:
        """Write the files anew, and let go of the last landing's work tables; see `Destination`."""
        with self._lock:
            self._forget_work_tables()
            self.rewrite(_PRIVATE, within=_SHED_WITHIN)
            if core:
                self.rewrite(_MAIN, within=_SHED_WITHIN)

    def _forget_work_tables(self) -> None:
        """Staged records name persons, and work tables that are spilled lie on the disk."""
        with translated(self.path):
            for (name,) in self._db.execute("select table_name from duckdb_tables() where temporary").fetchall():
                self._db.execute(f"drop table if exists temp.{name}")

    def _swap(self, name: str, fresh: Path) -> None:
        path = self._files[name]
        self._db.execute(f"checkpoint {name}")
        for connection in (self._db, self._reader):
            connection.execute("use memory").fetchall()  # also lets go of a result that was not read to its end
        try:
            self._db.execute(f"detach {name}")
            caring.put_in_place(fresh, path)
        finally:
            self._attach_file(path, name, is_private=name == _PRIVATE)
            for connection in (self._db, self._reader):
                connection.execute(f"use {_MAIN}")

    def take_over(self, warehouse: Path, private: Path, *, landed: bool) -> bool:
        """Take from former files what answers do not bring, before or after they are `landed`; whether both were read."""
        read = True
        with self._lock, translated(self.path):
            for name, file in ((_MAIN, warehouse), (_PRIVATE, private)):
                with carrying.attached(self._db, file) as former:
                    read = read and former is not None
                    with transaction(self._db):
                        if former is not None:
                            late = carrying.after_landing if name == _MAIN else carrying.without_payload
                            take = late if landed else carrying.before_landing
                            take(self._db, former, name, self._tables_of(name))
                        if landed and name == _MAIN:
                            coverage = next(t for t in self._tables if t.full_name == "ops.coverage")
                            carrying.date_coverage(self._db, former, _MAIN, _PRIVATE, coverage)
        return read

    def deleted_keys(self, warehouse: Path, table: str, key: str) -> set[tuple[str, str]]:
        """Connection and key of the rows that a former file has as proven deleted; none when it cannot be read."""
        with self._lock, translated(self.path), carrying.attached(self._db, warehouse) as former:
            if former is None:
                return set()
            return set(
                self._db.execute(f"select connection_id, {key} from {former}.{table} where is_deleted").fetchall()
            )

    def newest_payloads(self, connection: str, resource: str, keys: Collection[str] | None = None) -> dict[str, str]:
        """The newest payload of each key as received, or of those in `keys`."""
        only = "" if keys is None else "and key in (select unnest($3::varchar[]))"
        with self._lock, translated(self.path):
            return dict(
                self._db.execute(
                    f"select key, arg_max(payload, fetched_at_utc) from {_PRIVATE}.raw.records "
                    f"where connection_id = $1 and resource = $2 {only} group by key order by key",
                    [connection, resource, *([] if keys is None else [list(keys)])],
                ).fetchall()
            )

    def travel_dates(self, connection: str) -> dict[str, str | None]:
        """Travel date, as written, of each booking whose payload is kept."""
        with self._lock, translated(self.path):
            return dict(
                self._db.execute(
                    "select key, left(arg_max(payload, fetched_at_utc)->'availability'->>'localDateTimeStart', 10) "
                    f"from {_PRIVATE}.raw.records where connection_id = $1 and resource = 'booking' group by key",
                    [connection],
                ).fetchall()
            )

    # -- publishing ---------------------------------------------------------------------------------------------

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction, e.g. the marts' views."""
        with self._lock, translated(self.path), transaction(self._db):
            for statement in statements:
                self._db.execute(statement)

    @contextlib.contextmanager
    def drafting(self) -> Iterator["DuckDBWarehouse"]:
        """Itself: readers have a copy, which only `publish` replaces. Nothing lands meanwhile."""
        with self._lock:
            yield self

    def withdraw(self) -> None:
        """Nothing is to be done: nobody reads this file."""

    def publish(self, target: Path, *, contacts: Path | None = None) -> int:
        """Copy the file in a subprocess and swap it in; see `Destination`."""
        with self._lock, translated(self.path):
            self._db.execute(f"checkpoint {_MAIN}")
            size = _copy_into_place(self.path, target)
            if contacts is not None:
                self._db.execute(f"checkpoint {_PRIVATE}")
                _copy_into_place(self.private_path, contacts)
        return size


_COPY = """
import os, shutil, sys
source, target = sys.argv[1:]
with open(source, 'rb') as a, open(target, 'wb') as b:
    shutil.copyfileobj(a, b, 1 << 22)
    b.flush()
    os.fsync(b.fileno())
"""


def _copy_into_place(source: Path, target: Path) -> int:
    """Copy beside the target, flush, then rename over it: readers have the old file or the new one, never half of one."""
    for left_over in target.parent.glob(f".{glob.escape(target.name)}.*"):
        left_over.unlink(missing_ok=True)  # of one that was killed; there is one writer, so nobody else's
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    fresh = Path(name)
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and a constant program
            [sys.executable, "-I", "-S", "-c", _COPY, str(source), str(fresh)], capture_output=True, check=False
        )
        size = fresh.stat().st_size
        if done.returncode or size != source.stat().st_size:
            reason = done.stderr.decode(errors="replace").strip().splitlines()
            raise WarehouseError(f"{target.name} could not be published: {reason[-1] if reason else 'copy was cut'}.")
        fresh.chmod(0o600)
        fresh.replace(target)
        directory = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
        return size
    finally:
        fresh.unlink(missing_ok=True)
