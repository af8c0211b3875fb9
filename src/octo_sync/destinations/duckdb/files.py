"""The two DuckDB files of a warehouse: attached to one connection, sized, and written anew when much is needed no more.

DuckDB reuses what deleted rows leave, but never gives it back, VACUUM or not, and rows that were replaced lie in the order
of their landings, which compresses badly and scans slowly. So the live rows are copied, ordered, into a file beside, and
that one takes the place. A kill at any moment leaves the old file or the new one, both whole; what is left beside is swept
when the warehouse is opened the next time.
"""

import glob
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb

from octo_sync.destinations.base import FileSize
from octo_sync.destinations.ddl import MAIN, PRIVATE, quoted
from octo_sync.destinations.duckdb.migrations import version_of
from octo_sync.destinations.duckdb.transactions import stopping_after, translated
from octo_sync.disk import fsync, rename
from octo_sync.errors import WarehouseError
from octo_sync.tables.schema import Table

STORAGE = "v1.2.0"
"""The storage version is pinned, so that BI drivers on an older DuckDB can open the read copy."""
_ATTEMPTS = 100
"""Publications that may come while a file is attached; the next one takes as long as the file takes to be copied."""
_MARGIN = 64 * 1024 * 1024
_ORDER = ("product_id", "option_id", "local_start_at")
"""Within a month of travel: the order in which departures are looked at."""


def database(*, threads: int, memory: str, spill: Path) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory that files are attached to, in UTC; what does not fit into `memory` goes to the folder `spill`."""
    db = duckdb.connect(":memory:", config={"threads": threads, "memory_limit": memory, "temp_directory": str(spill)})
    db.execute("set timezone = 'UTC'")
    return db


def attach(db: duckdb.DuckDBPyConnection, file: Path, name: str, *, is_private: bool) -> None:
    """Open a file under this name; it is made when it is not there."""
    # Payloads are long and few: in small row groups they go straight to the file instead of through its log.
    options = ", row_group_size 2048" if is_private else ""
    db.execute(f"attach {quoted(str(file))} as {name} (storage_version '{STORAGE}'{options})")


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


def schema_of_file(path: Path) -> int | None:
    """Schema version of a warehouse file that nobody has open; None when it has no tables yet, or is not there.

    Raises:
        WarehouseLocked: Another process has it open.
        WarehouseError: It is no DuckDB file.
    """
    with translated(path), duckdb.connect(":memory:", config={"threads": 1}) as db:
        if not path.exists():
            return None
        db.execute(f"attach {quoted(str(path))} as file (read_only)")
        return version_of(db, "file")


def bytes_of(path: Path) -> int:
    """Bytes of a file and of what is not folded into it yet."""
    return sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}.wal")) if file.exists())


def size_of(db: duckdb.DuckDBPyConnection, catalog: str, path: Path, tables: Sequence[Table]) -> FileSize:
    """Bytes of a file and values in it, after a checkpoint; `needed` are the bytes that its live rows take by themselves.

    `needed` leaves out free blocks and the share of deleted rows, not what a bad order costs: it is at most too large.
    """
    db.execute(f"checkpoint {catalog}")
    live = slots = 0
    for table in tables:
        counted = f"select count(*), coalesce(max(rowid) + 1, 0) from {catalog}.{table.full_name}"
        ((rows, ids),) = db.execute(counted).fetchall()
        live, slots = live + rows * len(table.all_columns), slots + max(rows, ids) * len(table.all_columns)
    used = db.execute(
        "select used_blocks * block_size from pragma_database_size() where database_name = $1", [catalog]
    ).fetchone()
    size = path.stat().st_size
    needed = int(used[0]) * live // slots if used and slots else size
    return FileSize(bytes=size, values=live, needed=min(size, needed))


def _fresh_path(path: Path) -> Path:
    """Where a file is written anew."""
    return path.with_name(f".{path.name}.anew")


def sweep(path: Path) -> None:
    """Remove what a killed rewrite left beside the file. Only the file's owner may call it."""
    for left_over in path.parent.glob(f"{glob.escape(_fresh_path(path).name)}*"):
        left_over.unlink(missing_ok=True)


