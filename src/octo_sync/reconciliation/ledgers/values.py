"""Columns as they were found, to columns of one kind.

A column arrives as **parts**: arrays as long as the table, each of one Arrow type, that have a value where the cell is of that
type and null elsewhere. A column of a CSV is one part of texts; a column of a sheet may have numbers, days and texts.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.model import ValueKind
from octo_sync.reconciliation.ledgers import amounts, days
from octo_sync.reconciliation.ledgers.base import Format
from octo_sync.reconciliation.ledgers.distinct import Unreadable, blank, converted, first, once, refuse, shown

INSTANT = pa.timestamp("us", "UTC")
TYPES: dict[ValueKind, pa.DataType] = {
    "text": pa.string(),
    "amount": amounts.AMOUNT,
    "whole": pa.int64(),
    "instant": INSTANT,
    "date": pa.date32(),
    "flag": pa.bool_(),
}
_FLAGS = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}
_NUMBERS = ("integer", "floating", "decimal")
_FOUND = ("string", *_NUMBERS, "boolean", "date", "timestamp")
"""What is read of Arrow's types, as `pyarrow.types` calls it."""
_NOT_WHOLE = "{} is no whole number."
_UUID_BYTES = 16


def read(parts: Sequence[pa.ChunkedArray], kind: ValueKind, form: Format) -> list[pa.ChunkedArray]:
    """The column as one of `kind`; for instants a second one, the clocks as written.

    Raises:
        Unreadable: A value is not of that kind; its rows are rows of the column.
    """
    parts = [plain(part) for part in parts]
    if kind in {"instant", "date"}:
        return _moments(parts, kind, form)
    readers, columns = _readers(form)[kind], []
    for part in parts:
        if part.null_count == len(part):
            continue
        found = _found_as(part)
        if found not in readers:
            raise _refused(part, {"whole": "whole number", "flag": "yes or no"}.get(kind, kind))
        reader = readers[found]
        columns.append(once(part, reader) if reader else part.cast(TYPES[kind]))
    return [_together(columns, TYPES[kind], parts)]


def _together(
    columns: Sequence[pa.ChunkedArray], kind: pa.DataType, parts: Sequence[pa.ChunkedArray]
) -> pa.ChunkedArray:
    if not columns:
        return pa.chunked_array([pa.nulls(len(parts[0]) if parts else 0, kind)])
    return columns[0] if len(columns) == 1 else pc.coalesce(*columns)


