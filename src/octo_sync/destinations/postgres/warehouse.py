"""The warehouse in PostgreSQL: schemas of one database. `landing`, `raw` and `private` are landed into, the others published.

A landing is one transaction of the server: it begins with a lock on its connections and the check of the fence, copies the
rows that the answers can touch into a DuckDB in memory, runs there the very statements that a DuckDB warehouse runs,
and writes what is new, changed or gone. Nothing is remembered between landings, so a session that is lost at any moment
costs nothing but doing it again; a commit whose answer was lost is recognised by its number in `ops.writer`.
Where SQL here says `core` or `ops` it is about `landing` (`landed`).
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from octo_sync.destinations import digests
from octo_sync.destinations.base import Absence, Answered, Fence, Landing, LandingReport, Rows
from octo_sync.destinations.duckdb.carry_over import OWN, rows_to_move
from octo_sync.destinations.duckdb.transactions import translated as translated_duckdb
from octo_sync.destinations.landing.moved_departures import FEW, new_keys
from octo_sync.destinations.landing.tombstones import bury, bury_private
from octo_sync.destinations.migrations import Step
from octo_sync.destinations.postgres import Session
from octo_sync.destinations.postgres.landed import plain
from octo_sync.destinations.postgres.publish import PostgresDraft, drafting
from octo_sync.destinations.postgres.rows import numbered, rows_of, run_in
from octo_sync.destinations.postgres.schema import migrate
from octo_sync.destinations.postgres.scope import Conditions, of_absences, of_answers, of_months, of_moved
from octo_sync.destinations.postgres.session import STUCK_AFTER
from octo_sync.destinations.postgres.sessions import Sessions, lock_out, take_over, take_turn
from octo_sync.destinations.postgres.workbench import THREADS, Workbench
from octo_sync.destinations.relations import Run, sql
from octo_sync.destinations.warehouse import Destination
from octo_sync.tables.schema import Noun, Table

T = TypeVar("T")

_FIRST = {"supplier": "core.suppliers"} | {noun: f"core.{noun}" for noun in ("products", "availability", "bookings")}
"""The table of each noun that has rows if any of its tables has."""
_TELLING = ("core.bookings", "core.booking_unit_items", "ops.recon_results", "ops.quarantine", "ops.runs")
"""Tables whose texts may repeat a person's."""


