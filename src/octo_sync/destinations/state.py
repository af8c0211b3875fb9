"""What both engines' warehouses are asked and told in the same words: fence, coverage, what is known, missed and live, logs."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from octo_sync.destinations import digests
from octo_sync.destinations.base import Absence, Covered, Fence, KnownBookings, TableDigest
from octo_sync.destinations.erasing import Scrubber
from octo_sync.destinations.relations import given, sql
from octo_sync.errors import WriterFenced
from octo_sync.model import Subject, Window
from octo_sync.tables.schema import Column, Merge, Table

T = TypeVar("T")
_WRITER = {"fence": "bigint", "owner": "text", "landed": "bigint", "connection_id": "text"}

Run = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Execute one statement with positional parameters `$1`, `$2`, …; its rows, or of one that writes how many it wrote."""


def check_fence(run: Run, fence: Fence, name: str) -> int | None:
    """The number of its last landing, None before the first. `name` is what the warehouse is called.

    Raises:
        WriterFenced: A writer with a newer token was here.
    """
    rows = run("select coalesce(connection_id, ''), fence, landed from ops.writer", ())
    if isinstance(fence, int):
        newest = max((token for _, token, _ in rows), default=fence)
        is_over = newest > fence
    else:
        # Equal and not only as high: who owns the project alone has removed the others' tokens.
        found = {connection: token for connection, token, _ in rows}
        newest = max(found.values(), default=0)
        is_over = any(found.get(connection) != token for connection, token in fence.items())
    if is_over:
        raise WriterFenced(
            f"A newer writer (token {newest}) took over {name}; this one (token {token_of(fence)}) stops. "
            f"Nothing of its landing was kept."
        )
    numbers = [n for connection, _, n in rows if n is not None and (isinstance(fence, int) or connection in fence)]
    return max(map(int, numbers), default=None)


def token_of(fence: Fence) -> int:
    """The newest token of them."""
    return fence if isinstance(fence, int) else max(fence.values(), default=0)


def covered(run: Run, subjects: Collection[Subject]) -> Mapping[Subject, Covered]:
    """The last landing of each subject; see `Destination`."""
    wanted = {(s.connection, str(s.kind), s.key): s for s in subjects}
    if not wanted:
        return {}
    found = run(sql("covered"), [list(column) for column in zip(*wanted, strict=True)])
    return {
        wanted[row[0], row[1], row[2]]: Covered(row[3], row[4], Window(row[5], row[6]) if row[5] else None, row[7])
        for row in found
    }


