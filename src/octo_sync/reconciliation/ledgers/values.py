"""Columns as they were found, to columns of one kind.

A column arrives as **parts**: arrays as long as the table, each of one Arrow type, that have a value where the cell is of that
type and null elsewhere. A column of a CSV is one part of texts; a column of a sheet may have numbers, days and texts.
"""

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.model import ValueKind
from octo_sync.reconciliation.ledgers import amounts, days
from octo_sync.reconciliation.ledgers.base import Format
from octo_sync.reconciliation.ledgers.distinct import Unreadable, each, first, once, shown

INSTANT, WALL = pa.timestamp("us", "UTC"), pa.timestamp("us")
TYPES: dict[ValueKind, pa.DataType] = {
    "text": pa.string(),
    "amount": amounts.AMOUNT,
    "whole": pa.int64(),
    "date": pa.date32(),
    "flag": pa.bool_(),
}
_FLAGS = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}
_NUMBERS = ("integer", "floating", "decimal")
_FOUND = ("string", *_NUMBERS, "boolean", "date", "timestamp")
"""What is read of Arrow's types, as `pyarrow.types` calls it."""
_OUTSIDE = "the moment is outside of the years 1 to 9999."
_NOT_WHOLE = "{} is no whole number."
_WHOLE = re.compile(r"([-+]?\d{1,18})(?:[.,]00?)?", re.ASCII)
_LARGEST = 2**63
_UUID_BYTES = 16


def read(parts: Sequence[pa.ChunkedArray], kind: ValueKind, form: Format) -> list[pa.ChunkedArray]:
    """The column as one of `kind`; for instants a second one, the clocks as written.

    Raises:
        Unreadable: A value is not of that kind; its rows are rows of the column.
    """
    parts = [plain(part) for part in parts]
    there = [part for part in parts if part.null_count < len(part)]
    if kind in {"instant", "date"}:
        return _moments(there, len(parts[0]), kind, form)
    readers, columns = _readers(form)[kind], []
    for part in there:
        found = _found_as(part)
        if found not in readers:
            raise _refused(part, {"whole": "whole number", "flag": "yes or no"}.get(kind, kind))
        reader = readers[found]
        columns.append(once(part, reader, TYPES[kind]) if reader else part.cast(TYPES[kind]))
    return [_together(columns, TYPES[kind], len(parts[0]))]


def _together(columns: Sequence[pa.ChunkedArray], kind: pa.DataType, rows: int) -> pa.ChunkedArray:
    return pc.coalesce(*columns, pa.chunked_array([pa.nulls(rows, kind)])) if len(columns) != 1 else columns[0]


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
        # A comparison with "" costs ten times as much.
        return pc.if_else(pc.equal(pc.binary_length(trimmed), 0), None, trimmed)
    return part


def _refused(part: pa.ChunkedArray, what: str) -> Unreadable:
    row = first(pc.is_valid(part)) or 0
    return Unreadable((row,), f"the value is of type {part.type}, which is no {what}.")


def _text_of_float(text: str) -> str:
    """An id that a sheet keeps as a number: all digits, nothing behind the point of a whole one."""
    return f"{float(text):.0f}" if "e" in text else text


def _whole_text(text: str) -> int:
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise ValueError(_NOT_WHOLE)
    return int(found[1])


def _whole_number(value: int | Decimal | str) -> int:
    number = Decimal(value)
    if not number.is_finite() or abs(number) >= _LARGEST or number % 1:
        raise ValueError(_NOT_WHOLE)
    return int(number)


def _flag(word: str) -> bool:
    if word.lower() not in _FLAGS:
        raise ValueError(f"{{}} is none of {', '.join(_FLAGS)}.")
    return _FLAGS[word.lower()]


Reader = Callable[[list[Any]], list[Any]]


def _each(reader: Callable[[Any], Any]) -> Reader:
    return partial(each, read=reader)


