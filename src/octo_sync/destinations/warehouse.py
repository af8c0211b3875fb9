"""What a warehouse must do: the one Protocol every destination keeps, with what all of them do in the same words.

A destination owns SQL and transactions, nothing else: it neither fetches nor decides. All of it is synchronous and called
from one thread at a time; reading methods may be called while nothing lands.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import duckdb

from octo_sync.destinations import base, digests
from octo_sync.destinations.erasing import ContactKey, Scrubber
from octo_sync.destinations.landing.steps import LandingWork
from octo_sync.destinations.migrations import Step
from octo_sync.destinations.relations import Run, given, sql
from octo_sync.errors import WarehouseError, WriterFenced
from octo_sync.model import Subject, Window
from octo_sync.tables.schema import Merge, Noun, Table

T = TypeVar("T")
_WRITER = {"fence": "bigint", "owner": "text", "landed": "bigint", "connection_id": "text"}


class Destination(base.Scripted, Protocol):
    """A warehouse. Its own scripts make no marts: those are made in a draft, see `drafting`.

    An engine says how one statement is read, and how some are written; what is asked and told in the same words is here.
    """

    name: str
    """What sentences call it."""
    private: str
    """What stands before the names of the private tables in a query."""
    migrated: Sequence[Step]
    """The steps of the schema that were taken when it was opened."""
    _tables: Sequence[Table]
    _nouns: Mapping[str, Noun]
    _spool: Path
    """A folder for what is on its way."""
    _spelling: digests.Spelling
    _fence: base.Fence = 0
    """The token of the last claim; a warehouse that anybody claimed takes nothing without one."""

    def _read(self, work: Callable[[Run], T]) -> T:
        """Statements that only read; what is committed, also while something lands."""

    def _write(self, fence: base.Fence, work: Callable[[Run], T]) -> T:
        """One transaction, in which the fence was checked first."""

    def _take_over(self, connections: Collection[str], work: Callable[[Run], T]) -> T:
        """The same by who has no token of these connections yet: nobody else takes them over or lands into them meanwhile."""
        del connections
        return self._write({}, work)

    def _once(self, fence: base.Fence) -> AbstractContextManager[Run]:
        """One transaction that is not begun anew, because what is done in it is given only once; a fence is checked first.

        With `{}` there is none to be checked.
        """

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction, beside which nothing lands."""
        with self._once({}) as run:
            for statement in statements:
                run(statement, ())

    # -- writing ------------------------------------------------------------------------------------------------

    def claim_writer(self, fence: base.Fence, owner: str) -> None:
        """Take over as the writer: what carries no token of its own, such as a log, is written with this one.

        Of a connection's, only what belongs to the connection is taken over.

        Raises:
            WriterFenced: A writer with a higher token was here.
        """
        parts = {} if isinstance(fence, int) else fence

        def claim(run: Run) -> None:
            rows = run("select coalesce(connection_id, ''), fence, landed from ops.writer", ())
            found = {connection: token for connection, token, _ in rows}
            for connection, token in parts.items():
                if (newest := max(found.get("", token), found.get(connection, token))) > token:
                    raise WriterFenced(
                        f"A newer writer (token {newest}) took over {self.name}; this one (token {token}) stops."
                    )
            ours = "true" if isinstance(fence, int) else "coalesce(connection_id, '') in (select unnest($1::varchar[]))"
            run(f"delete from ops.writer where {ours}", [list(parts)] if parts else ())
            landed = max((number for _, _, number in rows if number is not None), default=None)
            tokens = {"": fence} if isinstance(fence, int) else parts
            select, values = given(_WRITER, [(token, owner, landed, name) for name, token in tokens.items()])
            run(f"insert into ops.writer ({', '.join(_WRITER)}) {select}", values)

        if isinstance(fence, int):
            self._write(fence, claim)
        else:
            self._take_over(parts, claim)
        if not parts or "" in parts:
            self._fence = fence

    def land(self, landing: base.Landing) -> base.LandingReport:
        """Land everything in one transaction, together with its coverage (R8), or nothing.

        Raises:
            WriterFenced: A newer writer took over; nothing was kept.
            WarehouseError: It cannot be written; nothing was kept.
        """

    def _work(self, db: duckdb.DuckDBPyConnection, run: Run, landing: base.Landing, **more: Any) -> LandingWork:  # noqa: ANN401
        """What a landing has to do on the DuckDB in which it is worked out; `run` asks what has landed, `more` is as there."""
        last = covered(run, [a.subject for a in landing.answered])
        return LandingWork(db, landing, covered=last, tables=self._tables, nouns=self._nouns, spool=self._spool, **more)

    def bury(self, absences: Sequence[base.Absence], *, now: datetime, fence: base.Fence) -> int:
        """Mark proven deletions, with what hangs on them, in one transaction; how many rows were marked.

        What was shown again since, and is missed no longer, stays.
        """

    def write_log(self, table: str, rows: Iterable[Mapping[str, Any]], *, replace: bool = False) -> None:
        """Upsert rows of a log table by its key, the last of each; with `replace` the table holds just these afterwards.

        As a list of values per column, in one statement: row by row, 4,000 differences took DuckDB 20 s and each thousand
        more took longer; as lists 100,000 take 4 s of processor time.

        Raises:
            WriterFenced: A newer writer took over; nothing was changed.
        """
        target = next(t for t in self._tables if t.full_name == table)
        types = {column.name: column.type for column in target.columns}
        last = {tuple(row[name] for name in target.key): row for row in rows}

        def lists(names: Collection[str]) -> tuple[str, list[list[Any]]]:
            return given({name: types[name] for name in names}, [[row.get(n) for n in names] for row in last.values()])

        def write(run: Run) -> None:
            if replace:
                run(f"delete from {table}", ())
            elif last:
                select, values = lists(target.key)
                run(f"delete from {table} where ({', '.join(target.key)}) in ({select})", values)
            if last:
                select, values = lists(types)
                run(f"insert into {table} ({target.names}) {select}", values)

        self._write(self._fence, write)

    def erased(self) -> list[ContactKey]:
        """The contacts that were erased."""
        return self._read(lambda run: Scrubber(run, self.private).erased())

    @contextlib.contextmanager
    def scrubbing(self, fence: base.Fence) -> Iterator[Scrubber]:
        """A transaction that takes persons out of what is kept: out of the private tables, or out of the others.

        Raises:
            WriterFenced: A newer writer took over; nothing was changed.
        """
        with self._once(fence) as run:
            yield Scrubber(run, self.private)

    def shed(self, *, core: bool) -> None:
        """Have the bytes of what was deleted from the private tables leave the disk; with `core`, from all tables.

        Raises:
            WarehouseError: There is no room for it, or somebody stands in the way; to be tried again.
        """

    def shed_published(self) -> None:
        """The same for what the last publish took from readers, where a publish changes tables and makes no new file.

        Raises:
            WarehouseError: Somebody stands in the way; to be tried again.
        """
        return

    def prune(
        self, *, raw_before: datetime | None, runs_before: datetime | None, history_before: datetime | None
    ) -> int:
        """Remove payloads and runs from before, and versions of departures that had ended by then; None keeps all.

        The newest payload of each key and the newest version of each departure stay. How many rows went. Each kind in a
        transaction of its own.

        Raises:
            WriterFenced: A newer writer took over; nothing was changed.
        """
        statements = {
            sql("prune_payloads", private=self.private): raw_before,
            "delete from ops.runs where started_at_utc < $1 and ended_at_utc is not null": runs_before,
            sql("prune_versions"): history_before,
        }
        gone = 0
        for statement, before in statements.items():
            if before is not None:
                gone += int(self._write(self._fence, lambda run: run(statement, [before]))[0][0])  # noqa: B023 - at once
        return gone

    def sizes(self, *, least: int = 0) -> Mapping[str, base.FileSize]:
        """Its files of `least` bytes or more, by names that `rewrite` takes; none where a server looks after itself."""
        del least
        return {}

    def rewrite(self, file: str, *, within: float) -> int:
        """Write one file anew with its live rows only, and put it in place; its size. All else waits meanwhile.

        Raises:
            WarehouseError: It took longer than `within` seconds, or there is no room; the file is as it was.
        """
        raise WarehouseError(f"{self.name} has no file {file}; its server looks after its files ({within:g} s unused).")

    # -- reading ------------------------------------------------------------------------------------------------

    def highest_numbers(self) -> tuple[int, int]:
        """The highest request number and fencing token ever landed, for a journal that was lost and made anew."""
        numbers = (
            "select (select coalesce(max(request_seq), 0) from ops.coverage), "
            "(select coalesce(max(fence), 0) from ops.writer)"
        )
        ((seq, fence),) = self._read(lambda run: run(numbers, ()))
        return int(seq), int(fence)

    def covered(self, subjects: Collection[Subject]) -> Mapping[Subject, base.Covered]:
        """The last landing of each of the subjects that has one."""
        return self._read(lambda run: covered(run, subjects))

    def known_bookings(self, connection: str, window: Window) -> base.KnownBookings:
        """The records that live bookings which travel or were made in the window were landed from.

        One that is in an answer again, byte for byte, need not be read: `Answered.seen`. To be asked where nothing else
        lands before the answer does.
        """
        day = timedelta(days=1)
        given = [connection, window.start, window.end, window.start - day, window.end + 2 * day]
        found = self._read(lambda run: run(sql("known_bookings"), given))
        return {digest: (uuid, travel, created) for digest, uuid, travel, created in found}

    def absences(self) -> list[base.Absence]:
        """Rows that are missed at present."""
        missed = "select connection_id, table_name, key, resource, subject_key, misses from ops.absences"
        found = sorted(self._read(lambda run: run(missed, ())))
        return [base.Absence(c, t, k, Subject.from_key(c, r, key), m) for c, t, k, r, key, m in found]

    def live_rows(self) -> Mapping[tuple[str, str], int]:
        """Live rows per (connection, merged table)."""
        counts = " union all ".join(
            f"select connection_id, '{t.full_name}', count(*) from {t.full_name} where not is_deleted group by 1"
            for t in self._tables
            if t.merge is Merge.MERGE and not t.private
        )
        return {(c, t): n for c, t, n in self._read(lambda run: run(counts, ()))}

    def digest(self, tables: Collection[str] | None = None) -> list[base.TableDigest]:
        """Count and hash the live rows of the core tables."""
        return self._read(lambda run: digests.of_all(run, self._tables, tables, self._spelling))

    # -- publishing ---------------------------------------------------------------------------------------------

    def keep_marts(self, definition: str, make: Callable[[], None]) -> None:
        """Have the marts of this definition in what drafts are copied from, made by `make` where they are not.

        To make views and their comments takes longer than to copy a small file. Nothing where no copy is made.
        """
        del definition, make

    def drafting(
        self, target: Path | None = None, *, contacts: Path | None = None
    ) -> AbstractContextManager[base.Draft]:
        """Where marts are made, checked and published, of what has landed until now; what lands meanwhile is not seen there.

        Readers see them from the end of the block on, or when the draft's `publish` is called.

        Args:
            target: Where the copy for readers is to be, at destinations that make one; without it nothing is shown there.
            contacts: Where a copy with personal data is to be; None makes none.

        Raises:
            WriterFenced: A newer writer took over, which a server notices; the former marts stay.
            WarehouseError: It cannot be copied or written; the former marts stay.
        """

    def close(self) -> None:
        """Let go of the database."""


