"""Write a DuckDB file anew when it holds much that nobody needs any more.

DuckDB reuses what deleted rows leave, but never gives it back, VACUUM or not, and rows that were replaced lie in the order
of their landings, which compresses badly and scans slowly. So the live rows are copied, ordered, into a file beside, and
that one takes the place. A kill at any moment leaves the old file or the new one, both whole; what is left beside is swept
when the warehouse is opened the next time.
"""

import glob
import logging
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from octo_sync.destinations import ddl
from octo_sync.destinations.base import FileSize
from octo_sync.destinations.duckdb.migrations import version_of
from octo_sync.destinations.duckdb.transactions import transaction, translated
from octo_sync.errors import WarehouseError
from octo_sync.tables.schema import Table

__all__ = [
    "About",
    "about_file",
    "bytes_of",
    "copy_rows",
    "fresh_path",
    "put_in_place",
    "rename",
    "room_for",
    "size_of",
    "stopping_after",
    "sweep",
]

log = logging.getLogger("octo_sync")

_MARGIN = 64 * 1024 * 1024
_INSIST = 0.05
_ORDER = ("product_id", "option_id", "local_start_at")
"""Within a month of travel: the order in which departures are looked at."""


@dataclass(frozen=True, slots=True)
class About:
    """Versions of a warehouse file: its schema, None when it has none; its storage; and that of DuckDB here."""

    schema: int | None
    storage: str | None
    duckdb: str


def about_file(path: Path) -> About:
    """Look at a warehouse file that nobody has open.

    Raises:
        WarehouseLocked: Another process has it open.
        WarehouseError: It is no DuckDB file.
    """
    with translated(path), duckdb.connect(":memory:", config={"threads": 1}) as db:
        program = str(duckdb.__version__)
        if not path.exists():
            return About(None, None, program)
        db.execute(f"attach {ddl.quoted(str(path))} as file (read_only)")
        found = db.execute(
            "select tags['storage_version'] from duckdb_databases() where database_name = 'file'"
        ).fetchone()
        return About(version_of(db, "file"), str(found[0]) if found and found[0] else None, program)


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
        row = db.execute(f"select count(*), coalesce(max(rowid) + 1, 0) from {catalog}.{table.full_name}").fetchone()
        if row:
            width = len(table.all_columns)
            live, slots = live + int(row[0]) * width, slots + max(int(row[0]), int(row[1])) * width
    used = db.execute(
        "select used_blocks * block_size from pragma_database_size() where database_name = $1", [catalog]
    ).fetchone()
    size = path.stat().st_size
    needed = int(used[0]) * live // slots if used and slots else size
    return FileSize(bytes=size, values=live, needed=min(size, needed))


def fresh_path(path: Path) -> Path:
    """Where a file is written anew."""
    return path.with_name(f".{path.name}.anew")


def sweep(path: Path) -> None:
    """Remove what a killed rewrite left beside the file. Only the file's owner may call it."""
    for left_over in path.parent.glob(f"{glob.escape(fresh_path(path).name)}*"):
        left_over.unlink(missing_ok=True)


def room_for(path: Path, size: int) -> None:
    """Raises WarehouseError when the disk has no room for a second file of this size."""
    free = shutil.disk_usage(path.parent).free
    if free < size + _MARGIN:
        raise WarehouseError(
            f"{path.name} holds much that could be given back, but to write it anew takes {size >> 20} MB beside it, and "
            f"{free >> 20} MB are free; free some. Nothing is wrong with it."
        )


