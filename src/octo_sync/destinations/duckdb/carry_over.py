"""What a warehouse that is made anew takes over from the former files: what no service would tell again.

From the private file its payloads and whatever else the program wrote there itself; from the warehouse, where it can still be
read, its logs, the histories, what was proven deleted, and the rows of which no payload is kept. All else is landed anew.

A file with damaged blocks opens, and fails when they are read. So each table is taken by itself, and one that cannot be read
is left out whole: half a history would contradict itself.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from octo_sync.destinations.duckdb.transactions import transaction
from octo_sync.tables.schema import Merge, Table

__all__ = ["after_landing", "attached", "before_landing", "date_coverage", "deleted_keys", "without_payload"]

log = logging.getLogger("octo_sync")

_OWN = frozenset({"ops.coverage", "ops.absences", "ops.writer", "ops.schema_migrations", "private.landed"})
"""What the new files say about themselves."""
_ROOTS = frozenset({"core.suppliers", "core.products", "core.availability", "core.bookings"})
"""The table of each noun on whose rows the others of the noun hang."""


@contextlib.contextmanager
def attached(db: duckdb.DuckDBPyConnection, file: Path) -> Iterator[str | None]:
    """The former file, read-only, as a catalog; None when it is not there or cannot be read."""
    found: str | None = None
    if file.exists():
        escaped = str(file).replace("'", "''")
        with contextlib.suppress(duckdb.Error):
            db.execute(f"attach '{escaped}' as former (read_only)")
            found = "former"
    try:
        yield found
    finally:
        if found:
            db.execute("detach former")


def before_landing(db: duckdb.DuckDBPyConnection, former: str, into: str, tables: Sequence[Table]) -> list[str]:
    """Take over the program's own tables, and the versions of prices that answers go on with; those that cannot be read."""
    chosen = [t for t in tables if t.merge in (Merge.LOG, Merge.VERSIONS) and t.full_name not in _OWN]
    return [table.full_name for table in chosen if not _take(db, former, into, table)]


def after_landing(db: duckdb.DuckDBPyConnection, former: str, into: str, tables: Sequence[Table]) -> list[str]:
    """Take over the rows of which no payload is kept, what was proven deleted, and the histories; what cannot be read."""
    roots = {t.noun: t for t in tables if t.full_name in _ROOTS}
    unread = []
    # A root after all that hangs on it: whether its row is there says whether its payload was landed.
    for table in sorted(tables, key=lambda t: t.full_name in _ROOTS):
        if table.merge is Merge.HISTORY:
            read = _take(db, former, into, table)
        elif table.merge in (Merge.MERGE, Merge.REPLACE):
            root = roots[table.noun]
            shared = [k for k in root.key if k in {c.name for c in table.columns}]
            wanted = _absent(into, root, shared)
            if table.merge is Merge.MERGE:
                wanted += f" or o.is_deleted and {_absent(into, table, table.key)}"
            read = _take(db, former, into, table, where=f"where {wanted}", replace=False)
        else:
            continue
        if not read:
            unread.append(table.full_name)
    _write_anew(db, into, [t for t in tables if t.noun in {t.noun for t in tables if t.full_name in unread}])
    return unread


def _write_anew(db: duckdb.DuckDBPyConnection, into: str, tables: Sequence[Table]) -> None:
    """Have the next answer write these rows, equal or not: details and versions of a row are only written together with it."""
    for table in tables:
        if table.merge is Merge.MERGE:
            db.execute(f"update {into}.{table.full_name} set row_hash = null")


def without_payload(db: duckdb.DuckDBPyConnection, former: str, into: str, tables: Sequence[Table]) -> list[str]:
    """Take over what is kept of persons for bookings of which no payload is kept; the tables that cannot be read."""
    kept = f"select 1 from {into}.raw.records r where r.resource = 'booking' and r.connection_id = o.connection_id"
    where = f"where not exists ({kept} and r.key = o.booking_uuid)"
    chosen = [t for t in tables if t.merge is Merge.MERGE]
    return [t.full_name for t in chosen if not _take(db, former, into, t, where=where, replace=False)]


def deleted_keys(db: duckdb.DuckDBPyConnection, former: str, table: str, key: str) -> set[tuple[str, str]]:
    """Connection and key of the rows that are proven deleted; none where that cannot be read."""
    try:
        return set(db.execute(f"select connection_id, {key} from {former}.{table} where is_deleted").fetchall())
    except duckdb.Error as error:
        log.warning("action=rebuild unread=%s error=%s", table, type(error).__name__)
        return set()


def _absent(into: str, table: Table, columns: Sequence[str]) -> str:
    same = " and ".join(f"n.{c} = o.{c}" for c in columns)
    return f"not exists (select 1 from {into}.{table.full_name} n where {same})"


def date_coverage(
    db: duckdb.DuckDBPyConnection, former: str | None, into: str, private: str, coverage: Table
) -> list[str]:
    """Let coverage say what is true of the rows: when each was verified last, which is not now. The table, if it is unreadable.

    Where that cannot be known any more, it is not later than the oldest payload. No answer counts as landed.
    """
    if former and _take(db, former, into, coverage):
        db.execute(f"update {into}.ops.coverage set answer_hash = null")
        return []
    db.execute(
        f"update {into}.ops.coverage set answer_hash = null, is_complete = false, "
        f"verified_at_utc = coalesce((select min(fetched_at_utc) from {private}.raw.records), verified_at_utc)"
    )
    return [coverage.full_name] if former else []


def _take(
    db: duckdb.DuckDBPyConnection, former: str, into: str, table: Table, *, where: str = "", replace: bool = True
) -> bool:
    """Take rows by the columns that both have, the former file may be of an older schema; False when they cannot be read."""
    there = db.execute(
        "select column_name from duckdb_columns() where database_name = $1 and schema_name = $2 and table_name = $3",
        [former, table.schema, table.name],
    ).fetchall()
    # Of a record that is not kept its digest would say that contacts and payload are landed.
    names = ", ".join(c.name for c in table.all_columns if (c.name,) in there and c.name != "payload_digest")
    if not names:
        return True
    source = f"{former}.{table.full_name}"
    try:
        with transaction(db):
            if replace:
                db.execute(f"delete from {into}.{table.full_name}")
            db.execute(f"insert into {into}.{table.full_name} ({names}) select {names} from {source} o {where}")
    except duckdb.Error as error:
        try:
            # What fails here as well is the former file's doing, and not for want of room in the new one.
            db.execute(f"select bit_xor(hash({names})) from {source}").fetchone()
        except duckdb.Error:
            log.warning("action=rebuild unread=%s error=%s", table.full_name, type(error).__name__)
            return False
        raise
    return True
