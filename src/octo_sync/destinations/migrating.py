"""Bring the two DuckDB files to the schema this program knows; numbered, each step in one transaction."""

from collections.abc import Sequence
from datetime import datetime

import duckdb

from octo_sync import __version__
from octo_sync.destinations import ddl
from octo_sync.destinations.pairing import look_anew
from octo_sync.destinations.transactions import transaction
from octo_sync.errors import WarehouseError
from octo_sync.schema import Table

__all__ = ["migrate"]


def _has(db: duckdb.DuckDBPyConnection, catalog: str, table: Table) -> bool:
    found = db.execute(
        "select count(*) from duckdb_tables() where database_name = $1 and schema_name = $2 and table_name = $3",
        [catalog, table.schema, table.name],
    ).fetchone()
    return bool(found and found[0])


def migrate(
    db: duckdb.DuckDBPyConnection, tables: Sequence[Table], *, main: str, private: str, now: datetime, name: str
) -> None:
    """Make what is missing. A private file that was lost alone is made anew, and its answers are asked for again.

    Raises:
        WarehouseError: The file was written by a newer program.
    """
    of = {False: [t for t in tables if not t.private], True: [t for t in tables if t.private]}
    migrations = next(t for t in of[False] if t.full_name == "ops.schema_migrations")
    found = None
    if _has(db, main, migrations):
        row = db.execute("select max(version) from ops.schema_migrations").fetchone()
        found = row[0] if row else None
    if found is not None and found > ddl.SCHEMA_VERSION:
        raise WarehouseError(
            f"{name} was written by a newer octo-sync (schema {found}, this one knows {ddl.SCHEMA_VERSION}); "
            f"upgrade octo-sync."
        )
    if found is not None and found < ddl.SCHEMA_VERSION:
        with transaction(db):
            _make(db, of[False], main)
            db.execute("insert into ops.schema_migrations values ($1, $2, $3)", [ddl.SCHEMA_VERSION, now, __version__])
    if found is None:
        with transaction(db):
            _make(db, of[False], main)
            db.execute(f"create schema if not exists {main}.marts")
            db.execute("insert into ops.schema_migrations values ($1, $2, $3)", [ddl.SCHEMA_VERSION, now, __version__])
    if not all(_has(db, private, t) for t in of[True]):
        with transaction(db):
            _make(db, of[True], private)
        if found is not None:
            # Its rows came from answers that count as landed: an equal answer must be read again to fill it.
            with transaction(db):
                look_anew(db, private)


def _make(db: duckdb.DuckDBPyConnection, tables: Sequence[Table], catalog: str) -> None:
    """Make the tables, or add what they have gained since they were made; the values come with the next answers."""
    prefix = f"{catalog}."
    for schema in ddl.schemas(tables):
        db.execute(f"create schema if not exists {prefix}{schema}")
    found = db.execute(
        "select schema_name || '.' || table_name, column_name from duckdb_columns() where database_name = $1", [catalog]
    ).fetchall()
    there = set(found)
    old = {name for name, _ in found}
    for table in tables:
        db.execute(ddl.create_table(table, prefix=prefix))
        for column in table.all_columns if table.full_name in old else ():
            if (table.full_name, column.name) not in there:
                db.execute(f"alter table {prefix}{table.full_name} add column {column.name} {column.type}")
        for comment in ddl.comments(table, prefix=prefix):
            db.execute(comment)
