"""The digest of `digests.py`, worked out by PostgreSQL: the same canonical texts, so the same numbers."""

from typing import TYPE_CHECKING, Any

from octo_sync.destinations.base import TableDigest
from octo_sync.destinations.digests import live
from octo_sync.tables.schema import Column, Table

if TYPE_CHECKING:
    import psycopg

__all__ = ["of"]

_KINDS = {
    "timestamptz": """to_char({} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
    "timestamp": """to_char({}, 'YYYY-MM-DD"T"HH24:MI:SS.US')""",
}


def _value(c: Column) -> str:
    return f"coalesce({_KINDS.get(c.type, '{}::text').format(c.name)}, chr(30))"


def of(session: "psycopg.Connection[Any]", table: Table) -> TableDigest:
    """Count and digest one table."""
    text = " || chr(31) || ".join(_value(c) for c in table.tracked)
    number = f"('x' || left(md5({text}), 15))::bit(60)::bigint"
    row = session.execute(
        f"select count(*), coalesce(sum({number}), 0) from {table.full_name} where {live(table)}".encode()
    ).fetchone() or (0, 0)
    return TableDigest(table.full_name, int(row[0]), f"{int(row[1]) % (1 << 64):016x}")
