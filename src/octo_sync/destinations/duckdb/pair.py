"""The two files of a DuckDB warehouse, and how to tell that one is ahead of the other.

They cannot be written in one transaction, so the private file is written first. If the warehouse's transaction then never
comes, the private file holds what no landing vouches for, and should the service go back to its former answer, an equal
hash would keep it there. So each landing that writes the private file counts up there and notes the number here.
"""

import logging

import duckdb

from octo_sync.destinations.ddl import PRIVATE
from octo_sync.destinations.relations import run, sql

log = logging.getLogger("octo_sync")


def number(db: duckdb.DuckDBPyConnection) -> None:
    """Count up. Runs inside the private file's transaction."""
    if not run(db, f"update {PRIVATE}.private.landed set number = number + 1"):
        db.execute(f"insert into {PRIVATE}.private.landed values (1)")


def note(db: duckdb.DuckDBPyConnection) -> None:
    """Take the private file's number over. Runs inside the warehouse's transaction."""
    db.execute(f"update ops.writer set landed = (select max(number) from {PRIVATE}.private.landed)")


def is_torn(db: duckdb.DuckDBPyConnection) -> bool:
    """Whether the private file was written by a landing that the warehouse knows nothing of, or was replaced."""
    ahead = f"(select max(number) from {PRIVATE}.private.landed) is distinct from (select max(landed) from ops.writer)"
    return bool(run(db, f"select {ahead}"))


def look_anew(db: duckdb.DuckDBPyConnection) -> None:
    """Trust no answer that feeds the private file to be landed already. Runs inside the warehouse's transaction."""
    db.execute(sql("look_anew"))
    db.execute("update core.bookings set payload_digest = null where payload_digest is not null")
    note(db)
    log.warning("action=look_anew reason=private_file_differs")
