"""The warehouse in DuckDB files: `octo.duckdb`, and `octo.private.duckdb` for personal data and payloads.

Facts this module is built on, all measured: one process only may open a DuckDB file, and a process that holds one must
not open or copy it by other means (the lock silently drops), so publishing copies in a subprocess. Two attached files
cannot be written in one transaction, so the private file is landed first and idempotently. A primary key would make bulk
landings twenty times slower, so uniqueness is the landing's duty and a check's proof.
"""

import contextlib
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

from octo_sync import __version__
from octo_sync.destinations import ddl, digests
from octo_sync.destinations.base import (
    Absence,
    Answered,
    Catalog,
    CatalogOption,
    Covered,
    Landing,
    LandingReport,
    Payload,
    Rows,
    TableDigest,
)
from octo_sync.destinations.burying import bury, bury_private
from octo_sync.destinations.merging import Merger
from octo_sync.destinations.staging import Stage
from octo_sync.errors import WarehouseError, WarehouseLocked, WriterFenced
from octo_sync.model import Subject, SubjectKind, Window
from octo_sync.schema import Merge, Noun, Table

__all__ = ["DuckDBWarehouse", "open_read_only", "translated"]

_STORAGE = "v1.2.0"
_MAIN, _PRIVATE = "warehouse", "personal"


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """DuckDB's errors become ours once, here."""
    try:
        yield
    except duckdb.Error as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        lowered = text.lower()
        if "conflicting lock" in lowered or "could not set lock" in lowered:
            raise WarehouseLocked(
                f"{path.name} is open in another process ({text[:160]}). Close it there; readers use the read copy."
            ) from error
        if "no space left" in lowered or "disk full" in lowered:
            raise WarehouseError(f"No space is left for {path}; free some and run again. Nothing was lost.") from error
        if "permission denied" in lowered or "read-only" in lowered or "cannot open file" in lowered:
            raise WarehouseError(f"{path} cannot be written: {text[:160]}") from error
        raise WarehouseError(f"The warehouse {path.name} refused a statement: {text[:400]}") from error
    except OSError as error:
        raise WarehouseError(f"{path.parent} cannot be written: {error.strerror or error}.") from error


