"""Columns as they were found, to columns of one kind.

A column arrives as **parts**: arrays as long as the table, each of one Arrow type, that have a value where the cell is of that
type and null elsewhere. A column of a CSV is one part of texts; a column of a sheet may have numbers, days and texts.
"""

import uuid
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.model import ValueKind
from octo_sync.reconciliation.ledgers import amounts, days, zones
from octo_sync.reconciliation.ledgers.base import Format
from octo_sync.reconciliation.ledgers.distinct import Unreadable, blank, first, first_bad, once, shown

__all__ = ["read"]

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
_UUID_BYTES = 16


def read(parts: Sequence[pa.ChunkedArray], kind: ValueKind, form: Format) -> list[pa.ChunkedArray]:
    """The column as one of `kind`; for instants a second one, the clocks as written.

    Raises:
        Unreadable: A value is not of that kind; its rows are rows of the column.
    """
    parts = [_plain(part) for part in parts]
    if kind in {"instant", "date"}:
        return _moments(parts, kind, form)
    readers: dict[ValueKind, Callable[[pa.ChunkedArray], pa.ChunkedArray]] = {
        "text": _text,
        "amount": partial(_amount, form=form),
        "whole": _whole,
        "flag": _flag,
    }
    return [_together([readers[kind](part) for part in parts if part.null_count < len(part)], TYPES[kind], parts)]


def _together(
    columns: Sequence[pa.ChunkedArray], kind: pa.DataType, parts: Sequence[pa.ChunkedArray]
) -> pa.ChunkedArray:
    if not columns:
        return pa.chunked_array([pa.nulls(len(parts[0]) if parts else 0, kind)])
    return columns[0] if len(columns) == 1 else pc.coalesce(*columns)


def _plain(part: pa.ChunkedArray) -> pa.ChunkedArray:
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


def _text(part: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = part.type
    if pa.types.is_string(kind):
        return part
    if pa.types.is_floating(kind):
        return once(part, _float_texts)
    if (
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
    ):
        return part.cast(pa.string())
    raise _refused(part, "text")


def _float_texts(floats: pa.Array) -> pa.Array:
    """Ids that a sheet keeps as numbers: all digits, nothing behind the point of a whole one."""
    texts = pc.cast(floats, pa.string())
    long = pc.match_substring(texts, "e")
    written = [f"{number:.0f}" for number in floats.filter(long).to_pylist()]
    return pc.replace_with_mask(texts, long, pa.array(written, pa.string()))


def _amount(part: pa.ChunkedArray, form: Format) -> pa.ChunkedArray:
    kind = part.type
    if pa.types.is_string(kind):
        return once(part, partial(amounts.of_texts, decimal=form.decimal))
    if pa.types.is_floating(kind):
        return once(part, amounts.of_floats)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return once(part, amounts.of_decimals)
    raise _refused(part, "amount")


def _whole(part: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = part.type
    if pa.types.is_string(kind):
        return once(part, _whole_texts)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return once(part, _whole_numbers)
    raise _refused(part, "whole number")


def _whole_texts(texts: pa.Array) -> pa.Array:
    bad = first(pc.invert(pc.match_substring_regex(texts, r"^[-+]?\d{1,18}(?:[.,]00?)?$")))
    if bad is not None:
        raise Unreadable((bad,), f"{shown(texts[bad].as_py())} is no whole number.")
    return pc.cast(pc.replace_substring_regex(texts, r"^\+|[.,]00?$", ""), pa.int64())


def _whole_numbers(numbers: pa.Array) -> pa.Array:
    try:
        return pc.cast(numbers, pa.int64())
    except pa.ArrowInvalid:
        bad = first_bad(numbers, lambda some: pc.cast(some, pa.int64()))
        raise Unreadable((bad,), f"{shown(str(numbers[bad].as_py()))} is no whole number.") from None


def _flag(part: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = part.type
    if pa.types.is_boolean(kind):
        return part
    if pa.types.is_string(kind):
        return once(part, _flag_words)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return once(part, lambda numbers: _flag_words(pc.cast(_whole_numbers(numbers), pa.string())))
    raise _refused(part, "yes or no")


def _flag_words(texts: pa.Array) -> pa.Array:
    words = pc.utf8_lower(texts)
    at = pc.index_in(words, pa.array(list(_FLAGS)))
    bad = first(pc.is_null(at))
    if bad is not None:
        raise Unreadable((bad,), f"{shown(texts[bad].as_py())} is none of {', '.join(_FLAGS)}.")
    return pc.take(pa.array(list(_FLAGS.values())), at)


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
            walls.append(pc.coalesce(zones.to_wall(exact, zone), written.wall))
        else:
            walls.append(written.wall)
            moments.append(pc.cast(pc.coalesce(exact, zones.to_utc(offset_free, zone)), INSTANT))
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
    kind = part.type
    if pa.types.is_string(kind):
        return days.of_texts(part, form.dates)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return days.of_serials(part.cast(pa.float64(), safe=False), form.dates)
    nothing = pa.chunked_array([pa.nulls(len(part), pa.int64())])
    if pa.types.is_date(kind):
        return days.Written(part.cast(pa.date32()).cast(days.WALL), nothing)
    if pa.types.is_timestamp(kind):
        micros = part.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        if kind.tz is None:
            return days.Written(micros.cast(days.WALL), nothing)
        wall = zones.to_wall(micros, Format(time_zone=kind.tz).zone())
        return days.Written(wall, pc.subtract(wall.cast(pa.int64()), micros))
    raise _refused(part, "day")