class PostgresWarehouse(Destination):
    """A warehouse in one PostgreSQL database.

    Args:
        address: `postgresql://…`; what it lacks, such as the password, comes from libpq's own environment and files.
        spool: A folder for rows on their way; made when it is not there, and this process's alone.
        tables: What to keep; from `octo_sync.tables`.
        nouns: What can be staged.
        now: When it is opened, for the record of migrations.
        lock_timeout: Seconds to wait for a lock that somebody else holds before beginning again.
        waits: Seconds between attempts when the server is away or a lock is held; afterwards it is given up.
        opening_waits: The same while it is opened, for who tries that again anyway.
        stuck_after: Seconds that a transaction may stand still before the server ends it.
    """

    private = ""
    _spelling = digests.POSTGRES

    def __init__(
        self,
        address: str,
        *,
        spool: Path,
        tables: Sequence[Table],
        nouns: Mapping[str, Noun],
        now: datetime,
        lock_timeout: float = 10.0,
        waits: Sequence[float] = (0.2, 0.5, 1, 2, 5, 10, 20),
        opening_waits: Sequence[float] | None = None,
        stuck_after: float = STUCK_AFTER,
    ) -> None:
        self._sessions = Sessions(address, lock_timeout=lock_timeout, waits=waits, stuck_after=stuck_after)
        self.name = self._sessions.name
        self._spool = spool
        self._tables, self._nouns = tuple(tables), nouns
        self._doubtful: int | None = None
        """Number of a landing whose commit was sent and not answered."""
        with translated_duckdb(spool):
            spool.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left_over in (*spool.glob("*.csv"), *spool.glob("*.ndjson"), *spool.glob("tmp/*")):
                left_over.unlink(missing_ok=True)
            self._bench = Workbench(self._tables, spool=spool, memory="256MB")
        try:
            self.migrated = self._sessions.persist(lambda session: self._migrated(session, now), waits=opening_waits)
            """The steps of the schema that were taken when it was opened."""
        except BaseException:
            self.close()
            raise

    def _migrated(self, session: Session, now: datetime) -> Sequence[Step]:
        with plain(session):
            return migrate(session, self._tables, now=now, name=self.name)

    def close(self) -> None:
        """Let go of both sessions; everything committed is in the database."""
        self._sessions.close()
        with self._sessions.lock:
            self._bench.close()

    # -- writing ------------------------------------------------------------------------------------------------

    def _read(self, work: "Callable[[Run], T]") -> T:
        return self._sessions.read(lambda session: work(run_in(session)))

    def _write(self, fence: Fence, work: "Callable[[Run], T]") -> T:
        def fenced(session: Session) -> T:
            lock_out(session, fence, self.name)
            return work(run_in(session))

        return self._sessions.write(fenced)

    def _take_over(self, connections: Collection[str], work: Callable[[Run], T]) -> T:
        def taken(session: Session) -> T:
            take_over(session, connections)
            return work(run_in(session))

        return self._sessions.write(taken)

    @contextlib.contextmanager
    def _once(self, fence: Fence) -> Iterator[Run]:
        with self._sessions.once() as session:
            lock_out(session, fence, self.name)
            yield run_in(session)

    def land(self, landing: Landing) -> LandingReport:
        """Land everything or nothing; see `Destination`."""

        def work(session: Session) -> LandingReport:
            bring = partial(self._bring, session, run_id=landing.run_id)
            work = self._work(self._bench.db, run_in(session), landing, bring=bring)
            self._bench.use_threads(1 if work.is_small else THREADS)
            work.stage()
            if work.has_private:
                work.land_private()
            work.land()
            return work.report

        return self._numbered(landing.fence, work)

    def _numbered(self, fence: Fence, work: Callable[[Session], T]) -> T:
        """Work out in the workbench and write what differs, in one transaction that has a number.

        When the answer to its commit is lost, the number tells whether it was kept: then it is not done twice.
        """
        kept: list[T] = []
        self._doubtful = None

        def whole(session: Session) -> T:
            with translated_duckdb(self._spool):
                try:
                    session.execute("begin")
                    landed = take_turn(session, fence, self.name)
                    if kept and landed == self._doubtful:
                        session.execute("rollback")
                        return kept[0]
                    kept.clear()
                    result = work(session)
                    self._bench.send(session)
                    # For those alone whose landing it is.
                    whose = "" if isinstance(fence, int) else " where coalesce(connection_id, '') = any($2)"
                    noted = [landed + 1] if isinstance(fence, int) else [landed + 1, list(fence)]
                    session.execute(f"update ops.writer set landed = $1{whose}".encode(), noted)
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

        with self._sessions.lock:
            return self._sessions.persist(whole)

    def move_in(self, files: Mapping[bool, Path], fence: int) -> int:
        """Take every row of a project's files into these tables, which are empty; how many. All of them or none.

        Args:
            files: Whether it is the private one → the file, of this program's schema and open nowhere.
            fence: Of who owns this warehouse.
        """

        def work(session: Session) -> int:
            moved = 0
            for is_private, file in files.items():
                tables = [t for t in self._tables if t.private is is_private]
                with rows_to_move(self._bench.db, file, tables) as moving:
                    moved += sum(self._bench.copy(session, table, rows) for table, rows in moving)
            return moved

        return self._numbered(fence, work)

    def move_out(self, files: Mapping[bool, Path]) -> None:
        """Copy every row that has landed into files, which any warehouse's `move_in` takes.

        Args:
            files: Whether it is the private one → where it is made, in a folder of its own.
        """
        tables = [t for t in self._tables if t.full_name not in OWN]

        def work(session: Session) -> None:
            for file in files.values():
                file.unlink(missing_ok=True)
            spool = files[False].parent
            with contextlib.closing(Workbench(tables, spool=spool, memory="512MB", files=files)) as made:
                for table in tables:
                    made.fill(session, table)

        with translated_duckdb(files[False]):
            self._sessions.write(work)

    def _bring(self, session: Session, answered: Sequence[Answered], run_id: str) -> None:
        there = ", ".join(f"exists (select 1 from {table})" for table in _FIRST.values())
        found = session.execute(f"select {there}".encode()).fetchone() or ()
        empty = frozenset(noun for noun, has in zip(_FIRST, found, strict=True) if not has)
        brought = of_answers(answered, self._tables, self._staged_bookings, empty)
        self._bench.renew(session, brought)
        if "core.availability" in brought and self._bench.has("staged_availability"):
            self._bring_moved(session, brought, run_id)

    def _bring_moved(self, session: Session, brought: Conditions, run_id: str) -> None:
        """Departures that are new on their days may be there on others; then also the months that they leave."""
        keys = new_keys(self._bench.db)
        if len(keys) > FEW:
            # Those of options that an earlier run landed something of; see `moved_departures.are_elsewhere`.
            asked = [list(column) for column in zip(*{key[:3] for key in keys}, strict=True)]
            options = set(session.execute(sql("options_landed_before"), [run_id, *asked]).fetchall())
            keys = [key for key in keys if key[:3] in options]
        if not keys:
            return
        if self._bench.renew(session, of_moved(keys, self._tables, brought)):
            self._bench.renew(session, of_months(keys, brought))

    def _staged_bookings(self) -> list[str]:
        if not self._bench.has("staged_bookings"):
            return []
        return [uuid for (uuid,) in self._bench.db.execute("select distinct uuid from staged_bookings").fetchall()]

    def bury(self, absences: Sequence[Absence], *, now: datetime, fence: Fence) -> int:
        """Mark proven deletions; see `Destination`."""
        tables = {t.full_name: t for t in self._tables}

        def work(session: Session) -> int:
            if absences:
                self._bench.renew(session, of_absences(absences, self._tables))
            self._bench.db.execute("set variable landing_now = $1::timestamptz", [now])
            bury_private(self._bench.db, tables, absences)
            return bury(self._bench.db, tables, absences)

        return self._numbered(fence, work)

    def shed(self, *, core: bool) -> None:
        """Have the server write the tables anew; see `Destination`."""
        self._written_anew(["private.booking_contacts", "raw.records", *(_TELLING if core else ())])

    def shed_published(self) -> None:
        """The same for what readers have, with the marts that are tables; see `Destination`."""
        marts = [name for (name,) in self._read(lambda run: run(sql("mart_tables"), ()))]
        self._written_anew([*_TELLING, *sorted(marts)], published=True)

    def _written_anew(self, tables: Sequence[str], *, published: bool = False) -> None:
        def work(session: Session, table: str) -> None:
            with plain(session) if published else contextlib.nullcontext():
                session.execute(f"vacuum (full, analyze) {table}".encode())

        with self._sessions.lock:
            # Among the planner's samples of columns are values that no row has any more. A role that does not own the
            # database is warned, and passed over.
            for table in (*tables, "pg_catalog.pg_statistic"):
                self._sessions.persist(partial(work, table=table))

    def prune(self, **before: datetime | None) -> int:
        """Remove old payloads, runs, versions, and notes that say the same; see `Destination`."""
        self._write(self._fence, lambda run: run(sql("thin_changes"), ()))
        return super().prune(**before)

    # -- reading ------------------------------------------------------------------------------------------------

    def query(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = (), *, limit: int | None = None) -> Rows:
        """Run one reading statement; see `Destination`."""
        text, values = numbered(sql, parameters)
        return self._sessions.read(lambda session: rows_of(session.execute(text.encode(), values or None), limit))

    # -- publishing ---------------------------------------------------------------------------------------------

    def drafting(
        self, target: Path | None = None, *, contacts: Path | None = None
    ) -> AbstractContextManager[PostgresDraft]:
        """Marts beside those that readers see, who need no files; see `Destination`."""
        del target, contacts
        return drafting(self._sessions, self._fence, self._tables)
