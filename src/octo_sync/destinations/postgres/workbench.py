"""The DuckDB in memory in which a landing on PostgreSQL is worked out, and what goes back and forth.

The same statements decide on both engines, so a landing runs on DuckDB here as well: the rows it can touch are copied in,
it runs, and the rows that are new, changed or gone are copied out. Rows travel as CSV, made and read by both engines in
C; a text that is empty is quoted and null is not, which both keep apart.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from octo_sync.destinations.ddl import MAIN, PRIVATE, comments, create_table, placed, quoted, schemas
from octo_sync.destinations.duckdb.files import database
from octo_sync.destinations.duckdb.transactions import translated
from octo_sync.destinations.postgres import Session
from octo_sync.destinations.postgres.landed import group_of, meant
from octo_sync.destinations.postgres.session import asking
from octo_sync.destinations.relations import drop_work_tables, equal, given, run, sql
from octo_sync.tables.schema import Table

THREADS = 2
_LOCK_TIMEOUT = 10.0
_CHUNK = 1 << 20
_LONGEST_ROW = 64 << 20
"""Bytes of one row at most; DuckDB's default of two million would refuse a long description."""


class Workbench:
    """Empty tables like the warehouse's, in two catalogs as `LandingWork` knows them.

    Args:
        tables: What to keep.
        spool: A folder of our own for rows on their way and for what does not fit into memory.
        memory: DuckDB's limit, beyond which it spills to `spool`.
        files: Whether it is the private one → a new file for its tables; those of which none is given are in memory.
    """

    def __init__(
        self, tables: Sequence[Table], *, spool: Path, memory: str, files: Mapping[bool, Path] | None = None
    ) -> None:
        main, private = ((files or {}).get(is_private) for is_private in (False, True))
        self._tables, self._spool, self._threads = tuple(tables), spool, THREADS
        self._brought: list[Table] = []
        self.db = database(threads=THREADS, memory=memory, spill=spool / "tmp")
        for catalog, file in ((MAIN, main), (PRIVATE, private), ("before", None)):
            self.db.execute(f"attach {quoted(str(file or ':memory:'))} as {catalog}")
            for schema in schemas(tables):
                self.db.execute(f"create schema {catalog}.{schema}")
        for table in self._tables:
            for catalog in (PRIVATE if table.private else MAIN, "before"):
                self.db.execute(create_table(table, prefix=f"{catalog}."))
        self.db.execute(f"use {MAIN}")
        self.db.execute("create or replace temp macro landing_now() as getvariable('landing_now')::timestamptz")

    def use_threads(self, count: int) -> None:
        """For a handful of rows a second thread costs more to start than it saves."""
        if count != self._threads:
            self.db.execute(f"set threads = {count}")
            self._threads = count

    def close(self) -> None:
        """Let go of everything in it."""
        self.db.close()

    def bring(self, session: Session, table: Table, where: str, parameters: Sequence[Any]) -> int:
        """Copy the rows of a table, alias `t`, for which `where` is true, none that was brought before; how many."""
        chosen = table.names
        if table.full_name == "raw.records":
            # Payloads are only ever added, and told apart by their hashes.
            chosen = chosen.replace("payload,", "'' as payload,")
        with self._copied(session, f"select {chosen} from {table.full_name} t where {where}", parameters) as file:
            count = self._read(file, table, f"before.{table.full_name}") if file else 0
            if file and table in self._brought:
                self._read(file, table, placed(table))
            elif file:
                self.db.execute(f"insert into {placed(table)} from before.{table.full_name}")
            self._brought.append(table)
        return count

    def fill(self, session: Session, table: Table) -> None:
        """Copy all rows of a table, to be kept here."""
        with self._copied(session, f"select {table.names} from {table.full_name}", ()) as file:
            if file:
                self._read(file, table, placed(table))

    @contextlib.contextmanager
    def _copied(self, session: Session, select: str, parameters: Sequence[Any]) -> Iterator[str | None]:
        """A file with the rows of a select, as long as the block runs; None when there are none."""
        copy = meant(session, f"copy ({select}) to stdout (format csv)")
        descriptor, name = tempfile.mkstemp(suffix=".csv", dir=self._spool)  # of mode 0600
        try:
            # Not `NamedTemporaryFile`, which leaves its file behind when the disk is full.
            with os.fdopen(descriptor, "wb") as out:
                # COPY takes no parameters, so the driver puts them into the text; its own quoting, not ours.
                with psycopg.ClientCursor(session) as cursor, cursor.copy(copy, parameters) as rows:
                    out.writelines(rows)
                size = out.tell()
            yield name if size else None
        finally:
            Path(name).unlink()

    def _read(self, name: str, table: Table, target: str) -> int:
        columns = "{" + ", ".join(f"'{c.name}': '{c.type}'" for c in table.all_columns) + "}"
        return run(self.db, sql("read_rows", target=target, columns=columns, longest=_LONGEST_ROW), [name])

    def has(self, staged: str) -> bool:
        """Whether there is such a work table."""
        there = "select 1 from duckdb_tables() where temporary and table_name = $1"
        return self.db.execute(there, [staged]).fetchone() is not None

    def send(self, session: Session) -> dict[str, int]:
        """Write what differs from what was brought; rows written or removed per table."""
        done: dict[str, int] = {}
        filled = self._filled()
        for table in self._tables:
            if count := self._send(session, table, filled):
                done[table.full_name] = count
        return done

    def _filled(self) -> frozenset[str]:
        """The relations that have rows; all are looked at in one statement, for sixty cost as much as a landing."""
        relations = [place for t in self._tables for place in (placed(t), f"before.{t.full_name}")]
        looks = " union all ".join(f"(select {i} from {r} limit 1)" for i, r in enumerate(relations))
        return frozenset(relations[i] for (i,) in self.db.execute(looks).fetchall())

    def _send(self, session: Session, table: Table, filled: frozenset[str]) -> int:
        now, before = f"{placed(table)}", f"before.{table.full_name}"
        if before not in filled:
            return self.copy(session, table, f"from {now}") if now in filled else 0
        if table.full_name == "raw.records":
            return self.copy(session, table, f"from {now} except all from {before}")
        # Rows with one key go and come together, so that nothing depends on keys being unique.
        keys = [c.name for c in table.all_columns if c.name in table.key]
        keys += [c for c in group_of(table) if c not in keys]
        names = ", ".join(keys)
        parts = {"keys": names, "columns": table.names, "before": before, "now": now}
        self.db.execute(sql("differing", **parts))
        gone = self.db.execute(f"select {names} from differing where was_there").fetchall()
        types = {c.name: c.type for c in table.all_columns}
        if gone:
            select, values = given({k: types[k] for k in keys}, gone)
            session.execute(
                f"delete from {table.full_name} t using ({select}) d where {equal(keys, 't', 'd')}".encode(),
                values,
            )
        same = " and ".join(f"t.{k} is not distinct from d.{k}" for k in keys)
        came = self.copy(
            session, table, f"select t.* from {now} t where exists (select 1 from differing d where {same})"
        )
        return max(came, len(gone))

    def copy(self, session: Session, table: Table, select: str) -> int:
        """Add the rows that `select` names its source of, by the table's columns; how many."""
        with tempfile.NamedTemporaryFile(suffix=".csv", dir=self._spool) as rows:
            # To keep their order DuckDB holds the text of some hundred thousand rows in memory.
            count = run(
                self.db,
                f"copy ({select}) to {quoted(rows.name)} "
                f"(format csv, header false, nullstr '', quote '\"', escape '\"', use_tmp_file false, preserve_order false)",
            )
            if count:
                into = f"copy {table.full_name} ({table.names}) from stdin (format csv)".encode()
                with session.cursor() as cursor, cursor.copy(into) as copy:
                    while block := rows.read(_CHUNK):
                        copy.write(block)
        return count

    def clear(self) -> None:
        """Empty it: every row, and the work tables of the last landing."""
        for relation in sorted(self._filled()):
            self.db.execute(f"truncate {relation}")
        drop_work_tables(self.db)
        self._brought.clear()

    def renew(self, session: Session, conditions: Mapping[str, tuple[str, Sequence[Any]]]) -> int:
        """Bring the rows of several tables: table → condition and its parameters; how many."""
        return sum(self.bring(session, t, *conditions[t.full_name]) for t in self._tables if t.full_name in conditions)


def snapshot(address: str, target: Path, tables: Sequence[Table]) -> None:
    """Copy the tables of `core` and `ops`, as they are at one instant, with comments, into a new DuckDB file; nothing private.

    Raises:
        WarehouseError: The server cannot be read, or the file not be written.
    """
    chosen = [t for t in tables if not t.private]
    with (
        asking(address, lock_timeout=_LOCK_TIMEOUT) as session,
        translated(target),
        tempfile.TemporaryDirectory(prefix=f".{target.stem}.", dir=target.parent) as spool,
        contextlib.closing(Workbench(chosen, spool=Path(spool), memory="512MB", files={False: target})) as bench,
    ):
        session.execute("begin isolation level repeatable read read only")
        for table in chosen:
            bench.fill(session, table)
            for comment in comments(table, prefix=f"{MAIN}."):
                bench.db.execute(comment)
        bench.db.execute(f"checkpoint {MAIN}")