def _readers(form: Format) -> Mapping[ValueKind, Mapping[str, Reader | None]]:
    """What reads distinct values, by what they are to be and what they are found as; None: a cast is enough."""
    number = _each(lambda value: amounts.exact(f"{Decimal(value):f}"))
    return {
        "text": dict.fromkeys(_FOUND) | {"floating": _each(_text_of_float)},
        "amount": {
            "string": partial(amounts.of_texts, decimal=form.decimal),
            "floating": _each(amounts.of_float),
            "integer": number,
            "decimal": number,
        },
        "whole": {"string": _each(_whole_text), **dict.fromkeys(_NUMBERS, _each(_whole_number))},
        "flag": {
            "boolean": None,
            "string": _each(_flag),
            **dict.fromkeys(_NUMBERS, _each(lambda value: _flag(str(_whole_number(value))))),
        },
    }


def _found_as(part: pa.ChunkedArray) -> str:
    return next((name for name in _FOUND if getattr(pa.types, f"is_{name}")(part.type)), "")


# ── days and clocks ───────────────────────────────────────────────────────────────────────────────────────────────


def _moments(parts: Sequence[pa.ChunkedArray], rows: int, kind: ValueKind, form: Format) -> list[pa.ChunkedArray]:
    zone = form.zone()
    types = {"day": pa.date32()} if kind == "date" else {"at": INSTANT, "wall": WALL}

    def placed(moment: datetime) -> Mapping[str, date]:
        try:
            if kind == "date":  # with an offset it is an instant, and the day is the one at the place
                return {"day": (moment.astimezone(zone) if moment.tzinfo else moment).date()}
            known = moment if moment.tzinfo else moment.replace(tzinfo=zone)
            return {"at": known.astimezone(UTC), "wall": moment.replace(tzinfo=None)}
        except OverflowError:
            raise ValueError(_OUTSIDE) from None

    def column(known: pa.ChunkedArray, read: Reader) -> pa.ChunkedArray:
        return once(known, lambda values: each(read(values), placed), pa.struct(list(types.items())))

    columns = [column(*_clocks(part, parts, form)).flatten() for part in parts]
    return [_together([each[at] for each in columns], of_kind, rows) for at, of_kind in enumerate(types.values())]


def _clocks(part: pa.ChunkedArray, parts: Sequence[pa.ChunkedArray], form: Format) -> tuple[pa.ChunkedArray, Reader]:
    """A part of any type, and what makes moments of its values."""
    found, tz = _found_as(part), getattr(part.type, "tz", None)
    if found == "string":
        national = first(pc.match_substring_regex(part, r"^\d{1,2}[-/.]"))
        if national is not None and len(parts) > 1 and not form.dates:
            raise _mixture(part, national, parts)
        return part, partial(days.of_texts, order=form.dates)
    if found in _NUMBERS:
        return part, _each(partial(days.of_serial, order=form.dates))
    if found not in {"date", "timestamp"}:
        raise _refused(part, "day")
    outside = first(pc.not_equal(pc.year(part), pc.min_element_wise(pc.max_element_wise(pc.year(part), 1), 9999)))
    if outside is not None:
        raise Unreadable((outside,), _OUTSIDE)
    there = Format(time_zone=tz).zone() if tz else None
    moments = part.cast(pa.timestamp("us", tz and "UTC"), safe=False)
    return moments, _each(lambda moment: moment.astimezone(there) if there else moment)


def _mixture(part: pa.ChunkedArray, national: int, parts: Sequence[pa.ChunkedArray]) -> Unreadable:
    other = next(each for each in parts if each is not part)
    return Unreadable(
        (first(pc.is_valid(other)) or 0, national),
        f"the first is a date of the spreadsheet and {shown(part[national].as_py())} a text, as when a program has turned some "
        'into dates, perhaps into wrong ones, and left others. Correct it where it comes from, or set dates = "dmy" or "mdy".',
    )