def write_anew(
    db: duckdb.DuckDBPyConnection,
    reader: duckdb.DuckDBPyConnection,
    name: str,
    path: Path,
    tables: Sequence[Table],
    *,
    within: float,
) -> int:
    """Write a file that is attached as `name` anew with the live rows of its `tables` and put it in place; its size in bytes.

    Nobody may use the two connections meanwhile.

    Raises:
        WarehouseError: It took longer than `within` seconds, or there is no room; the file is as it was.
    """
    fresh, size, free = _fresh_path(path), path.stat().st_size, shutil.disk_usage(path.parent).free
    if free < size + _MARGIN:
        raise WarehouseError(
            f"{path.name} holds much that could be given back, but to write it anew takes {size >> 20} MB beside it, and "
            f"{free >> 20} MB are free; free some. Nothing is wrong with it."
        )
    sweep(path)
    try:
        attach(db, fresh, "anew", is_private=name == PRIVATE)
        try:
            with stopping_after(db, within):
                copy_rows(db, name, "anew", tables)
                db.execute("checkpoint anew")
        finally:
            db.execute(f"use {MAIN}")
            db.execute("detach anew")
        _swap(db, reader, name, path, fresh)
    except duckdb.InterruptException as error:
        raise WarehouseError(f"Writing {path.name} anew takes longer than {within:g} s; it is as it was.") from error
    finally:
        sweep(path)
    return path.stat().st_size


def _swap(db: duckdb.DuckDBPyConnection, reader: duckdb.DuckDBPyConnection, name: str, path: Path, fresh: Path) -> None:
    """Give the finished file the name of the one that is attached.

    A write-ahead log beside the old file would be applied to the new one: there must be none.
    """
    db.execute(f"checkpoint {name}")
    for connection in (db, reader):
        connection.execute("use memory").fetchall()  # also lets go of a result that was not read to its end
    try:
        db.execute(f"detach {name}")
        log = path.with_name(f"{path.name}.wal")
        if log.exists():
            raise WarehouseError(f"{log.name} was not folded into {path.name}; it was not written anew.")
        fsync(fresh)
        fresh.chmod(0o600)
        rename(fresh, path)
    finally:
        attach(db, path, name, is_private=name == PRIVATE)
        for connection in (db, reader):
            connection.execute(f"use {MAIN}")


def copy_rows(db: duckdb.DuckDBPyConnection, source: str, target: str, tables: Sequence[Table]) -> None:
    """Copy everything in one attached file into another that is empty: tables, what a user has added, comments.

    Departures and bookings are ordered by month of travel, product, option and start; the others keep their order.
    """
    db.execute(f"copy from database {source} to {target} (schema)")
    known = {table.full_name: table for table in tables}
    for schema, name in db.execute(
        "select schema_name, table_name from duckdb_tables() where database_name = $1 and not temporary", [source]
    ).fetchall():
        table, relation = known.get(f"{schema}.{name}"), f'"{schema}"."{name}"'
        for condition, order in _slices(db, source, table) if table else (("", ""),):
            db.execute(f"insert into {target}.{relation} select * from {source}.{relation} {condition} {order}")
        here, there = (
            db.execute(f"select count(*) from {catalog}.{relation}").fetchone() for catalog in (source, target)
        )
        if here != there:
            raise WarehouseError(f"Writing {schema}.{name} anew gave {there} rows of {here}; it was left alone.")


def _slices(db: duckdb.DuckDBPyConnection, source: str, table: Table) -> Iterator[tuple[str, str]]:
    """Conditions that cut the table into months, so that sorting needs little memory; with the order within each."""
    names = [c.name for c in table.all_columns]
    if "local_date" not in names:
        yield "", ""
        return
    order = "order by " + ", ".join([*(n for n in _ORDER if n in names), *(k for k in table.key if k not in _ORDER)])
    months = db.execute(
        f"select distinct year(local_date) * 12 + month(local_date) as m from {source}.{table.full_name} order by m"
    ).fetchall()
    for (month,) in months:
        if month is None:
            yield "where local_date is null", order
            continue
        first, following = (f"make_date({(m - 1) // 12}, {(m - 1) % 12 + 1}, 1)" for m in (month, month + 1))
        yield f"where local_date >= {first} and local_date < {following}", order
