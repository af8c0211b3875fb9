"""What is written beside landings in PostgreSQL: logs, what is too old to be kept, tables without the bytes of what went.

The caller has checked the fence in the same transaction, except for `vacuum`, which changes no row.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from octo_sync.destinations.landing import versions
from octo_sync.tables.schema import Table

if TYPE_CHECKING:
    import psycopg

__all__ = ["prune", "vacuum", "vacuum_statistics", "write_log"]


def write_log(
    session: "psycopg.Connection[Any]", table: Table, rows: Sequence[Mapping[str, Any]], *, replace: bool
) -> None:
    """Upsert rows of a log table by its key, the last of each; with `replace` the table holds just these afterwards."""
    columns = [c.name for c in table.columns]
    last = {tuple(row[name] for name in table.key): row for row in rows}
    with session.cursor() as cursor:
        if replace:
            cursor.execute(f"delete from {table.full_name}".encode())
        else:
            where = " and ".join(f"{c} = ${i + 1}" for i, c in enumerate(table.key))
            cursor.executemany(f"delete from {table.full_name} where {where}".encode(), list(last))
        with cursor.copy(f"copy {table.full_name} ({', '.join(columns)}) from stdin".encode()) as copy:
            for row in last.values():
                copy.write_row([row.get(c) for c in columns])


def prune(
    session: "psycopg.Connection[Any]",
    *,
    raw_before: datetime | None,
    runs_before: datetime | None,
    history_before: datetime | None,
) -> int:
    """Remove payloads, runs and versions from before, except for the newest payload or version of each key; how many went."""
    same = "n.connection_id = r.connection_id and n.resource = r.resource and n.key = r.key"
    newer = f"select 1 from raw.records n where {same} and n.fetched_at_utc > r.fetched_at_utc"
    gone = 0
    for statement, before in (
        (f"delete from raw.records r where fetched_at_utc < $1 and exists ({newer})", raw_before),
        ("delete from ops.runs where started_at_utc < $1 and ended_at_utc is not null", runs_before),
        (versions.PRUNE, history_before),
    ):
        if before is not None:
            gone += session.execute(statement.encode(), [before]).rowcount
    return gone


def vacuum(session: "psycopg.Connection[Any]", table: str) -> None:
    """Have the server write a table anew, and note anew what its planner keeps of the values."""
    session.execute(f"vacuum (full, analyze) {table}".encode())


def vacuum_statistics(session: "psycopg.Connection[Any]") -> None:
    """Have the server write its samples of columns anew; a role that does not own the database is warned, and passed over."""
    session.execute(b"vacuum (full) pg_catalog.pg_statistic")
