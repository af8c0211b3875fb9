"""`sources.yml` for people who build on the copy with dbt: every table and column with what it means, and tests on keys.

YAML is written by hand, because a document of this shape needs twenty lines and JSON's texts are YAML's. The same copy gives
the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from octo_sync.destinations.reading import TableInfo
from octo_sync.tables import all_tables

__all__ = ["sources"]


def sources(tables: Iterable[TableInfo], *, database: str = "octo") -> str:
    """The file's text: one dbt source per schema. `database` is what the copy is attached as."""
    return "\n".join(_lines(sorted(tables, key=lambda t: (t.schema, t.name)), database)) + "\n"


def _lines(tables: Sequence[TableInfo], database: str) -> Iterator[str]:
    keys = {t.full_name: t.key for t in all_tables()}
    yield "# Written by octo-sync export dbt; it is overwritten when that runs again."
    yield "version: 2"
    yield ""
    yield "sources:" if tables else "sources: []"
    for schema, found in groupby(tables, key=lambda t: t.schema):
        yield f"  - name: {_text('octo_' + schema)}"
        yield f"    description: {_text(_ABOUT.get(schema, schema))}"
        yield f"    database: {_text(database)}"
        yield f"    schema: {_text(schema)}"
        yield "    tables:"
        for table in found:
            yield from _table(table, keys)


_ABOUT = {
    "marts": "What octo-sync makes for BI: one table or view per subject, named in full.",
    "core": "What the booking service holds, normalised. A row that the service no longer has stays, with is_deleted.",
    "ops": "How fresh and complete the copy is, and what happened.",
}


def _table(table: TableInfo, keys: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    key = keys.get(table.full_name) or _key(table)
    yield f"      - name: {_text(table.name)}"
    yield f"        description: {_text(table.description)}"
    yield "        columns:"
    for column in table.columns:
        yield f"          - name: {_text(column.name)}"
        if column.description:
            yield f"            description: {_text(column.description)}"
        yield f"            data_type: {_text(column.type.lower())}"
        if column.name in key:
            # dbt has no test of its own for keys of several columns.
            yield f"            data_tests: [{'not_null, unique' if len(key) == 1 else 'not_null'}]"


def _key(mart: TableInfo) -> tuple[str, ...]:
    """A mart's key, where it is one column: facts and dimensions begin with it, histories with what they are about."""
    names = [c.name for c in mart.columns]
    is_one = mart.name.startswith(("dim_", "fct_")) and names[0].endswith("_key") and "version_no" not in names
    return (names[0],) if is_one else ()


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
