"""What the program knows as a relation of SQL, in the words that DuckDB and PostgreSQL share. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["given"]


def given(columns: Mapping[str, str], rows: Iterable[Sequence[Any]], *, after: int = 0) -> tuple[str, list[list[Any]]]:
    """A select of these rows, whose columns have these types, and its parameters; `after` is how many come before them."""
    select = ", ".join(f"unnest(${i}::{kind}[]) as {c}" for i, (c, kind) in enumerate(columns.items(), start=after + 1))
    return f"select {select}", [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
