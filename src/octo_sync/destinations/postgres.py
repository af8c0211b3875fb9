"""The warehouse in PostgreSQL: schemas `core`, `raw`, `ops`, `private` and `marts` of one database.

A landing is one transaction of the server: it begins with a lock that only writers take and the check of the fence, copies
the rows that the answers can touch into a DuckDB in memory, runs there the very statements that a DuckDB warehouse runs,
and writes what is new, changed or gone. Nothing is remembered between landings, so a session that is lost at any moment
costs nothing but doing it again; a commit whose answer was lost is recognised by its number in `ops.writer`.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from octo_sync.destinations import postgres_digests
from octo_sync.destinations.base import (
    Absence,
    Answered,
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
from octo_sync.destinations.postgres_marts import PostgresDraft, drafting
from octo_sync.destinations.postgres_rows import numbered, rows_of
from octo_sync.destinations.postgres_schema import migrate
from octo_sync.destinations.postgres_scope import of_absences, of_answers
from octo_sync.destinations.postgres_session import Passing, connect, place, translated
from octo_sync.destinations.postgres_workbench import MAIN, PRIVATE, Workbench
from octo_sync.destinations.transactions import translated as translated_duckdb
from octo_sync.errors import WarehouseError, WriterFenced
from octo_sync.model import Subject, Window
from octo_sync.schema import Merge, Noun, Table

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresWarehouse"]

T = TypeVar("T")

_FIRST = {"supplier": "core.suppliers", "products": "core.products"} | {
    "availability": "core.availability",
    "bookings": "core.bookings",
}
"""The table of each noun that has rows if any of its tables has."""


class PostgresWarehouse:
    """A warehouse in one PostgreSQL database.

    Args:
        address: `postgresql://…`; what it lacks, such as the password, comes from libpq's own environment and files.
        spool: A folder for rows on their way; made when it is not there, and this process's alone.
        tables: What to keep; from `octo_sync.tables`.
        nouns: What can be staged.
        now: When it is opened, for the record of migrations.
        memory: Memory limit of the DuckDB that works a landing out; beyond it spills to `spool`.
        lock_timeout: Seconds to wait for a lock that somebody else holds before beginning again.
        waits: Seconds between attempts when the server is away or a lock is held; afterwards it is given up.
    """

    def __init__(
        self,
        address: str,
        *,
        spool: Path,
        tables: Sequence[Table],
        nouns: Mapping[str, Noun],
        now: datetime,
        memory: str = "256MB",
        threads: int = 2,
        lock_timeout: float = 10.0,
        waits: Sequence[float] = (0.2, 0.5, 1, 2, 5, 10, 20),
    ) -> None:
        self.name = place(address)
        self._address, self._spool, self._threads = address, spool, threads
        self._tables, self._nouns = tuple(tables), nouns
        self._lock, self._reader_lock = threading.RLock(), threading.RLock()
        self._lock_timeout, self._waits = lock_timeout, tuple(waits)
        self._closing = threading.Event()
        self._session: psycopg.Connection[Any] | None = None
        self._reading: psycopg.Connection[Any] | None = None
        self._doubtful: int | None = None
        """Number of a landing whose commit was sent and not answered."""
        with translated_duckdb(spool):
            spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left_over in (*spool.glob("*.csv"), *spool.glob("*.ndjson"), *spool.glob("tmp/*")):
                left_over.unlink(missing_ok=True)
            self._bench = Workbench(self._tables, spool=spool, memory=memory, threads=threads)
        try:
            self.migrated = self._persist(
                lambda session: migrate(session, self._tables, now=now, name=self.name), read_only=False
            )
            """The steps of the schema that were taken when it was opened."""
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of both sessions; everything committed is in the database."""
        self._closing.set()
        for session in (self._session, self._reading):
            if session is not None:
                with contextlib.suppress(Exception):
                    session.close()
        with self._lock:
            self._bench.close()

    # -- sessions -----------------------------------------------------------------------------------------------

    def _persist(self, work: "Callable[[psycopg.Connection[Any]], T]", *, read_only: bool) -> T:
        """Do it, and again when the server was away or a lock was held; each time from its beginning."""
        for wait in (*self._waits, None):
            try:
                session = self._opened(read_only=read_only)
                with translated(self.name):
                    return work(session)
            except Passing as passing:
                self._let_go_if_broken()
                if wait is None or self._closing.wait(wait):
                    raise passing.error from passing.__cause__
        raise AssertionError

    def _opened(self, *, read_only: bool) -> "psycopg.Connection[Any]":
        if self._closing.is_set():
            raise WarehouseError(f"{self.name} was closed; open it again.")
        session = self._reading if read_only else self._session
        if session is None or session.closed:
            session = connect(self._address, lock_timeout=self._lock_timeout, read_only=read_only)
            if read_only:
                self._reading = session
            else:
                self._session = session
        return session

    def _let_go_if_broken(self) -> None:
        for session in (self._session, self._reading):
            if session is not None and session.broken:
                session.close()

    def _read(self, work: "Callable[[psycopg.Connection[Any]], T]") -> T:
        with self._reader_lock:
            return self._persist(work, read_only=True)

    def _write(self, work: "Callable[[psycopg.Connection[Any]], T]") -> T:
        """One transaction, begun anew as a whole when it fails for a passing reason."""

        def whole(session: "psycopg.Connection[Any]") -> T:
            with session.transaction():
                return work(session)

        with self._lock:
            return self._persist(whole, read_only=False)

    # -- writing ------------------------------------------------------------------------------------------------

    def claim_writer(self, fence: int, owner: str) -> None:
        """Take over as the writer; see `Destination`."""

        def claim(session: "psycopg.Connection[Any]") -> None:
            landed = self._check_fence(session, fence)
            session.execute("delete from ops.writer")
            session.execute("insert into ops.writer values ($1, $2, $3)", [fence, owner, landed])

        self._write(claim)

    def _check_fence(self, session: "psycopg.Connection[Any]", fence: int) -> int:
        """Keep other writers out until the transaction ends; the number of the last landing.

        The lock stands in nobody's way but writers'.
        """
        session.execute("lock table ops.writer in share row exclusive mode")
        row = session.execute("select max(fence), coalesce(max(landed), 0) from ops.writer").fetchone() or (None, 0)
        if row[0] is not None and row[0] > fence:
            raise WriterFenced(
                f"A newer writer (token {row[0]}) took over {self.name}; this one (token {fence}) stops. "
                f"Nothing of its landing was kept."
            )
        return int(row[1])

    def land(self, landing: Landing) -> LandingReport:
        """Land everything or nothing; see `Destination`."""

        def work(session: "psycopg.Connection[Any]") -> LandingReport:
            subjects = [a.subject for a in landing.answered]
            work = LandingWork(
                self._bench.db,
                landing,
                covered=self._covered(session, subjects),
                tables=self._tables,
                nouns=self._nouns,
                spool=self._spool,
                main=MAIN,
                private=PRIVATE,
                filled=set(),
                bring=lambda answered: self._bring(session, answered),
            )
            self._bench.use_threads(1 if work.is_small else self._threads)
            work.stage()
            if work.has_private:
                work.land_private()
            work.land()
            return work.report

        return self._numbered(landing.fence, work)

    def _numbered(self, fence: int, work: "Callable[[psycopg.Connection[Any]], T]") -> T:
        """Work out in the workbench and write what differs, in one transaction that has a number.

        When the answer to its commit is lost, the number tells whether it was kept: then it is not done twice.
        """
        kept: list[T] = []
        self._doubtful = None

        def whole(session: "psycopg.Connection[Any]") -> T:
            with translated_duckdb(self._spool):
                try:
                    session.execute("begin")
                    landed = self._check_fence(session, fence)
                    if kept and landed == self._doubtful:
                        session.execute("rollback")
                        return kept[0]
                    kept.clear()
                    result = work(session)
                    self._bench.send(session)
                    session.execute("update ops.writer set landed = $1", [landed + 1])
                    kept.append(result)
                    self._doubtful = landed + 1
                    session.execute("commit")
                except BaseException:
                    if not session.closed:
                        with contextlib.suppress(Exception):
                            session.execute("rollback")
                    raise
                finally:
                    self._bench.clear()
                return result

        with self._lock:
            return self._persist(whole, read_only=False)

    def _bring(self, session: "psycopg.Connection[Any]", answered: Sequence[Answered]) -> None:
        there = ", ".join(f"exists (select 1 from {table})" for table in _FIRST.values())
        found = session.execute(f"select {there}".encode()).fetchone() or ()
        empty = frozenset(noun for noun, has in zip(_FIRST, found, strict=True) if not has)
        self._bench.touched(t.full_name for t in self._tables)
        self._bench.renew(session, of_answers(answered, self._tables, self._staged_bookings, empty))

    def _staged_bookings(self) -> list[str]:
        there = "select 1 from duckdb_tables() where temporary and table_name = 'staged_bookings'"
        if not self._bench.db.execute(there).fetchone():
            return []
        return [uuid for (uuid,) in self._bench.db.execute("select distinct r.uuid from staged_bookings").fetchall()]

    def bury(self, absences: Sequence[Absence], *, now: datetime, fence: int) -> int:
        """Mark proven deletions; see `Destination`."""
        tables = {t.full_name: t for t in self._tables}

        def work(session: "psycopg.Connection[Any]") -> int:
            keys = [[str(part) for part in json.loads(a.key)] for a in absences]
            if absences:
                self._bench.renew(session, of_absences(absences, keys, self._tables))
            self._bench.db.execute("set variable landing_now = $1::timestamptz", [now])
            bury_private(self._bench.db, tables, absences, catalog=PRIVATE)
            return bury(self._bench.db, tables, absences)

        return self._numbered(fence, work)

    def write_log(self, table: str, rows: Iterable[Mapping[str, Any]], *, replace: bool = False) -> None:
        """Upsert rows of a log table; see `Destination`."""
        target = next(t for t in self._tables if t.full_name == table)
        columns, rows = [c.name for c in target.columns], list(rows)
        where = " and ".join(f"{c} = ${i + 1}" for i, c in enumerate(target.key))
        marks = ", ".join(f"${i + 1}" for i in range(len(columns)))

        def work(session: "psycopg.Connection[Any]") -> None:
            if replace:
                session.execute(f"delete from {table}".encode())
            with session.cursor() as cursor:
                cursor.executemany(
                    f"delete from {table} where {where}".encode(), [[row[c] for c in target.key] for row in rows]
                )
                cursor.executemany(
                    f"insert into {table} ({', '.join(columns)}) values ({marks})".encode(),
                    [[row.get(c) for c in columns] for row in rows],
                )

        self._write(work)

    @contextlib.contextmanager
    def scrubbing(self, fence: int) -> Iterator[Scrubber]:
        """A transaction that takes persons out; see `Destination`."""
        with self._lock:
            self._persist(lambda session: session.execute("select 1"), read_only=False)
            session = self._opened(read_only=False)

            def run(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
                cursor = session.execute(sql.encode(), list(parameters))
                return cursor.fetchall() if cursor.description else []

            try:
                with translated(self.name), session.transaction():
                    self._check_fence(session, fence)
                    yield Scrubber(run, "")
            except Passing as passing:
                raise passing.error from passing.__cause__

    def shed(self, *, core: bool) -> None:
        """Have the server write the tables anew; see `Destination`."""
        names = ["private.booking_contacts", "raw.records"]
        if core:
            names += ["core.bookings", "core.booking_unit_items"]
        with self._lock:
            for name in names:
                self._persist(_vacuum(name), read_only=False)

    def prune(self, *, raw_before: datetime | None, runs_before: datetime | None) -> int:
        """Remove old payloads and runs; see `Destination`."""
        same = "n.connection_id = r.connection_id and n.resource = r.resource and n.key = r.key"
        newer = f"select 1 from raw.records n where {same} and n.fetched_at_utc > r.fetched_at_utc"

        def work(session: "psycopg.Connection[Any]") -> int:
            gone = 0
            for statement, before in (
                (f"delete from raw.records r where fetched_at_utc < $1 and exists ({newer})", raw_before),
                ("delete from ops.runs where started_at_utc < $1 and ended_at_utc is not null", runs_before),
            ):
                if before is not None:
                    gone += session.execute(statement.encode(), [before]).rowcount
            return gone

        return self._write(work)

    def sizes(self) -> Mapping[str, FileSize]:
        """None: the server's autovacuum looks after its files."""
        return {}

    def rewrite(self, file: str, *, within: float) -> int:
        """There is no such file; see `Destination`."""
        raise WarehouseError(f"{self.name} has no file {file}; its server looks after its files ({within:g} s unused).")

    # -- reading ------------------------------------------------------------------------------------------------

    def highest_numbers(self) -> tuple[int, int]:
        """The highest request number and fence seen; see `Destination`."""
        row = self._read(
            lambda s: s.execute(
                "select (select coalesce(max(request_seq), 0) from ops.coverage), "
                "(select coalesce(max(fence), 0) from ops.writer)"
            ).fetchone()
        ) or (0, 0)
        return int(row[0]), int(row[1])

    def covered(self, subjects: Collection[Subject]) -> Mapping[Subject, Covered]:
        """The last landing of each subject; see `Destination`."""
        return self._read(lambda session: self._covered(session, subjects))

    @staticmethod
    def _covered(session: "psycopg.Connection[Any]", subjects: Collection[Subject]) -> Mapping[Subject, Covered]:
        wanted = {(s.connection, str(s.kind), s.key): s for s in subjects}
        if not wanted:
            return {}
        found = session.execute(
            "select connection_id, resource, key, request_seq, answer_hash, window_start, window_end, row_count "
            "from ops.coverage where (connection_id, resource, key) in "
            "(select * from unnest($1::text[], $2::text[], $3::text[]))",
            [list(column) for column in zip(*wanted, strict=True)],
        ).fetchall()
        return {
            wanted[row[0], row[1], row[2]]: Covered(row[3], row[4], Window(row[5], row[6]) if row[5] else None, row[7])
            for row in found
        }

    def known_bookings(self, connection: str, window: Window) -> KnownBookings:
        """What live bookings of a window were landed from; see `Destination`."""
        day = timedelta(days=1)
        found = self._read(
            lambda session: session.execute(
                "select payload_digest, booking_uuid, local_date, utc_created_at::date from core.bookings "
                "where connection_id = $1 and payload_digest is not null and not is_deleted and "
                "(local_date between $2 and $3 or utc_created_at >= $4::date and utc_created_at < $5::date)",
                [connection, window.start, window.end, window.start - day, window.end + 2 * day],
            ).fetchall()
        )
        return {digest: (uuid, travel, created) for digest, uuid, travel, created in found}

    def absences(self) -> list[Absence]:
        """Rows missed at present; see `Destination`."""
        columns = "connection_id, table_name, key, resource, subject_key, misses"
        found = self._read(lambda s: s.execute(f"select {columns} from ops.absences".encode()).fetchall())
        return [Absence(c, t, k, Subject.from_key(c, r, key), m) for c, t, k, r, key, m in sorted(found)]

    def live_rows(self) -> Mapping[tuple[str, str], int]:
        """Live rows per connection and merged table; see `Destination`."""
        tables = [t.full_name for t in self._tables if t.merge is Merge.MERGE and not t.private]
        sql = " union all ".join(
            f"select connection_id, '{t}', count(*) from {t} where not is_deleted group by 1" for t in tables
        )
        return {(c, t): n for c, t, n in self._read(lambda s: s.execute(sql.encode()).fetchall())}

    def catalog(self) -> Catalog:
        """Options offered now; see `Destination`."""
        sql = (
            "select o.connection_id, o.product_id, o.option_id, p.time_zone from core.options o "
            "join core.products p using (connection_id, product_id) where not o.is_deleted and not p.is_deleted"
        )
        found = self._read(lambda session: session.execute(sql.encode()).fetchall())
        return [CatalogOption(*row) for row in sorted(found, key=lambda row: row[:3])]

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement; see `Destination`."""
        text, values = numbered(sql, parameters)
        return self._read(lambda session: rows_of(session.execute(text.encode(), values or None), limit))

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Count and hash live rows; see `Destination`."""
        chosen = [
            t for t in self._tables if t.schema == "core" and t.noun and (tables is None or t.full_name in tables)
        ]
        return self._read(lambda session: [postgres_digests.of(session, t) for t in chosen])

    # -- publishing ---------------------------------------------------------------------------------------------

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction; it is not begun anew, because statements may be given only once."""

        def work(session: "psycopg.Connection[Any]") -> None:
            with session.transaction():
                for statement in statements:
                    session.execute(statement.encode())

        with self._lock:
            try:
                with translated(self.name):
                    work(self._opened(read_only=False))
            except Passing as passing:
                raise passing.error from passing.__cause__

    def drafting(self) -> AbstractContextManager[PostgresDraft]:
        """Marts beside those that readers see; see `Destination`."""
        return drafting(self._address, self.name, lock_timeout=self._lock_timeout)

    def publish(self, target: Path, *, contacts: Path | None = None) -> int:
        """Nothing is left to do: what a draft committed is what readers see; bytes that the tables take."""
        del target, contacts
        row = self.query(
            "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c "
            "join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('core', 'ops', 'marts') "
            "and c.relkind in ('r', 'm')"
        ).rows[0]
        return int(row[0])


def _vacuum(table: str) -> "Callable[[psycopg.Connection[Any]], object]":
    return lambda session: session.execute(f"vacuum (full) {table}".encode())
