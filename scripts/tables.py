"""Write docs/tables.md from an empty warehouse with its marts: `uv run python scripts/tables.py`."""

import contextlib
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import octo_sync
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows.publish import publish
from octo_sync.tables import all_tables, nouns

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tables.md"

HEAD = """# Tables and columns

<!-- Written by scripts/tables.py from src/octo_sync/tables and warehouse/marts; a test keeps it current. -->

Every table of the read copy, and of PostgreSQL's schemas `marts`, `core` and `ops`, with the types that DuckDB shows.
`octo-sync tables NAME` says the same; BI tools show it too, because these texts are comments in the database.
[The warehouse](warehouse.md) says which table is for what; [Personal data](privacy.md) what is in no table here.
"""

ABOUT = {
    "marts": "Begin here: wide tables with every name in them.",
    "core": "What the service holds, normalised. A row that the service no longer has stays, with `is_deleted`.",
    "ops": "How fresh and complete the copy is: coverage, runs, quarantine, comparisons.",
}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def render() -> str:
    """The whole page."""
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
            tables = copy.tables()
    parts = [HEAD]
    for schema, about in ABOUT.items():
        parts.append(f"\n## Schema `{schema}`\n\n{about}\n")
        for table in sorted((t for t in tables if t.schema == schema), key=lambda t: t.name):
            rows = "\n".join(
                f"| `{column.name}` | {column.type.lower()} | {_cell(column.description)} |" for column in table.columns
            )
            parts.append(
                f"\n### `{table.full_name}`\n\n{_cell(table.description)}\n\n"
                f"| column | type | meaning |\n|---|---|---|\n{rows}\n"
            )
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
