"""What goes into statements and comes out of them: rows of the program as a relation, and how many rows were touched."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from octo_sync.statements import statements

Run = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""What runs one statement with its parameters, `$1`, `$2`, …, and returns its rows."""
_FILES = [Path(__file__).parent / folder / "statements.sql" for folder in ("", "landing", "postgres")]
_FOUND = {name: text for file in _FILES for name, text in statements(file).items()}


def sql(name: str, **parts: object) -> str:
    """A statement of one of the files `statements.sql`, with these parts where it has a place for them."""
    return _FOUND[name].format_map(parts)


def equal(columns: Iterable[str], left: str, right: str) -> str:
    """The condition that two rows have the same in these columns."""
    return " and ".join(f"{left}.{c} = {right}.{c}" for c in columns) or "true"


def run(db: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[Any] | None = None) -> int:
    """Run a statement on DuckDB; how many rows it touched, or the number that it selects."""
    row = db.execute(sql, parameters).fetchone()
    return int(row[0]) if row and isinstance(row[0], int) else 0


def drop_work_tables(db: duckdb.DuckDBPyConnection) -> None:
    """Let go of what landings have worked in: it holds memory, names persons, and may be spilled to the disk."""
    for (name,) in db.execute("select table_name from duckdb_tables() where temporary").fetchall():
        db.execute(f"drop table if exists temp.{name}")


def given(
    columns: Mapping[str, str] | Sequence[str], rows: Iterable[Sequence[Any]], *, after: int = 0
) -> tuple[str, list[list[Any]]]:
    """A select of these rows, in the words that both engines share, and its parameters.

    `columns` are names with their types, or names of texts; `after` is how many parameters come before them.
    """
    types = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, "varchar")
    select = ", ".join(f"unnest(${i}::{kind}[]) as {c}" for i, (c, kind) in enumerate(types.items(), start=after + 1))
    return f"select {select}", [list(column) for column in zip(*rows, strict=True)] or [[] for _ in types]