def plain(part: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without encodings; texts are trimmed and null where blank."""
    kind = part.type
    if isinstance(kind, pa.BaseExtensionType):
        part = pa.chunked_array([chunk.storage for chunk in part.chunks], kind.storage_type)
    elif pa.types.is_dictionary(kind):
        part = part.cast(kind.value_type)
    kind = part.type
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == _UUID_BYTES:  # how Parquet keeps UUIDs
        texts = [value and str(uuid.UUID(bytes=value)) for value in part.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        part = part.cast(pa.string())
    if pa.types.is_string(part.type):
        trimmed = pc.utf8_trim_whitespace(part)
        return pc.if_else(blank(trimmed), None, trimmed)
    return part


def _refused(part: pa.ChunkedArray, what: str) -> Unreadable:
    row = first(pc.is_valid(part)) or 0
    return Unreadable((row,), f"the value is of type {part.type}, which is no {what}.")


def _float_texts(floats: pa.Array) -> pa.Array:
    """Ids that a sheet keeps as numbers: all digits, nothing behind the point of a whole one."""
    texts = pc.cast(floats, pa.string())
    long = pc.match_substring(texts, "e")
    written = [f"{number:.0f}" for number in floats.filter(long).to_pylist()]
    return pc.replace_with_mask(texts, long, pa.array(written, pa.string()))


def _whole_texts(texts: pa.Array) -> pa.Array:
    refuse(pc.invert(pc.match_substring_regex(texts, r"^[-+]?\d{1,18}(?:[.,]00?)?$")), texts, _NOT_WHOLE)
    return pc.cast(pc.replace_substring_regex(texts, r"^\+|[.,]00?$", ""), pa.int64())


def _whole_numbers(numbers: pa.Array) -> pa.Array:
    return converted(numbers, pa.int64(), _NOT_WHOLE)


def _flag_words(texts: pa.Array) -> pa.Array:
    at = pc.index_in(pc.utf8_lower(texts), pa.array(list(_FLAGS)))
    refuse(pc.is_null(at), texts, f"{{}} is none of {', '.join(_FLAGS)}.")
    return pc.take(pa.array(list(_FLAGS.values())), at)


def _flag_numbers(numbers: pa.Array) -> pa.Array:
    return _flag_words(pc.cast(_whole_numbers(numbers), pa.string()))


def _readers(form: Format) -> Mapping[ValueKind, Mapping[str, Callable[[pa.Array], pa.Array] | None]]:
    """What reads distinct values, by what they are to be and what they are found as; None: a cast is enough."""
    return {
        "text": dict.fromkeys(_FOUND) | {"floating": _float_texts},
        "amount": {
            "string": partial(amounts.of_texts, decimal=form.decimal),
            "floating": amounts.of_floats,
            "integer": amounts.of_decimals,
            "decimal": amounts.of_decimals,
        },
        "whole": {"string": _whole_texts, **dict.fromkeys(_NUMBERS, _whole_numbers)},
        "flag": {"boolean": None, "string": _flag_words, **dict.fromkeys(_NUMBERS, _flag_numbers)},
    }


def _found_as(part: pa.ChunkedArray) -> str:
    return next((name for name in _FOUND if getattr(pa.types, f"is_{name}")(part.type)), "")


# ── days and clocks ───────────────────────────────────────────────────────────────────────────────────────────────


def _moments(parts: Sequence[pa.ChunkedArray], kind: ValueKind, form: Format) -> list[pa.ChunkedArray]:
    zone = form.zone()
    there = [part for part in parts if part.null_count < len(part)]
    walls, moments = [], []
    for part in there:
        written = _written(part, form)
        if written.national is not None and len(there) > 1 and not form.dates:
            raise _mixture(part, written.national, there)
        exact = pc.subtract(pc.cast(written.wall, pa.int64()), written.offset)
        offset_free = pc.if_else(pc.is_valid(exact), None, written.wall)
        if kind == "date":  # with an offset it is an instant, and the day is the one at the place
            walls.append(pc.coalesce(days.to_wall(exact, zone), written.wall))
        else:
            walls.append(written.wall)
            moments.append(pc.cast(pc.coalesce(exact, days.to_utc(offset_free, zone)), INSTANT))
    wall = _together(walls, days.WALL, parts)
    return [wall.cast(pa.date32(), safe=False)] if kind == "date" else [_together(moments, INSTANT, parts), wall]


def _mixture(part: pa.ChunkedArray, national: int, parts: Sequence[pa.ChunkedArray]) -> Unreadable:
    other = next(each for each in parts if each is not part)
    return Unreadable(
        (first(pc.is_valid(other)) or 0, national),
        f"the first is a date of the spreadsheet and {shown(part[national].as_py())} a text, as when a program has turned some "
        'into dates, perhaps into wrong ones, and left others. Correct it where it comes from, or set dates = "dmy" or "mdy".',
    )


def _written(part: pa.ChunkedArray, form: Format) -> days.Written:
    """Clocks of a part of any type."""
    kind, found = part.type, _found_as(part)
    if found == "string":
        return days.of_texts(part, form.dates)
    if found in _NUMBERS:
        return days.of_serials(part.cast(pa.float64(), safe=False), form.dates)
    nothing = pa.chunked_array([pa.nulls(len(part), pa.int64())])
    if found == "date":
        return days.Written(part.cast(pa.date32()).cast(days.WALL), nothing)
    if found == "timestamp":
        micros = part.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        if kind.tz is None:
            return days.Written(micros.cast(days.WALL), nothing)
        wall = days.to_wall(micros, Format(time_zone=kind.tz).zone())
        return days.Written(wall, pc.subtract(wall.cast(pa.int64()), micros))
    raise _refused(part, "day")
