"""The canonical form of a table's live rows, and its order-independent digest.

A row is the text of its compared columns in definition order, joined by U+001F: text as it is, numbers in plain decimal
notation, booleans as true/false, dates and times as ISO 8601 (instants in UTC), null as U+0000 would be if it could be
stored: U+001E. Its number is the first 60 bits of the MD5 of that text; the digest is the sum of all rows' numbers and
their count. Deleted rows and bookkeeping columns are left out, so that two warehouses that say the same have the same
digest, whichever engine holds them and whenever their rows arrived.
"""

import duckdb

from octo_sync.destinations.base import TableDigest
from octo_sync.tables.schema import Column, Merge, Table

__all__ = ["canonical", "of"]


def _value(c: Column) -> str:
    kinds = {
        "timestamptz": f"strftime({c.name} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')",
        "timestamp": f"strftime({c.name}, '%Y-%m-%dT%H:%M:%S.%f')",
    }
    return f"coalesce({kinds.get(c.type, f'{c.name}::varchar')}, chr(30))"


def live(table: Table) -> str:
    """The condition for a live row of the table."""
    if table.merge is Merge.MERGE:
        return "not is_deleted"
    return "is_current" if table.merge in (Merge.VERSIONS, Merge.HISTORY) else "true"


def canonical(table: Table) -> str:
    """Select of the live rows' canonical texts, one column `row`."""
    values = ", chr(31), ".join(_value(c) for c in table.tracked)
    return f"select concat({values}) as row from {table.full_name} where {live(table)}"


def of(connection: duckdb.DuckDBPyConnection, table: Table) -> TableDigest:
    """Count and digest one table."""
    row = connection.execute(
        f"select count(*), coalesce(sum(('0x' || left(md5(row), 15))::bigint::hugeint), 0) from ({canonical(table)})"
    ).fetchone() or (0, 0)
    return TableDigest(table.full_name, int(row[0]), f"{int(row[1]) % (1 << 64):016x}")
