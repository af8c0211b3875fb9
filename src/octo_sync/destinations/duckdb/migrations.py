"""Bring the two DuckDB files to the schema this program knows; numbered steps, each one transaction.

A kill at any moment leaves a file at the version that its `ops.schema_migrations` says, and the next opening goes on from
there. Two files cannot share a transaction: the private one is brought into shape first, which may be done any number of
times, and the version is the warehouse's.
"""

import dataclasses
from collections.abc import Sequence
from datetime import datetime

import duckdb

from octo_sync import __version__
from octo_sync.destinations import ddl, migrations
from octo_sync.destinations.duckdb.pair import look_anew
from octo_sync.destinations.duckdb.transactions import transaction
from octo_sync.destinations.migrations import Step
from octo_sync.destinations.relations import sql
from octo_sync.tables.schema import Table

_Columns = list[tuple[str, str]]


def version_of(db: duckdb.DuckDBPyConnection, catalog: str) -> int | None:
    """The schema version of an attached warehouse; None when it has no tables yet."""
    # Asking the table costs a tenth of asking the catalog for it.
    try:
        found = db.execute(f"select max(version) from {catalog}.ops.schema_migrations").fetchone()
    except duckdb.CatalogException:
        return None
    return int(found[0]) if found and found[0] is not None else None


def migrate(db: duckdb.DuckDBPyConnection, tables: Sequence[Table], *, now: datetime, name: str) -> tuple[Step, ...]:
    """Make what is missing; the steps that were taken, none for a file that was current or is new.

    A private file that was lost alone is made anew, and its answers are asked for again.

    Raises:
        WarehouseError: The file was written by a newer program.
    """
    found = version_of(db, ddl.MAIN)
    taken = migrations.steps_after(found, name)
    lost = _shape_private(db, [t for t in tables if t.private])
    for step in migrations.STEPS[-1:] if found is None else taken:
        with transaction(db):
            # With the first step, so that no older program can take a file of the new shape for its own.
            _shape(db, [t for t in tables if not t.private], ddl.MAIN)
            db.execute(f"create schema if not exists {ddl.MAIN}.marts")
            for statement in step.statements if taken else ():
                db.execute(statement)
            db.execute("insert into ops.schema_migrations values ($1, $2, $3)", [step.version, now, __version__])
    if lost and found is not None:
        # Its rows came from answers that count as landed: an equal answer must be read again to fill it. Should it die
        # before this, the number that a new private file lacks tells the same.
        with transaction(db):
            look_anew(db)
    return taken


def _shape_private(db: duckdb.DuckDBPyConnection, tables: Sequence[Table]) -> bool:
    """Bring the private file into shape; whether a table was not there at all."""
    there = {t.full_name: _names(db, ddl.placed(t)) for t in tables}
    if all([c.name for c in t.all_columns] == there[t.full_name] for t in tables):
        return False
    with transaction(db):
        _shape(db, tables, ddl.PRIVATE)
    return any(not names for names in there.values())


def _names(db: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    """A table's columns, in order; none where there is no such table."""
    try:
        return [column[0] for column in db.execute(f"select * from {table} limit 0").description or ()]
    except duckdb.CatalogException:
        return []


def _columns(db: duckdb.DuckDBPyConnection, catalog: str) -> dict[str, _Columns]:
    """Names and types of each table's columns, in order."""
    found: dict[str, _Columns] = {}
    for table, name, type_ in db.execute(sql("duckdb_columns"), [catalog]).fetchall():
        found.setdefault(table, []).append((name, type_))
    return found


def _shape(db: duckdb.DuckDBPyConnection, tables: Sequence[Table], catalog: str) -> None:
    """Make the tables; one whose columns differ is made anew with the rows it has, so that both roads end in the same.

    What a table has gained is null until the next pull: no answer is equal to one of before (`tables.form`).
    """
    prefix = f"{catalog}."
    for schema in ddl.schemas(tables):
        db.execute(f"create schema if not exists {prefix}{schema}")
    there = _columns(db, catalog)
    fresh = {t: dataclasses.replace(t, full_name=f"{t.full_name}_fresh") for t in tables if t.full_name in there}
    for table in tables:
        db.execute(ddl.create_table(fresh.get(table, table), prefix=prefix))
    wanted = _columns(db, catalog)
    for table, made in fresh.items():
        old = there[table.full_name]
        if wanted[made.full_name] == old:
            db.execute(f"drop table {prefix}{made.full_name}")
            continue
        names = ", ".join(c.name for c in table.all_columns if c.name in dict(old))
        db.execute(f"insert into {prefix}{made.full_name} ({names}) select {names} from {prefix}{table.full_name}")
        db.execute(f"drop table {prefix}{table.full_name}")
        db.execute(f"alter table {prefix}{made.full_name} rename to {table.name}")
    for comment in (comment for table in tables for comment in ddl.comments(table, prefix=prefix)):
        db.execute(comment)