def check_fence(run: Run, fence: base.Fence, name: str) -> int | None:
    """The number of its last landing, None before the first. `name` is what the warehouse is called.

    Raises:
        WriterFenced: A writer with a newer token was here.
    """
    rows = run("select coalesce(connection_id, ''), fence, landed from ops.writer", ())
    if isinstance(fence, int):
        ours, newest = fence, max((token for _, token, _ in rows), default=fence)
        is_over = newest > fence
    else:
        # Equal and not only as high: who owns the project alone has removed the others' tokens.
        found = {connection: token for connection, token, _ in rows}
        ours, newest = max(fence.values(), default=0), max(found.values(), default=0)
        is_over = any(found.get(connection) != token for connection, token in fence.items())
    if is_over:
        raise WriterFenced(
            f"A newer writer (token {newest}) took over {name}; this one (token {ours}) stops. "
            f"Nothing of its landing was kept."
        )
    numbers = [n for connection, _, n in rows if n is not None and (isinstance(fence, int) or connection in fence)]
    return max(map(int, numbers), default=None)


def covered(run: Run, subjects: Collection[Subject]) -> Mapping[Subject, base.Covered]:
    """The last landing of each of the subjects that has one."""
    wanted = {(s.connection, str(s.kind), s.key): s for s in subjects}
    if not wanted:
        return {}
    found = run(sql("covered"), [list(column) for column in zip(*wanted, strict=True)])
    return {
        wanted[row[0], row[1], row[2]]: base.Covered(row[3], row[4], Window(row[5], row[6]) if row[5] else None, row[7])
        for row in found
    }
