"""What a warehouse that is made anew takes over from the former files: every row that can be read, one a key, and trusts none.

A file with damaged blocks opens, and fails when they are read. So each table is taken by itself, and one that cannot be read
is left out whole: half a history would contradict itself. Of a row and its history either makes up for the other.
"""

import contextlib
import logging
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import duckdb

from octo_sync.destinations.ddl import MAIN, placed, quoted
from octo_sync.destinations.duckdb.transactions import transaction
from octo_sync.destinations.landing import versions
from octo_sync.destinations.relations import run
from octo_sync.errors import WarehouseError
from octo_sync.tables.schema import Merge, Table

log = logging.getLogger("octo_sync")

OWN = frozenset({"ops.writer", "ops.schema_migrations", "private.landed"})
"""What files say about themselves, and nothing of what landed in them."""
_PROOFS = frozenset({"answer_hash", "payload_digest", "row_hash"})
"""Columns that say that an answer is landed: without them the next one is read, and written whatever it says."""


def carry_over(db: duckdb.DuckDBPyConnection, file: Path, tables: Sequence[Table]) -> tuple[int, list[str]]:
    """Take the rows of these tables from a former file; how many, and the tables that cannot be read."""
    chosen = [t for t in tables if t.full_name not in {*OWN, "ops.absences"}]
    with attached(db, file) as there:
        taken = {t.full_name: _take(db, t) if there else None for t in chosen}
    return sum(rows or 0 for rows in taken.values()), [name for name, rows in taken.items() if rows is None]


@contextlib.contextmanager
def attached(db: duckdb.DuckDBPyConnection, file: Path) -> Iterator[bool]:
    """A former file, read-only, as the catalog `former`; False when it is not there or cannot be read."""
    found = False
    if file.exists():
        with contextlib.suppress(duckdb.Error):
            db.execute(f"attach {quoted(str(file))} as former (read_only)")
            found = True
    try:
        yield found
    finally:
        if found:
            db.execute("detach former")


@contextlib.contextmanager
def rows_to_move(
    db: duckdb.DuckDBPyConnection, file: Path, tables: Sequence[Table]
) -> Iterator[Sequence[tuple[Table, str]]]:
    """Each table with a select of its rows in a project's file, of this program's schema, which is attached for the block.

    It begins before a transaction of `db` and ends after it, for what a transaction has read cannot be detached.

    Raises:
        WarehouseError: The file cannot be read.
    """
    with attached(db, file) as is_there:
        if not is_there:
            raise WarehouseError(f"{file} cannot be read, so the move has not come to its end; mend it and move again.")
        yield [(t, f"select {t.names} from former.{t.full_name}") for t in tables if t.full_name not in OWN]


def _take(db: duckdb.DuckDBPyConnection, table: Table) -> int | None:
    """Take rows by the columns that both have, the former file may be of an older schema; None when they cannot be read."""
    there = db.execute(
        "select column_name from duckdb_columns() where database_name = 'former' and schema_name = $1 and table_name = $2",
        [table.schema, table.name],
    ).fetchall()
    names = ", ".join(c.name for c in table.all_columns if (c.name,) in there and c.name not in _PROOFS)
    if not names:
        return 0
    source = f"former.{table.full_name}"
    try:
        with transaction(db):
            return run(
                db, f"insert into {placed(table)} ({names}) select {names} from {source} {_one_a_key(table, source)}"
            )
    except duckdb.Error as error:
        try:
            # What fails here as well is the former file's doing, and not for want of room in the new one.
            db.execute(f"select bit_xor(hash({names})) from {source}").fetchone()
        except duckdb.Error:
            log.warning("action=rebuild unread=%s error=%s", table.full_name, type(error).__name__)
            return None
        raise


def _one_a_key(table: Table, source: str) -> str:
    """The condition that leaves out all but one of the rows that answers have brought under one key, the last written."""
    if table.merge not in (Merge.MERGE, Merge.REPLACE):
        return ""
    last = "last_seen_at_utc" if table.merge is Merge.MERGE else "rowid"
    return f"where rowid in (select arg_max(rowid, {last}) from {source} group by {', '.join(table.key)})"


def make_up(db: duckdb.DuckDBPyConnection, tables: Sequence[Table], unread: Collection[str]) -> None:
    """Let nothing claim to be complete, and make rows from their histories, or histories from their rows.

    A history begins anew with the rows as they are. A row is what its newest version says, and is said to be older as a
    whole, until an answer writes it.
    """
    with transaction(db):
        db.execute(f"update {MAIN}.ops.coverage set is_complete = false")
        for history in (t for t in tables if t.merge is Merge.HISTORY):
            are_lost = history.full_name in unread, history.history_of in unread
            if are_lost == (True, False):
                versions.begin_anew(db, history)
            elif are_lost == (False, True):
                versions.make_rows(db, history)
