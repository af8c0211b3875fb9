"""Cells as drivers, sheets and Arrow hand them out, to an Arrow column of one kind."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from types import NoneType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.model import ValueKind
from octo_sync.reconciliation.ledgers import amounts, days
from octo_sync.reconciliation.ledgers.base import Format
from octo_sync.reconciliation.ledgers.unreadable import Unreadable, shown

TYPES: Mapping[ValueKind, pa.DataType] = {
    "text": pa.string(),
    "amount": amounts.AMOUNT,
    "whole": pa.int64(),
    "instant": pa.timestamp("us", "UTC"),
    "date": pa.date32(),
    "flag": pa.bool_(),
}
_NAMES: Mapping[ValueKind, str] = {"whole": "whole number", "flag": "yes or no", "instant": "day", "date": "day"}
_FLAGS = {"true": True, "yes": True, "y": True, "1": True, "false": False, "no": False, "n": False, "0": False}
_NUMBERS = (int, float, Decimal)
_NOT_WHOLE = "{} is no whole number."
_WHOLE = re.compile(r"([-+]?\d{1,18})(?:[.,]00?)?", re.ASCII)

Readers = Mapping[type, Callable[[Any], Any]]


def trimmed(cells: Iterable[Any]) -> list[Any]:
    """With None for what is blank."""
    return [cell.strip() or None if isinstance(cell, str) else cell for cell in cells]


def read(cells: Sequence[Any], kind: ValueKind, form: Format) -> list[pa.Array]:
    """Cells as a column of `kind`; for instants a second one, the clocks as written. Each distinct value is read once.

    Raises:
        Unreadable: A value is not of that kind.
    """
    texts = [] if kind == "text" else list(dict.fromkeys(cell for cell in cells if isinstance(cell, str)))
    readers: Readers = {**_readers(kind, cells, texts, form), NoneType: lambda _: None}
    if strange := set(map(type, cells)) - readers.keys():
        value = next(cell for cell in cells if type(cell) in strange)
        raise Unreadable(
            (value,), f"the value is of type {type(value).__name__}, which is no {_NAMES.get(kind, kind)}."
        )
    if kind == "text":
        return [pa.array([cell if isinstance(cell, str) else readers[type(cell)](cell) for cell in cells], TYPES[kind])]
    known = {text: _made(readers[str], text) for text in texts}
    made = [known[cell] if isinstance(cell, str) else _made(readers[type(cell)], cell) for cell in cells]
    if kind == "instant":
        utc, walls = [both and both[0] for both in made], [both and both[1] for both in made]
        return [pa.array(utc, TYPES[kind]), pa.array(walls, pa.timestamp("us"))]
    return [pa.array(made, pa.string() if kind == "amount" else TYPES[kind]).cast(TYPES[kind])]


def _made(reader: Callable[[Any], Any], value: object) -> Any:  # noqa: ANN401 - of the kind
    try:
        return reader(value)
    except ValueError as error:
        raise Unreadable((value,), str(error).replace("{}", shown(str(value)))) from None


def _readers(kind: ValueKind, cells: Sequence[Any], texts: Sequence[str], form: Format) -> Readers:
    """What reads values, by their type; how texts are written is found out over all of them."""
    if kind == "text":
        as_they_are = dict.fromkeys((str, int, Decimal, date, datetime, time, timedelta, UUID), str)
        return as_they_are | {bool: lambda value: str(value).lower(), float: _id}
    match kind:
        case "amount":
            of_text = partial(amounts.of_text, mark=amounts.mark(texts, form.decimal))
            return {str: of_text, **dict.fromkeys(_NUMBERS, amounts.of_number)}
        case "whole":
            return {str: _whole_text, **dict.fromkeys(_NUMBERS, _whole)}
        case "flag":
            return {bool: bool, str: _flag, **dict.fromkeys(_NUMBERS, lambda value: _flag(str(_whole(value))))}
    if not form.dates:
        _refuse_mixture(cells, texts)
    order = days.order(texts, form.dates)
    of_serial = partial(days.of_serial, order=order)
    readers: Readers = {
        str: partial(days.of_text, order=order),
        **dict.fromkeys(_NUMBERS, of_serial),
        date: lambda day: datetime.combine(day, time()),
        datetime: lambda moment: moment,
    }
    return {of_type: partial(_placed, reader, kind=kind, zone=form.zone()) for of_type, reader in readers.items()}


def _id(number: float) -> str:
    """An id that a sheet keeps as a number: all digits, nothing behind the point of a whole one."""
    return f"{number:.0f}" if number.is_integer() else repr(number)


def _whole_text(text: str) -> int:
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise ValueError(_NOT_WHOLE)
    return int(found[1])


def _whole(number: Any) -> int:  # noqa: ANN401 - of any of `_NUMBERS`
    if not abs(number) < 2**63 or number % 1:
        raise ValueError(_NOT_WHOLE)
    return int(number)


def _flag(word: str) -> bool:
    if word.lower() not in _FLAGS:
        raise ValueError(f"{{}} is none of {', '.join(_FLAGS)}.")
    return _FLAGS[word.lower()]


def _placed(reader: Callable[[Any], datetime], value: object, *, kind: ValueKind, zone: ZoneInfo) -> object:
    """The moment of a value in UTC and as it is written; or its day, which with an offset is the one at the place."""
    moment = reader(value)
    try:
        there = moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)
        return there.date() if kind == "date" else (there.astimezone(UTC), moment.replace(tzinfo=None))
    except OverflowError:
        raise ValueError("the moment is outside of the years 1 to 9999.") from None


def _refuse_mixture(cells: Sequence[Any], texts: Sequence[str]) -> None:
    """Dates of a spreadsheet beside texts that another order may have kept from becoming some."""
    dated = next((cell for cell in cells if isinstance(cell, date)), None)
    national = next((text for text in texts if re.match(r"\d{1,2}[-/.]", text, re.ASCII)), None)
    if dated is not None and national is not None:
        raise Unreadable(
            (dated, national),
            f"the first is a date of the spreadsheet and {shown(national)} a text, as when a program has turned some into "
            "dates, perhaps into wrong ones, and left others. Correct it where it comes from, or set "
            'dates = "dmy" or "mdy".',
        )
