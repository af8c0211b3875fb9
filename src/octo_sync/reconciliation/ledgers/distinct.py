"""Each distinct value is read once; what cannot be read is told with the row it stands in."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

_LONGEST = 30


@dataclass
class Unreadable(Exception):  # noqa: N818 - inside of this package alone, where it becomes a LedgerError with its place
    """A value that is not what its column should hold. `rows` say where, from 0; `sentence` goes on after the place."""

    rows: tuple[int, ...]
    sentence: str


def once(column: pa.ChunkedArray, read: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """What `read` makes of `column`, asked for its distinct values alone; null where null.

    `read` raises `Unreadable` with positions of its argument, which are in the order of their first rows; it leaves here with
    rows of the column.
    """
    encoded = column.combine_chunks().dictionary_encode()
    try:
        return pa.chunked_array([pc.take(read(encoded.dictionary), encoded.indices)])
    except Unreadable as error:
        rows = tuple(pc.index(encoded.indices, pa.scalar(at, pa.int32())).as_py() for at in error.rows)
        raise Unreadable(rows, error.sentence) from None


def blank(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether there is nothing in a text; a comparison with "" costs ten times as much."""
    return pc.equal(pc.binary_length(texts), 0)


def first(mask: pa.Array | pa.ChunkedArray) -> int | None:
    """The position of the first true, or None."""
    at = pc.index(mask, pa.scalar(value=True)).as_py()
    return None if at < 0 else int(at)


def refuse(bad: pa.Array | pa.ChunkedArray, values: pa.Array, sentence: str) -> None:
    """Raise `Unreadable` for the first of `values` that is `bad`, if any is; it stands in the sentence where `{}` is."""
    at = first(bad)
    if at is not None:
        raise Unreadable((at,), sentence.format(shown(str(values[at].as_py()))))


def converted(values: pa.Array, kind: pa.DataType, sentence: str, *, written: pa.Array | None = None) -> pa.Array:
    """`values` cast to a type; `Unreadable` for the first that it cannot hold, shown as it was `written`."""
    try:
        return pc.cast(values, kind)
    except pa.ArrowInvalid:
        low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            pc.cast(values.slice(low, middle - low), kind)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    said = (values if written is None else written)[low].as_py()
    raise Unreadable((low,), sentence.format(shown(str(said))))


def shown(value: str) -> str:
    """A value for a sentence: its shape, with every letter an x, so that no name or address gets into a message or a log."""
    masked = re.sub(r"[^\W\d_]", "x", value[:_LONGEST])
    return f'"{masked}{"…" if len(value) > _LONGEST else ""}"'