@contextmanager
def stopping_after(db: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt whatever statement runs after so many seconds, and those that follow; DuckDB then raises."""
    done = threading.Event()

    def interrupt() -> None:
        if not done.wait(seconds):
            # Again and again: between two statements an interruption says nothing to the next one.
            while not done.wait(_INSIST):
                db.interrupt()

    watching = threading.Thread(target=interrupt, daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()


def copy_rows(db: duckdb.DuckDBPyConnection, source: str, target: str, tables: Sequence[Table]) -> None:
    """Copy everything in one attached file into another that is empty: tables, what a user has added, comments.

    Departures and bookings are ordered by month of travel, product, option and start; the others keep their order.
    """
    with transaction(db):  # each statement of its own would be a sync of the disk, and there are some hundreds
        for schema in _schemas(db, source):
            db.execute(f"create schema if not exists {target}.{schema}")
        for table in tables:
            db.execute(ddl.create_table(table, prefix=f"{target}."))
            for comment in ddl.comments(table, prefix=f"{target}."):
                db.execute(comment)
    for table in tables:
        for condition, order in _slices(db, source, table):
            db.execute(
                f"insert into {target}.{table.full_name} select * from {source}.{table.full_name} {condition} {order}"
            )
    _copy_others(db, source, target, {t.full_name for t in tables})
    for table in tables:
        counts = [
            db.execute(f"select count(*) from {catalog}.{table.full_name}").fetchone() for catalog in (source, target)
        ]
        if counts[0] != counts[1]:
            raise WarehouseError(
                f"Writing {table.full_name} anew gave {counts[1]} rows of {counts[0]}; it was left alone."
            )


def _schemas(db: duckdb.DuckDBPyConnection, catalog: str) -> list[str]:
    found = db.execute(
        "select schema_name from duckdb_schemas() where database_name = $1 and not internal", [catalog]
    ).fetchall()
    return sorted(f'"{name}"' for (name,) in found)


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


def _copy_others(db: duckdb.DuckDBPyConnection, source: str, target: str, known: set[str]) -> None:
    """Tables and views that are not ours to define: a user has added them."""
    made = db.execute(
        "select 'table', schema_name, table_name, sql, comment from duckdb_tables() where database_name = $1 "
        "and not temporary union all select 'view', schema_name, view_name, sql, comment "
        "from duckdb_views() where database_name = $1 and not internal and not temporary",
        [source],
    ).fetchall()
    others = [one for one in made if f"{one[1]}.{one[2]}" not in known]
    comments = db.execute(
        "select schema_name, table_name, column_name, comment from duckdb_columns() "
        "where database_name = $1 and not internal and comment is not null",
        [source],
    ).fetchall()
    # Whatever a view reads must be there first, and nothing says in which order they were made: as often as it helps.
    left = sorted(others, key=lambda one: one[0] == "view")
    db.execute(f"use {target}")
    try:
        while left:
            failed = [one for one in left if not _made(db, source, *one)]
            if len(failed) == len(left):
                # It cannot be read in the old file either: a view of something that is gone.
                log.warning("action=view_left_out names=%s", ",".join(f"{one[1]}.{one[2]}" for one in failed))
                break
            left = failed
        lost = {f"{one[1]}.{one[2]}" for one in left}
        for schema, name, column, comment in comments:
            if f"{schema}.{name}" not in known | lost:
                db.execute(f'comment on column "{schema}"."{name}"."{column}" is {ddl.quoted(comment)}')
    finally:
        db.execute(f"use {source}")


def _made(
    db: duckdb.DuckDBPyConnection, source: str, kind: str, schema: str, name: str, sql: str, comment: str | None
) -> bool:
    """Make one table with its rows, or one view; whether all that it reads was there."""
    try:
        db.execute(sql)
    except (duckdb.CatalogException, duckdb.BinderException):
        if kind == "table":
            raise
        return False
    if kind == "table":
        db.execute(f'insert into "{schema}"."{name}" select * from {source}."{schema}"."{name}"')
    if comment is not None:
        db.execute(f'comment on {kind} "{schema}"."{name}" is {ddl.quoted(comment)}')
    return True


def put_in_place(fresh: Path, path: Path) -> None:
    """Give a finished file, open nowhere, the name of another one, open nowhere either.

    A write-ahead log beside the old file would be applied to the new one: there must be none.
    """
    log = path.with_name(f"{path.name}.wal")
    if log.exists():
        raise WarehouseError(f"{log.name} was not folded into {path.name}; it was not written anew.")
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    fresh.chmod(0o600)
    rename(fresh, path)


def rename(fresh: Path, path: Path) -> None:
    """Give a file another one's name, for good: the directory is on the disk, too."""
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
