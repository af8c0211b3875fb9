"""Write docs/tables.md and docs/internals/ops.md from an empty warehouse: `uv run python scripts/tables.py`.

A column that several tables describe with the same words stands once, at the top of docs/tables.md.
"""

import contextlib
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import octo_sync
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.destinations.reading import ColumnInfo, TableInfo
from octo_sync.flows.publish import publish
from octo_sync.tables import all_tables, nouns

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tables.md"
OPS = ROOT / "docs" / "internals" / "ops.md"

WRITTEN = (
    "<!-- Written by scripts/tables.py from src/octo_sync/tables and warehouse/marts; a test keeps it current. -->"
)

HEAD = f"""# Tables and columns

{WRITTEN}

The same texts are comments in the database, shown by BI tools and by `octo-sync tables NAME`. Types are DuckDB's, with
`timestamptz` for `timestamp with time zone`. The tables of schema `ops` are described [for maintainers](internals/ops.md).

## Columns of several tables

The tables below only name these.
"""

OPS_HEAD = f"""# The tables of schema ops

{WRITTEN}

How fresh and complete the copy is: coverage, runs, quarantine, comparisons. Reports should read the marts `coverage`,
`sync_freshness`, `data_quality` and `recon_open`, which are made from them. Common columns are explained in
[Tables and columns](../tables.md#columns-of-several-tables).
"""

ABOUT = {
    "marts": "Begin here: wide tables with names in them.",
    "core": "What the service holds, normalised. Rows deleted at the service stay, with `is_deleted`.",
}

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


def render() -> dict[Path, str]:
    """Page → its whole text."""
    tables = sorted(_tables(), key=lambda table: table.name)
    shared = _shared(tables)
    parts = [HEAD, "\n", _grid(sorted(shared))]
    for schema, about in ABOUT.items():
        parts.append(f"\n## Schema `{schema}`\n\n{about}\n")
        parts += [_section(table, shared) for table in tables if table.schema == schema]
    ops = [OPS_HEAD, *(_section(table, shared) for table in tables if table.schema == "ops")]
    return {PAGE: "".join(parts), OPS: "".join(ops).replace("\n### ", "\n## ")}


if __name__ == "__main__":
    for page, text in render().items():
        page.write_text(text, encoding="utf-8")
