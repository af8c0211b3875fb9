"""Attach a published DuckDB file whole, also while another one is being swapped in."""

from pathlib import Path

import duckdb

from octo_sync.destinations.ddl import quoted
from octo_sync.errors import WarehouseError

_ATTEMPTS = 100
"""Publications that may come between; the next one takes as long as the file takes to be copied."""


def attach_published(db: duckdb.DuckDBPyConnection, path: Path, name: str) -> None:
    """Attach a file for reading, as one publication wrote it.

    DuckDB 2.0 reads a file's header, closes it, and opens it again by its path for the rest (1.5 opened it once). A file
    swapped in between would be read with another one's header: it looks damaged, or has rows of both. So it counts only
    when the path stood for the same file before and after. What is attached stays open, and is not looked up again.

    Raises:
        duckdb.Error: It cannot be attached.
        WarehouseError: It was replaced each time.
    """
    for _ in range(_ATTEMPTS):
        before = _identity(path)
        try:
            db.execute(f"attach {quoted(str(path))} as {name} (read_only)")
        except duckdb.Error:
            if _identity(path) == before:
                raise
            continue
        if _identity(path) == before:
            return
        db.execute(f"detach {name}")
    raise WarehouseError(f"{path} was replaced {_ATTEMPTS} times while it was being opened; what replaces it so often?")


def _identity(path: Path) -> tuple[int, int, int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
