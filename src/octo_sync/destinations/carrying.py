"""What a warehouse that is made anew takes over from the former files: what no service would tell again.

From the private file its payloads and whatever else the program wrote there itself; from the warehouse, where it can still be
read, its logs, the histories, what was proven deleted, and the rows of which no payload is kept. All else is landed anew.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from octo_sync.schema import Merge, Table

__all__ = ["after_landing", "attached", "before_landing"]

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


def before_landing(db: duckdb.DuckDBPyConnection, former: str, into: str, tables: Sequence[Table]) -> int:
    """Take over the program's own tables, and the versions of prices that answers go on with; rows taken."""
    chosen = [t for t in tables if t.merge in (Merge.LOG, Merge.VERSIONS) and t.full_name not in _OWN]
    return sum(_take(db, former, into, table) for table in chosen)


def after_landing(db: duckdb.DuckDBPyConnection, former: str, into: str, tables: Sequence[Table]) -> int:
    """Take over the rows of which no payload is kept, what was proven deleted, and the histories; rows taken."""
    roots = {t.noun: t for t in tables if t.full_name in _ROOTS}
    taken = 0
    # A root after all that hangs on it: whether its row is there says whether its payload was landed.
    for table in sorted(tables, key=lambda t: t.full_name in _ROOTS):
        if table.merge is Merge.HISTORY:
            taken += _take(db, former, into, table)
        elif table.merge in (Merge.MERGE, Merge.REPLACE):
            root = roots[table.noun]
            shared = [k for k in root.key if k in {c.name for c in table.columns}]
            wanted = _absent(into, root, shared)
            if table.merge is Merge.MERGE:
                wanted += f" or o.is_deleted and {_absent(into, table, table.key)}"
            taken += _take(db, former, into, table, where=f"where {wanted}", replace=False)
    return taken


def without_payload(db: duckdb.DuckDBPyConnection, former: str, into: str, tables: Sequence[Table]) -> int:
    """Take over what is kept of persons for bookings of which no payload is kept; rows taken."""
    kept = f"select 1 from {into}.raw.records r where r.resource = 'booking' and r.connection_id = o.connection_id"
    where = f"where not exists ({kept} and r.key = o.booking_uuid)"
    chosen = [t for t in tables if t.merge is Merge.MERGE]
    return sum(_take(db, former, into, table, where=where, replace=False) for table in chosen)


def _absent(into: str, table: Table, columns: Sequence[str]) -> str:
    same = " and ".join(f"n.{c} = o.{c}" for c in columns)
    return f"not exists (select 1 from {into}.{table.full_name} n where {same})"


def date_coverage(db: duckdb.DuckDBPyConnection, former: str | None, into: str, private: str, coverage: Table) -> None:
    """Let coverage say what is true of the rows: when each was verified last, which is not now.

    Where that cannot be known any more, it is not later than the oldest payload. No answer counts as landed.
    """
    if former:
        _take(db, former, into, coverage)
        db.execute(f"update {into}.ops.coverage set answer_hash = null")
        return
    db.execute(
        f"update {into}.ops.coverage set answer_hash = null, is_complete = false, "
        f"verified_at_utc = coalesce((select min(fetched_at_utc) from {private}.raw.records), verified_at_utc)"
    )


def _take(
    db: duckdb.DuckDBPyConnection, former: str, into: str, table: Table, *, where: str = "", replace: bool = True
) -> int:
    """Rows by the columns that both have: the former file may be of an older schema."""
    there = db.execute(
        "select column_name from duckdb_columns() where database_name = $1 and schema_name = $2 and table_name = $3",
        [former, table.schema, table.name],
    ).fetchall()
    # Of a record that is not kept its digest would say that contacts and payload are landed.
    names = ", ".join(c.name for c in table.all_columns if (c.name,) in there and c.name != "payload_digest")
    if not names:
        return 0
    if replace:
        db.execute(f"delete from {into}.{table.full_name}")
    select = f"select {names} from {former}.{table.full_name} o {where}"
    row = db.execute(f"insert into {into}.{table.full_name} ({names}) {select}").fetchone()
    return int(row[0]) if row else 0