def open_read_only(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a published copy for reading, without access to anything outside it.

    Raises:
        WarehouseError: The file is not there or not a DuckDB file.
        WarehouseLocked: A writer holds it: it is the warehouse itself, not its read copy.
    """
    if not path.exists():
        raise WarehouseError(f"{path} does not exist yet; run `octo-sync sync` (or `octo-sync publish`) first.")
    with translated(path):
        connection = duckdb.connect(":memory:", config={"threads": 2})
        escaped = str(path).replace("'", "''")
        connection.execute(f"attach '{escaped}' as octo (read_only)")
        connection.execute("use octo")
        connection.execute("set timezone = 'UTC'")
        connection.execute("set search_path = 'octo.marts,octo.core,octo.ops'")
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
    return connection


class DuckDBWarehouse:
    """A warehouse in one DuckDB file beside one private file.

    Args:
        path: The warehouse file; made when it is not there, with mode 0600 in a directory of mode 0700.
        private_path: The file for contacts and payloads.
        tables: What to keep; from `octo_sync.tables`.
        nouns: What can be staged.
        now: When it is opened, for the record of migrations.
        memory: DuckDB's memory limit, e.g. `256MB`; beyond it spills to disk.
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
        self._spool = path.parent / f".{path.stem}.spool"
        with translated(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._spool.mkdir(mode=0o700, exist_ok=True)
            for left_over in self._spool.glob("*.ndjson"):
                left_over.unlink(missing_ok=True)  # a killed run's working storage
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
        old_umask = os.umask(0o077)
        try:
            for file, name in ((self.path, _MAIN), (self.private_path, _PRIVATE)):
                escaped = str(file).replace("'", "''")
                self._db.execute(f"attach '{escaped}' as {name} (storage_version '{_STORAGE}')")
        finally:
            os.umask(old_umask)
        self._db.execute(f"use {_MAIN}")
        self._db.execute("set timezone = 'UTC'")
        # Reading what is committed must not wait for a landing that is under way.
        self._reader = self._db.cursor()
        self._reader.execute(f"use {_MAIN}")
        self._reader.execute("set timezone = 'UTC'")
        self._reader_lock = threading.Lock()
        self._db.execute("set checkpoint_threshold = '64MB'")
        self._db.execute("create or replace temp macro landing_now() as getvariable('landing_now')::timestamptz")
        self._migrate(now)

    def _migrate(self, now: datetime) -> None:
        exists = self._db.execute(
            "select count(*) from information_schema.tables where table_catalog = $1 and table_schema = 'ops' "
            "and table_name = 'schema_migrations'",
            [_MAIN],
        ).fetchone()
        found = None
        if exists and exists[0]:
            row = self._db.execute("select max(version) from ops.schema_migrations").fetchone()
            found = row[0] if row else None
        if found is not None and found > ddl.SCHEMA_VERSION:
            raise WarehouseError(
                f"{self.path.name} was written by a newer octo-sync (schema {found}, this one knows "
                f"{ddl.SCHEMA_VERSION}); upgrade octo-sync."
            )
        if found == ddl.SCHEMA_VERSION:
            return
        for private, prefix in ((True, f"{_PRIVATE}."), (False, f"{_MAIN}.")):
            tables = [t for t in self._tables if t.private is private]
            with self._transaction():
                for schema in ddl.schemas(tables):
                    self._db.execute(f"create schema if not exists {prefix}{schema}")
                for table in tables:
                    self._db.execute(ddl.create_table(table, prefix=prefix))
                    for comment in ddl.comments(table, prefix=prefix):
                        self._db.execute(comment)
                if not private:
                    self._db.execute(f"create schema if not exists {prefix}marts")
                    self._db.execute(
                        "insert into ops.schema_migrations values ($1, $2, $3)",
                        [ddl.SCHEMA_VERSION, now, __version__],
                    )

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin transaction")
        try:
            yield
        except BaseException:
            with contextlib.suppress(duckdb.Error):
                self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def close(self) -> None:
        """Let go of both files; everything committed is in them."""
        with self._lock, contextlib.suppress(duckdb.Error):
            self._db.close()

    # -- writing ------------------------------------------------------------------------------------------------

    def claim_writer(self, fence: int, owner: str) -> None:
        """Take over as the writer; see `Destination`."""
        with self._lock, translated(self.path), self._transaction():
            self._check_fence(fence)
            self._db.execute("delete from ops.writer")
            self._db.execute("insert into ops.writer values ($1, $2)", [fence, owner])

    def _check_fence(self, fence: int) -> None:
        row = self._db.execute("select max(fence) from ops.writer").fetchone()
        if row and row[0] is not None and row[0] > fence:
            raise WriterFenced(
                f"A newer writer (token {row[0]}) took over {self.path.name}; this one (token {fence}) stops. "
                f"Nothing of its landing was kept."
            )

    def land(self, landing: Landing) -> LandingReport:
        """Land everything or nothing; see `Destination`."""
        report = LandingReport()
        with self._lock, translated(self.path):
            fresh = self._newest(landing.answered, report)
            self._db.execute("set variable landing_now = $1::timestamptz", [landing.now])
            stages = [
                stage
                for noun in ("supplier", "products", "availability", "bookings")
                if (stage := self._stage(noun, fresh)) is not None
            ]
            payloads = [(a, p) for a in fresh for p in a.payloads]
            if payloads or any(s.noun.name == "bookings" for s in stages):
                with self._transaction():
                    self._land_private(stages, payloads, report)
            with self._transaction():
                self._check_fence(landing.fence)
                for stage in stages:
                    self._land_noun(stage, report)
                self._miss_own(fresh, report)
                self._cover(fresh, landing)
                self._drift(fresh)
        return report

    def _newest(self, answered: Sequence[Answered], report: LandingReport) -> list[Answered]:
        """R6: an answer whose request started before that of what is landed is left out."""
        known = self.covered([a.subject for a in answered])
        fresh = []
        for a in answered:
            if a.subject in known and known[a.subject].request_seq > a.request_seq:
                report.stale.append(a.subject)
            else:
                fresh.append(a)
        return fresh

    def _stage(self, noun: str, answered: Sequence[Answered]) -> Stage | None:
        chosen = [a for a in answered if a.noun == noun and not a.unchanged and not a.not_found]
        if not chosen:
            return None
        stage = Stage(self._db, self._nouns[noun], chosen, spool=self._spool)
        stage.load()
        return stage

    def _land_noun(self, stage: Stage, report: LandingReport) -> None:
        merger = Merger(self._db, catalog=_MAIN, noun=stage.noun)
        tables = [t for t in self._tables if t.noun == stage.noun.name and not t.private]
        for table in tables:
            merger.merge(table)
            if stage.noun.name == "bookings" and table.full_name == "core.bookings":
                stage.forget_answers_about_changed_bookings()
        for table in tables:
            if table.merge is Merge.MERGE and not table.absent_is_gone:
                merger.forget_absences(table)
                scope = stage.absence_scope(table)
                if scope:
                    merger.note_absences(table, scope)
        report.absent += merger.absent
        for name, rows in merger.written.items():
            report.written[name] = report.written.get(name, 0) + rows

    def _land_private(
        self, stages: Sequence[Stage], payloads: Sequence[tuple[Answered, Payload]], report: LandingReport
    ) -> None:
        for stage in stages:
            merger = Merger(self._db, catalog=_PRIVATE, noun=stage.noun)
            for table in self._tables:
                if table.private and table.noun == stage.noun.name:
                    merger.merge(table)
            report.written.update(merger.written)
        if payloads:
            report.written["raw.records"] = self._land_payloads(payloads)

    def _land_payloads(self, payloads: Sequence[tuple[Answered, Payload]]) -> int:
        """Keep the payloads that differ from the last one of their key; only their hashes are compared."""
        found = self._db.execute(
            "select n.number from (select unnest($1::varchar[]) as connection_id, unnest($2::varchar[]) as resource, "
            "unnest($3::varchar[]) as key, unnest($4::varchar[]) as payload_hash, unnest($5::integer[]) as number) n "
            f"left join (select connection_id, resource, key, arg_max(payload_hash, fetched_at_utc) as latest "
            f"from {_PRIVATE}.raw.records group by all) o using (connection_id, resource, key) "
            "where o.latest is distinct from n.payload_hash",
            [
                [a.subject.connection for a, _ in payloads],
                [p.resource for _, p in payloads],
                [p.key for _, p in payloads],
                [p.digest for _, p in payloads],
                list(range(len(payloads))),
            ],
        ).fetchall()
        changed = [payloads[number] for (number,) in sorted(found)]
        if not changed:
            return 0
        import numpy  # noqa: PLC0415, ICN001 - a tenth of a second, needed only when a payload changed

        def texts(values: Iterable[str]) -> Any:  # noqa: ANN401 - an array of texts
            return numpy.array(list(values), dtype=object)

        # DuckDB reads such arrays in place, fifteen times faster than the same texts as parameters.
        self._db.register(
            "changed_payloads",
            {
                "connection_id": texts(a.subject.connection for a, _ in changed),
                "resource": texts(p.resource for _, p in changed),
                "key": texts(p.key for _, p in changed),
                "payload": texts(p.body.decode() for _, p in changed),
                "payload_hash": texts(p.digest for _, p in changed),
                "fetched_at": texts(a.fetched_at.isoformat() for a, _ in changed),
                "source": texts(str(a.source) for a, _ in changed),
            },
        )
        try:
            self._db.execute(
                f"insert into {_PRIVATE}.raw.records select connection_id, resource, key, payload, payload_hash, "
                f"fetched_at::timestamptz, source from changed_payloads"
            )
        finally:
            self._db.unregister("changed_payloads")
        return len(changed)

    def _miss_own(self, answered: Sequence[Answered], report: LandingReport) -> None:
        """A typed "not found" for a row's own id is a miss of that row; two by different requests prove it gone."""
        tables = {t.own_subject: t for t in self._tables if t.own_subject}
        for a in answered:
            table = tables.get(str(a.subject.kind))
            if table is None:
                continue
            if not a.not_found:
                # It answered for itself, changed or not: it is not missed.
                self._db.execute(
                    "delete from ops.absences where connection_id = $1 and table_name = $2 and key = $3",
                    [a.subject.connection, table.full_name, a.subject.key],
                )
                continue
            where = " and ".join(f"{c} = ${i + 2}" for i, c in enumerate(c for c in table.key if c != "connection_id"))
            live = self._db.execute(
                f"select count(*) from {table.full_name} where connection_id = $1 and {where} and not is_deleted",
                [a.subject.connection, *a.subject.parts],
            ).fetchone()
            if not live or not live[0]:
                continue
            report.absent += 1
            key = [a.subject.connection, table.full_name, a.subject.key]
            known = self._db.execute(
                "select misses, request_seq from ops.absences where connection_id = $1 and table_name = $2 and key = $3",
                key,
            ).fetchone()
            if known is None:
                self._db.execute(
                    "insert into ops.absences values ($1, $2, $3, $4, $5, 1, $6, landing_now())",
                    [*key, str(a.subject.kind), a.subject.key, a.request_seq],
                )
            elif a.request_seq > known[1]:
                self._db.execute(
                    "update ops.absences set misses = misses + 1, request_seq = $4 "
                    "where connection_id = $1 and table_name = $2 and key = $3",
                    [*key, a.request_seq],
                )

    def _cover(self, answered: Sequence[Answered], landing: Landing) -> None:
        """The watermark: one coverage row a subject, in the same transaction as its rows (R8)."""
        if not answered:
            return
        rows = [self._coverage_row(a, landing.run_id) for a in answered]
        columns = list(zip(*rows, strict=True))
        types = [
            "varchar",
            "varchar",
            "varchar",
            "varchar",
            "varchar",
            "varchar",
            "date",
            "date",
            "timestamptz",
            "varchar",
            "bigint",
            "boolean",
            "varchar",
            "bigint",
            "varchar",
            "varchar",
            "boolean",
        ]
        select = ", ".join(f"unnest(${i + 1}::{t}[]) as c{i}" for i, t in enumerate(types))
        self._db.execute(f"create or replace temp table covering as select {select}", [list(c) for c in columns])
        # An equal answer keeps the findings of the one it equals.
        self._db.execute(
            "update covering n set c10 = o.row_count, c11 = o.is_complete, c12 = o.missing_capabilities "
            "from ops.coverage o where n.c16 and o.connection_id = n.c0 and o.resource = n.c1 and o.key = n.c2"
        )
        self._db.execute(
            "delete from ops.coverage o using covering n "
            "where o.connection_id = n.c0 and o.resource = n.c1 and o.key = n.c2"
        )
        # While rows are missed, an equal answer must be looked at again: it may be the second proof.
        self._db.execute(
            "insert into ops.coverage select c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, "
            "case when exists (select 1 from ops.absences a where a.connection_id = c0 and "
            "((a.resource = c1 and a.subject_key = c2) or (c1 = 'products' and a.table_name = 'core.products') "
            "or (c1 = 'products' and a.resource = 'product') "
            "or (c1 = 'bookings' and a.table_name = 'core.bookings'))) then null else c14 end, c15 from covering"
        )

    @staticmethod
    def _coverage_row(a: Answered, run_id: str) -> tuple[Any, ...]:
        parts = a.subject.parts
        kind = a.subject.kind
        product = parts[0] if kind in (SubjectKind.PRODUCT, SubjectKind.AVAILABILITY) else None
        option = parts[1] if kind is SubjectKind.AVAILABILITY else None
        month = parts[-1] if kind in (SubjectKind.AVAILABILITY, SubjectKind.BOOKINGS) else None
        return (
            a.subject.connection,
            str(kind),
            a.subject.key,
            product,
            option,
            month,
            a.window.start if a.window else None,
            a.window.end if a.window else None,
            a.fetched_at,
            str(a.source),
            a.row_count,
            a.complete,
            ",".join(a.missing_capabilities),
            a.request_seq,
            a.answer_hash if a.complete else None,
            run_id,
            a.unchanged,
        )

    def _drift(self, answered: Sequence[Answered]) -> None:
        found: dict[tuple[str, str, str, str], int] = {}
        for a in answered:
            for d in a.drift:
                key = (d.connection, d.resource, d.kind, d.name)
                found[key] = found.get(key, 0) + d.count
        for key, count in found.items():
            updated = self._db.execute(
                "update ops.schema_drift set seen_count = seen_count + $5, last_seen_at_utc = landing_now() "
                "where connection_id = $1 and resource = $2 and kind = $3 and name = $4",
                [*key, count],
            ).fetchone()
            if not updated or not updated[0]:
                self._db.execute(
                    "insert into ops.schema_drift values ($1, $2, $3, $4, $5, landing_now(), landing_now())",
                    [*key, count],
                )

    def bury(self, absences: Sequence[Absence], *, now: datetime, fence: int) -> int:
        """Mark proven deletions; see `Destination`."""
        tables = {t.full_name: t for t in self._tables}
        with self._lock, translated(self.path):
            self._db.execute("set variable landing_now = $1::timestamptz", [now])
            with self._transaction():
                bury_private(self._db, tables, absences, catalog=_PRIVATE)
            with self._transaction():
                self._check_fence(fence)
                return bury(self._db, tables, absences)

    def write_log(self, table: str, rows: Iterable[Mapping[str, Any]], *, replace: bool = False) -> None:
        """Upsert rows of a log table; see `Destination`."""
        target = next(t for t in self._tables if t.full_name == table)
        columns = [c.name for c in target.columns]
        with self._lock, translated(self.path), self._transaction():
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

    # -- publishing ---------------------------------------------------------------------------------------------

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction, e.g. the marts' views."""
        with self._lock, translated(self.path), self._transaction():
            for statement in statements:
                self._db.execute(statement)

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
