"""Write docs/tables.md, docs/internals/columns.md and warehouse/core/*.sql: `scripts/write.sh`.

The first lists every table with its key, its grain and its columns' names; the second has each column's type and meaning. A
column that several tables describe with the same words stands once, at the top of the second.
"""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import octo_sync
from octo_sync.destinations.ddl import script
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.destinations.reading import ColumnInfo, TableInfo
from octo_sync.flows.publish import publish
from octo_sync.tables import all_tables, by_name, nouns

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tables.md"
COLUMNS = ROOT / "docs" / "internals" / "columns.md"
DDL = ROOT / "warehouse" / "core"

WRITTEN = (
    "<!-- Written by scripts/tables.py from src/octo_sync/tables and warehouse/marts; a test keeps it current. -->"
)

HEAD = f"""# Tables

{WRITTEN}

Every table with what one row is. What a column means: `octo-sync tables fct_bookings`, the comments that BI tools show, or
[every column](internals/columns.md).

| column | meaning |
|---|---|
| `…_key` | one column to join on: `booking_key`, `departure_key`, `product_key`, `option_key`, `supplier_key` |
| `…_id`, `…_uuid` | OCTO's own, unique in a service; `option_id` in its product, `availability_id` in its option |
| `connection_id` | the connection (token) that saw the row |
| `…_amount`, `…_minor` | exact amount in `currency`; the same in minor units |
| `utc_…`, `…_at_utc` | an instant |
| `local_…`, `travel_date` | wall clock and day at the venue |
| `booking_date` | day in the business time zone |
| `is_…` | true or false |
| null | unknown, never 0; of `capacity` and `vacancies` also without limit |
"""

COLUMNS_HEAD = f"""# Every column

{WRITTEN}

The same texts are comments in the database. Types are DuckDB's, with `timestamptz` for `timestamp with time zone`.
[Tables](../tables.md) is the overview.

## Columns of several tables

The tables below only name these.
"""

ABOUT = {
    "marts": "Begin here: wide tables with names in them.",
    "core": "What the service holds, normalised. Rows deleted at the service stay, with `is_deleted`.",
    "ops": "How fresh and complete the copy is: coverage, runs, quarantine, comparisons. Reports should read the marts "
    "`coverage`, `sync_freshness`, `data_quality` and `recon_open`, which are made from them.",
}

HOUSEKEEPING = ("first_seen_at_utc", "last_seen_at_utc", "is_deleted", "deleted_at_utc", "row_hash", "stale_columns")
"""Columns of most tables of `core`, which the overview names once."""

SHARED = 2
"""How many tables must describe a column with the same words before it stands at the top only."""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _tables() -> Sequence[TableInfo]:
    """What an empty copy says about its tables."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        with contextlib.closing(
            DuckDBWarehouse(
                directory / "octo.duckdb",
                directory / "octo.private.duckdb",
                tables=all_tables(),
                nouns=nouns(),
                now=datetime(2000, 1, 1, tzinfo=UTC),
            )
        ) as warehouse:
            publish(warehouse, ROOT, directory / "octo.read.duckdb")
        with octo_sync.open(directory / "octo.read.duckdb") as copy:
            return copy.tables()


def _row(column: ColumnInfo) -> str:
    kind = column.type.lower().replace("timestamp with time zone", "timestamptz")
    return f"| `{column.name}` | {kind} | {_cell(column.description)} |"


def _grid(rows: Sequence[str]) -> str:
    return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows, ""])


def _shared(tables: Sequence[TableInfo]) -> set[str]:
    """The rows that stand once: of each name the most frequent description, where several tables have it."""
    counted = Counter(_row(column) for table in tables for column in table.columns)
    best: dict[str, str] = {}
    for row, count in counted.most_common():
        if count >= SHARED:
            best.setdefault(row.split("`")[1], row)
    return set(best.values())


def _section(table: TableInfo, shared: set[str]) -> str:
    rows = [_row(column) for column in table.columns]
    own = [row for row in rows if row not in shared]
    also = ", ".join(f"`{row.split('`')[1]}`" for row in rows if row in shared)
    parts = [f"\n### `{table.full_name}`\n\n{_cell(table.description)}\n"]
    parts += [f"\nCommon columns: {also}.\n"] if also else []
    parts += ["\n" + _grid(own)] if own else []
    return "".join(parts)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _line(table: TableInfo) -> str:
    """A table of the overview: what one row is, and its columns, those of its key first where it has one."""
    grain = table.description.rpartition(" One row: ")[2].removesuffix(".")
    names = [column.name for column in table.columns if table.schema == "marts" or column.name not in HOUSEKEEPING]
    if table.schema == "marts":
        return f"| `{table.name}` | {grain[0].lower()}{grain[1:]} | {_names(names)} |"
    key = by_name(table.full_name).key
    return f"| `{table.name}` | {grain} | {_names(key)} | {_names(name for name in names if name not in key)} |"


def _overview(tables: Sequence[TableInfo]) -> str:
    parts = [HEAD]
    for schema, head in (("marts", "| mart | one row | columns |"), ("core", "| table | one row | key | columns |")):
        rows = [_line(table) for table in tables if table.schema == schema]
        line = "|---" * (head.count("|") - 1) + "|"
        parts.append("\n".join(["", f"## Schema `{schema}`", "", ABOUT[schema], "", head, line, *rows, ""]))
    parts.append(f"\nMost tables of `core` also have {_names(HOUSEKEEPING)}.\n")
    parts.append(f"\n## Schema `ops`\n\n{ABOUT['ops']}\n[Its columns](internals/columns.md#schema-ops).\n")
    return "".join(parts)


def render() -> dict[Path, str]:
    """Page or script → its whole text."""
    tables = sorted(_tables(), key=lambda table: table.name)
    shared = _shared(tables)
    parts = [COLUMNS_HEAD, "\n", _grid(sorted(shared))]
    for schema, about in ABOUT.items():
        parts.append(f"\n## Schema `{schema}`\n\n{about}\n")
        parts += [_section(table, shared) for table in tables if table.schema == schema]
    scripts = {DDL / f"{table.full_name}.sql": script(table) for table in all_tables()}
    return {PAGE: _overview(tables), COLUMNS: "".join(parts), **scripts}


if __name__ == "__main__":
    rendered = render()
    for gone in set(DDL.glob("*.sql")) - set(rendered):
        gone.unlink()
    for page, text in rendered.items():
        page.write_text(text, encoding="utf-8")
