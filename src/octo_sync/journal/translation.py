"""SQLite's spelling of the journal's statements, said as PostgreSQL says it.

There is one text of each statement (`queries.sql`). What differs is spelling: numbered parameters, lists that travel as JSON,
hints. Whatever is not named here means the same on both engines.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import count
from typing import Any

_RULES = (
    (r"%", "%%"),
    (r" INDEXED BY \w+", ""),
    (r"/\* (FOR SHARE|FOR UPDATE) \*/", r"\1"),  # a file has one writer at a time
    # A list of values, then a list of rows: JSON arrays both.
    (
        r"SELECT (value|CAST\(value AS BIGINT\)) FROM json_each\((\?\d+)\)",
        r"SELECT \1 FROM json_array_elements_text(CAST(\2 AS json)) AS listed (value)",
    ),
    (r"json_each\((\?\d+)\) AS (\w+)", r"json_array_elements(CAST(\1 AS json)) WITH ORDINALITY AS \2 (value, id)"),
    (r"json_each\((\?\d+)\)", r"json_array_elements(CAST(\1 AS json)) WITH ORDINALITY AS json_each (value, id)"),
    (r'wanted\."key"', "(wanted.id - 1)"),  # SQLite calls an element's place its key and begins at 0
    (r"json_extract\(([\w.\"]+), '\$\[(\d+)\]'\)", r"(CAST(\1 AS json) ->> \2)"),
    (r"json_group_array\(json_array\(([^()]*)\)\)", r"CAST(coalesce(json_agg(json_build_array(\1)), '[]') AS text)"),
    (r"instr\((\w+), (\?\d+)\)", r"position(CAST(\2 AS bytea) IN \1)"),
    (r"\bx''", r"CAST('' AS bytea)"),
)


@cache
def statement(text: str) -> str:
    """A statement with parameters called `p1`, `p2` …, for psycopg."""
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    bare = count(1)
    # `?3` is the third parameter; each bare `?` the next one.
    return re.sub(r"\?(\d*)", lambda found: f"%(p{found[1] or next(bare)})s", text)


def named(values: Sequence[Any]) -> dict[str, Any]:
    """The parameters under those names."""
    return {f"p{place}": value for place, value in enumerate(values, start=1)}
