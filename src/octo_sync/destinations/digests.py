"""The canonical form of a table's live rows, and its order-independent digest.

A row is the text of its compared columns in definition order, joined by U+001F: text as it is, numbers in plain decimal
notation, booleans as true/false, dates and times as ISO 8601 (instants in UTC), null as U+0000 would be if it could be
stored: U+001E. Its number is the first 60 bits of the MD5 of that text; the digest is the sum of all rows' numbers and
their count. Deleted rows and bookkeeping columns are left out, so that two warehouses that say the same have the same
digest, whichever engine holds them and whenever their rows arrived.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from octo_sync.destinations.base import TableDigest
from octo_sync.destinations.relations import Run
from octo_sync.tables.schema import Column, Merge, Table


@dataclass(frozen=True, slots=True)
class Spelling:
    """How an engine writes an instant, a local time, and 15 hexadecimal digits as a number."""

    timestamptz: str
    timestamp: str
    number: str

    def value(self, c: Column) -> str:
        """A column's canonical text."""
        kinds = {"timestamptz": self.timestamptz, "timestamp": self.timestamp}
        return f"coalesce({kinds.get(c.type, '{}::varchar').format(c.name)}, chr(30))"


DUCKDB = Spelling(
    "strftime({} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ')",
    "strftime({}, '%Y-%m-%dT%H:%M:%S.%f')",
    "('0x' || {})::bigint::hugeint",
)
POSTGRES = Spelling(
    """to_char({} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')""",
    """to_char({}, 'YYYY-MM-DD"T"HH24:MI:SS.US')""",
    "('x' || {})::bit(60)::bigint",
)


def live(table: Table) -> str:
    """The condition for a live row of the table."""
    if table.merge is Merge.MERGE:
        return "not is_deleted"
    return "is_current" if table.merge in (Merge.VERSIONS, Merge.HISTORY) else "true"


def of_all(run: Run, tables: Sequence[Table], chosen: Collection[str] | None, spelling: Spelling) -> list[TableDigest]:
    """Count and digest the core tables, or those of them that are chosen."""
    found = []
    for table in tables:
        if table.schema == "core" and table.noun and (chosen is None or table.full_name in chosen):
            text = " || chr(31) || ".join(spelling.value(c) for c in table.tracked)
            number = spelling.number.format(f"left(md5({text}), 15)")
            counted = f"select count(*), coalesce(sum({number}), 0) from {table.full_name} where {live(table)}"
            ((rows, total),) = run(counted, ())
            found.append(TableDigest(table.full_name, int(rows), f"{int(total) % (1 << 64):016x}"))
    return found