class SharedWarehouse:
    """A warehouse as far as both engines agree. An engine says how one statement is read, and how some are written."""

    private: str
    name: str
    """What sentences call it."""
    _tables: Sequence[Table]
    _spelling: digests.Spelling
    _fence: Fence = 0
    """The token of the last claim; a warehouse that anybody claimed takes nothing without one."""

    def _read(self, work: Callable[[Run], T]) -> T:
        """Statements that only read; what is committed, also while something lands."""
        raise NotImplementedError

    def _write(self, fence: Fence, work: Callable[[Run], T]) -> T:
        """One transaction, in which the fence was checked first."""
        raise NotImplementedError

    def _once(self, fence: Fence | None) -> AbstractContextManager[Run]:
        """One transaction that is not begun anew, because what is done in it is given only once; a fence is checked first."""
        raise NotImplementedError

    def run_script(self, statements: Iterable[str]) -> None:
        """Run statements in one transaction."""
        with self._once(None) as run:
            for statement in statements:
                run(statement, ())

    @contextlib.contextmanager
    def scrubbing(self, fence: Fence) -> Iterator[Scrubber]:
        """A transaction that takes persons out; see `Destination`."""
        with self._once(fence) as run:
            yield Scrubber(run, self.private)

    def claim_writer(self, fence: Fence, owner: str) -> None:
        """Take over as the writer; see `Destination`."""
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

        # Whoever takes over a part has no token of it yet to be compared.
        self._write(fence if isinstance(fence, int) else {}, claim)
        if not parts or "" in parts:
            self._fence = fence

    def write_log(self, table: str, rows: Iterable[Mapping[str, Any]], *, replace: bool = False) -> None:
        """Upsert rows of a log table; see `Destination`."""
        target, rows = next(t for t in self._tables if t.full_name == table), list(rows)
        self._write(self._fence, lambda run: _write_log(run, target, rows, replace=replace))

    def prune(
        self, *, raw_before: datetime | None, runs_before: datetime | None, history_before: datetime | None
    ) -> int:
        """Remove old payloads, runs and versions; see `Destination`. Each kind in a transaction of its own."""
        statements = {
            sql("prune_payloads", private=self.private): raw_before,
            "delete from ops.runs where started_at_utc < $1 and ended_at_utc is not null": runs_before,
            sql("prune_versions"): history_before,
        }
        return sum(self._delete(sql, before) for sql, before in statements.items() if before is not None)

    def _delete(self, sql: str, before: datetime) -> int:
        return self._write(self._fence, lambda run: int(run(sql, [before])[0][0]))

    def highest_numbers(self) -> tuple[int, int]:
        """The highest request number and fence seen; see `Destination`."""
        numbers = (
            "select (select coalesce(max(request_seq), 0) from ops.coverage), "
            "(select coalesce(max(fence), 0) from ops.writer)"
        )
        ((seq, fence),) = self._read(lambda run: run(numbers, ()))
        return int(seq), int(fence)

    def covered(self, subjects: Collection[Subject]) -> Mapping[Subject, Covered]:
        """The last landing of each subject; see `Destination`."""
        return self._read(lambda run: covered(run, subjects))

    def known_bookings(self, connection: str, window: Window) -> KnownBookings:
        """What live bookings of a window were landed from; see `Destination`."""
        day = timedelta(days=1)
        given = [connection, window.start, window.end, window.start - day, window.end + 2 * day]
        found = self._read(lambda run: run(sql("known_bookings"), given))
        return {digest: (uuid, travel, created) for digest, uuid, travel, created in found}

    def absences(self) -> list[Absence]:
        """Rows missed at present; see `Destination`."""
        missed = "select connection_id, table_name, key, resource, subject_key, misses from ops.absences"
        found = sorted(self._read(lambda run: run(missed, ())))
        return [Absence(c, t, k, Subject.from_key(c, r, key), m) for c, t, k, r, key, m in found]

    def live_rows(self) -> Mapping[tuple[str, str], int]:
        """Live rows per connection and merged table; see `Destination`."""
        counts = " union all ".join(
            f"select connection_id, '{t.full_name}', count(*) from {t.full_name} where not is_deleted group by 1"
            for t in self._tables
            if t.merge is Merge.MERGE and not t.private
        )
        return {(c, t): n for c, t, n in self._read(lambda run: run(counts, ()))}

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Count and hash live rows; see `Destination`."""
        return self._read(lambda run: digests.of_all(run, self._tables, tables, self._spelling))


def _write_log(run: Run, table: Table, rows: Iterable[Mapping[str, Any]], *, replace: bool) -> None:
    """Upsert rows by the table's key, the last of each; with `replace` the table holds just these afterwards.

    As a list of values per column, in one statement: row by row, 4,000 differences took DuckDB 20 s and each thousand more
    took longer; as lists 100,000 take 4 s of processor time.
    """
    last = {tuple(row[name] for name in table.key): row for row in rows}
    if replace:
        run(f"delete from {table.full_name}", ())
    if not last:
        return
    if not replace:
        keys = [column for name in table.key for column in table.columns if column.name == name]
        lists, values = _lists(keys, last.values())
        run(f"delete from {table.full_name} where ({', '.join(table.key)}) in (select {lists})", values)
    lists, values = _lists(table.columns, last.values())
    names = ", ".join(column.name for column in table.columns)
    run(f"insert into {table.full_name} ({names}) select {lists}", values)


def _lists(columns: Collection[Column], rows: Collection[Mapping[str, Any]]) -> tuple[str, list[list[Any]]]:
    lists = ", ".join(f"unnest(${place}::{column.type}[])" for place, column in enumerate(columns, start=1))
    return lists, [[row.get(column.name) for row in rows] for column in columns]
