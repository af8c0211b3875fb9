"""DDL from the tables' definitions: the same text creates the tables, fills `warehouse/core/*.sql` and is tested current."""

from collections.abc import Iterable

from octo_sync.tables.schema import Merge, Table

MAIN, PRIVATE = "warehouse", "personal"
"""What the two files of a warehouse, or what stands for them, are called in SQL on DuckDB."""


def quoted(text: str) -> str:
    """A text as SQL spells it."""
    return "'" + text.replace("'", "''") + "'"


def placed(table: Table) -> str:
    """A table as SQL on DuckDB names it, with its file."""
    return f"{PRIVATE if table.private else MAIN}.{table.full_name}"


def create_table(table: Table, *, prefix: str = "") -> str:
    """`CREATE TABLE IF NOT EXISTS`, with the common type names of DuckDB and PostgreSQL.

    There is no PRIMARY KEY: on DuckDB it makes bulk landings twenty times slower and files five times larger, and the
    landing keeps keys unique; `warehouse/checks/unique_keys.sql` proves it before every publish.
    """
    width = max(len(c.name) for c in table.all_columns)
    lines = [f"  {c.name:{width}} {c.type}{' not null' if c.name in table.key else ''}" for c in table.all_columns]
    return f"create table if not exists {prefix}{table.full_name} (\n" + ",\n".join(lines) + "\n)"


def comments(table: Table, *, prefix: str = "") -> list[str]:
    """`COMMENT ON` for the table and each column, so that BI tools show what they mean."""
    grain = f"{table.description} One row: {table.grain[0].lower()}{table.grain[1:]}"
    return [
        f"comment on table {prefix}{table.full_name} is {quoted(grain)}",
        *(
            f"comment on column {prefix}{table.full_name}.{c.name} is {quoted(c.description)}"
            for c in table.all_columns
        ),
    ]


def script(table: Table) -> str:
    """The file `warehouse/core/<schema>.<table>.sql`: for reading, and for making the tables by hand."""
    how = {
        Merge.MERGE: "merged by key; deletions are marked, never made",
        Merge.REPLACE: f"compared when its row in {table.parent} changes; what differs is written anew, what is gone removed",
        Merge.VERSIONS: "one row a version",
        Merge.HISTORY: f"one row a version of a row in {table.history_of}, written with it",
        Merge.LOG: "written by octo-sync itself",
    }[table.merge]
    head = [
        f"-- name: {table.full_name}",
        f"-- grain: {table.grain}",
        f"-- description: {table.description}",
        f"-- key: {', '.join(table.key)}",
        f"-- landing: {how}",
        "-- Generated from src/octo_sync/tables by scripts/tables.py; do not edit.",
    ]
    return "\n".join([*head, create_table(table) + ";", *(f"{c};" for c in comments(table))]) + "\n"


def schemas(tables: Iterable[Table]) -> list[str]:
    """The schemas the tables are in, in order."""
    return sorted({t.schema for t in tables})
