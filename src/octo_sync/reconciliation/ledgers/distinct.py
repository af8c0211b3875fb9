"""Each distinct value is read once; what cannot be read is told with the row it stands in."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

_LONGEST = 30


@dataclass
class Unreadable(Exception):  # noqa: N818 - inside of this package alone, where it becomes a LedgerError with its place
    """A value that is not what its column should hold. `rows` say where, from 0; `sentence` goes on after the place."""

    rows: tuple[int, ...]
    sentence: str


def once(column: pa.ChunkedArray, read: Callable[[list[Any]], list[Any]], kind: pa.DataType) -> pa.ChunkedArray:
    """What `read` makes of `column`, asked for its distinct values alone; null where null.

    Binary numbers come as the shortest text that is the same number. `read` raises `Unreadable` with positions of its argument,
    which are in the order of their first rows; it leaves here with rows of the column.
    """
    encoded = column.combine_chunks().dictionary_encode()
    distinct = encoded.dictionary.cast(pa.string()) if pa.types.is_floating(column.type) else encoded.dictionary
    try:
        made = pa.array(read(distinct.to_pylist())).cast(kind)
    except Unreadable as error:
        rows = tuple(pc.index(encoded.indices, pa.scalar(at, pa.int32())).as_py() for at in error.rows)
        raise Unreadable(rows, error.sentence) from None
    return pa.chunked_array([pc.take(made, encoded.indices)])


def each(values: Iterable[Any], read: Callable[[Any], Any]) -> list[Any]:
    """What `read` makes of each value; where it raises `ValueError`, its sentence shows the value in the place of `{}`."""
    made = []
    for at, value in enumerate(values):
        try:
            made.append(read(value))
        except ValueError as error:
            raise Unreadable((at,), str(error).replace("{}", shown(str(value)), 1)) from None
    return made


def first(mask: pa.Array | pa.ChunkedArray) -> int | None:
    """The position of the first true, or None."""
    at = pc.index(mask, pa.scalar(value=True)).as_py()
    return None if at < 0 else int(at)


def shown(value: str) -> str:
    """A value for a sentence: its shape, with every letter an x, so that no name or address gets into a message or a log."""
    masked = re.sub(r"[^\W\d_]", "x", value[:_LONGEST])
    return f'"{masked}{"…" if len(value) > _LONGEST else ""}"'
