"""Departures that keep their id and move to another day. Every statement runs inside the landing's transaction.

The merge looks only at the landing's own days, because a large table is skipped over by days and not by ids. What it does
not find there is either new or was on another day: only that is looked for in the whole table, and where it is found, the
merge decides anew without regard to days.
"""

import duckdb

from octo_sync.destinations.ddl import placed
from octo_sync.destinations.landing.kept_values import decided
from octo_sync.destinations.relations import equal, run, sql
from octo_sync.tables.schema import Table

FEW = 2_000
"""New departures in one landing that are looked for on other days, whatever was landed before."""

_OPTION = ("connection_id", "product_id", "option_id")


def new_keys(db: duckdb.DuckDBPyConnection) -> list[tuple[str, ...]]:
    """The keys that are staged and not on their days, where they may be on others; one a row."""
    return db.execute(sql("new_departures")).fetchall()


def are_elsewhere(db: duckdb.DuckDBPyConnection, table: Table, prune: str, new: int) -> bool:
    """Whether decided rows that are new on the landing's days are there on another day.

    `prune` is the condition by which rows of the table, alias `t`, are on the landing's days, `new` how many are not there.
    """
    where = f"d.old_row is null and not (true{prune})"
    if new > FEW:
        # Of options that an earlier run landed something of: a first load would look for everything and find nothing.
        own = equal(_OPTION, "c", "d")
        where += (
            f" and exists (select 1 from ops.coverage c where c.resource = 'availability' and {own} "
            f"and c.run_id <> getvariable('landing_run'))"
        )
    same = equal(table.key, "t", "d")
    return run(db, f"select count(*) from {decided(table)} d join {placed(table)} t on {same} where {where}") > 0


def carry(db: duckdb.DuckDBPyConnection, table: Table) -> int:
    """Make `moved`: the keys of decided rows whose day is another one now, with that day; how many."""
    return run(
        db,
        f"create or replace temp table moved as select {', '.join(table.key)}, local_date from {decided(table)} "
        "where old_row is not null and old_local_date <> local_date",
    )


def leave(db: duckdb.DuckDBPyConnection, table: Table) -> None:
    """A month that a departure has left is no longer what its last answer said: an equal one is read again."""
    run(db, sql("month_left", decided=decided(table)))
