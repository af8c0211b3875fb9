"""How rows are parted into files: by a bucket of connections, and by the month of their day where they have one.

What is written at once are whole partitions, those in which any row differs from what is there. That is seen from the rows
and not from what was done to them, so a change by any road is noticed.
"""

import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import date
from typing import Any

from octo_sync.destinations.ddl import placed, quoted
from octo_sync.destinations.delta.lake import BUCKET, MONTH
from octo_sync.destinations.relations import given
from octo_sync.tables.schema import Table

BUCKETS = 32
_DAYS = ("local_date", "fetched_at_utc")
_TOLD = frozenset({"payload"})
"""Columns that another one tells: their hash stands beside them."""
_NONE = "none"

Part = tuple[str, date | None]
"""A connection, '' where a table has none, and the first day of a month, None of rows without a day."""
Digests = Mapping[Part, tuple[int, int]]
"""How many rows a part has, and a number that another set of rows would not have."""
Partition = tuple[int, str]
"""A bucket and a month, as they are written: their rows lie in the same files."""


def partition_of(part: Part) -> Partition:
    """Where the rows of a part lie."""
    connection, month = part
    return zlib.crc32(connection.encode()) % BUCKETS, month.isoformat()[:7] if month else _NONE


def _part(table: Table) -> tuple[str, str]:
    names = [c.name for c in table.all_columns]
    day = next((c for c in _DAYS if c in names), None)
    connection = "coalesce(connection_id, '')" if "connection_id" in names else "''"
    return connection, f"date_trunc('month', {day})::date" if day else "null::date"


def digests(table: Table, connections: Collection[str] = ()) -> str:
    """A select of connection, month, rows and digest of each part of a table; of some connections, or of all."""
    # Hashed twice, because DuckDB's hash of several values lets the last one through.
    columns = ", ".join(c.name for c in table.all_columns if c.name not in _TOLD)
    connection, month = _part(table)
    chosen = f"connection_id in ({', '.join(map(quoted, sorted({'', *connections})))}) or connection_id is null"
    where = f" where {chosen}" if connections and any(c.name == "connection_id" for c in table.all_columns) else ""
    return (
        f"select {connection}, {month}, count(*), sum(hash(hash({columns}))) from {placed(table)}{where} group by all"
    )


def changed(before: Digests, now: Digests) -> set[Partition]:
    """The partitions of which a row came, went or is another one."""
    return {partition_of(part) for part in before.keys() | now.keys() if before.get(part) != now.get(part)}


def condition(partitions: Collection[Partition]) -> str:
    """These partitions, as Delta is asked for them."""
    buckets: dict[int, list[str]] = defaultdict(list)
    for bucket, month in sorted(partitions):
        buckets[bucket].append(quoted(month))
    return " or ".join(f"({BUCKET} = {b} and {MONTH} in ({', '.join(months)}))" for b, months in buckets.items())


def rows_of(table: Table, partitions: Collection[Partition], parts: Collection[Part]) -> tuple[str, list[list[Any]]]:
    """A select of all rows that lie in these partitions, and its parameters; `parts` are those that the table has."""
    connection, month = _part(table)
    chosen = [(*part, *where) for part in parts if (where := partition_of(part)) in partitions]
    columns = {"of_connection": "varchar", "of_month": "date", BUCKET: "integer", MONTH: "varchar"}
    select, values = given(columns, chosen)
    return (
        f"select {table.names}, {BUCKET}, {MONTH} from {placed(table)} "
        f"join ({select}) on {connection} = of_connection and {month} is not distinct from of_month"
    ), values
