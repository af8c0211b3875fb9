"""A DuckDB file with the rows of a PostgreSQL warehouse, as they were at one instant: to be compared by `compare.py`."""

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from octo_sync.destinations.ddl import MAIN
from octo_sync.destinations.duckdb.transactions import translated as translated_duckdb
from octo_sync.destinations.postgres.session import asking
from octo_sync.destinations.postgres.workbench import Workbench
from octo_sync.tables.schema import Table

__all__ = ["snapshot"]

_LOCK_TIMEOUT = 10.0


def snapshot(address: str, target: Path, tables: Sequence[Table]) -> None:
    """Copy every table of `core` and `ops` into a new file; nothing of the private ones.

    Raises:
        WarehouseError: The server cannot be read, or the file not be written.
    """
    chosen = [t for t in tables if not t.private]
    with (
        asking(address, lock_timeout=_LOCK_TIMEOUT) as session,
        translated_duckdb(target),
        tempfile.TemporaryDirectory(prefix=f".{target.stem}.", dir=target.parent) as spool,
        contextlib.closing(Workbench(chosen, spool=Path(spool), memory="512MB", threads=2, main=target)) as bench,
    ):
        session.execute("begin isolation level repeatable read read only")
        for table in chosen:
            bench.bring(session, table, "true", ())
            bench.db.execute(f"truncate before.{table.full_name}")
        bench.db.execute(f"checkpoint {MAIN}")
