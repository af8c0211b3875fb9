"""Parameters as PostgreSQL takes them, and its answers as `Rows`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import postgres

from octo_sync.destinations.base import Rows
from octo_sync.destinations.postgres import Session
from octo_sync.destinations.relations import Run

# A name after a dollar, but not in a text, a quoted name or a comment, which come first and are left alone.
_NAMED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$([a-z_]\w*)", re.DOTALL | re.IGNORECASE)
_TYPES = {
    "text": "VARCHAR",
    "varchar": "VARCHAR",
    "name": "VARCHAR",
    "bool": "BOOLEAN",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "numeric": "DECIMAL",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}


def numbered(sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> tuple[str, list[Any]]:
    """`$name` → `$1`; numbers stay. Names that are not given are left for the server to refuse."""
    if not isinstance(parameters, Mapping):
        return sql, list(parameters)
    order: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if name is None or name not in parameters:
            return found[0]
        if name not in order:
            order.append(name)
        return f"${order.index(name) + 1}"

    return _NAMED.sub(number, sql), [parameters[name] for name in order]


def columns_of(cursor: psycopg.Cursor[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and types of an answer's columns, the types as DuckDB calls them."""
    described = cursor.description or ()
    kinds = (postgres.types.get(c.type_code) for c in described)
    return tuple(c.name for c in described), tuple(
        _TYPES.get(k.name, k.name.upper()) if k else "UNKNOWN" for k in kinds
    )


def rows_of(cursor: psycopg.Cursor[Any], limit: int | None) -> Rows:
    """What a statement answered, at most `limit` rows."""
    columns, types = columns_of(cursor)
    if not columns:
        return Rows((), [])
    rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)
    cut = limit is not None and len(rows) > limit
    return Rows(columns, rows[:limit] if cut else rows, types, cut)


def run_in(session: Session) -> Run:
    """Statements in this session, in the words that both engines share."""

    def run(sql: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        cursor = session.execute(sql.encode(), list(parameters) or None)
        return cursor.fetchall() if cursor.description else [(cursor.rowcount,)]

    return run
