"""Days and clocks as people and programs write them.

`2026-11-05`, `05.11.2026`, `05/11/2026` and `11/05/2026`, alone or with `14:30[:15[.5]]` and an offset. Whether the day or the
month is first is found out over the whole column, by a part above 12; points between the parts mean day first, as everywhere
where dates are written so. What nothing decides is refused.

A column has few days and few clocks, however many moments: both are read once each and added.

Python's `zoneinfo` says what a zone's clocks show: a clock that comes twice or never, on the day when the clocks change, means
what it means there (`fold=0`). It is asked once for a day, and for each moment alone on those days.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.reconciliation.ledgers.distinct import Unreadable, blank, converted, first, once, refuse, shown

WALL = pa.timestamp("us")
DAY = 86_400_000_000
"""Microseconds."""
Order = Literal["", "iso", "dmy", "mdy", "serial"]
_HALVES = r"^(?P<day>[^T ,]+)(?:[T ,]+(?P<clock>.+))?$"
_DAY_FORM = (
    r"^(?:(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})|"
    r"(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})[-/.](?P<z>\d{4}|\d{2}))$"
)
_CLOCK_FORM = (
    r"^(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?)?"
    r"(?: ?(?P<o>Z|z|UTC|[-+](?:0\d|1[0-8])(?::?[0-5]\d)?))?$"
)
_SERIAL = r"^[2-7]\d{4}(?:\.\d+)?$"
_FIRST, _LAST = 20_000, 80_000
"""Serials that are taken for days: 1954 to 2119."""
_SERIALS = '{} looks like a day as spreadsheets count them; set dates = "serial" if it is one.'
_NO_DAY = "{} is no day, such as 2026-11-05, 05.11.2026 or 2026-11-05 14:30."
_NOT_IN_CALENDAR = "{} is no day of the calendar."
_EPOCH = 25_569
"""1970-01-01 as spreadsheets count days."""
_START = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds since 1970."""
_YEAR_ONE = -719_162
"""0001-01-01 in days since 1970."""


@dataclass(frozen=True, slots=True)
class Written:
    """`wall`: timestamp("us"), the clock as written. `offset`: int64 microseconds east of UTC, null where none is written.

    `national` is the first row that is not ISO, or None.
    """

    wall: pa.ChunkedArray
    offset: pa.ChunkedArray
    national: int | None = None


def of_texts(texts: pa.ChunkedArray, order: Order) -> Written:
    """Days and clocks of trimmed texts. `order` is how they are written; "" finds out over all of them.

    Raises:
        Unreadable: One is no day of the calendar, two contradict each other, or nothing says which part is the month.
    """
    if pc.any(pc.match_substring_regex(texts, "[T ,]")).as_py():
        day, clock = pc.extract_regex(texts, _HALVES).flatten()
    else:  # days alone, which is quicker
        day, clock = texts, pa.chunked_array([pa.nulls(len(texts), pa.string())])
    refuse(pc.and_(pc.is_null(day), pc.is_valid(texts)), texts, _NO_DAY)
    if order == "serial" and pc.any(serial := pc.match_substring_regex(day, _SERIAL)).as_py():
        counted = of_serials(pc.cast(pc.if_else(serial, day, None), pa.float64()), order)
        rest = of_texts(pc.if_else(serial, None, texts), order)
        return Written(pc.coalesce(counted.wall, rest.wall), rest.offset)
    days = pc.multiply(pc.cast(once(day, partial(_days, order=order)), pa.int64()), DAY)
    timed = pc.if_else(blank(clock), None, clock)
    since, offset = once(timed, _clocks).flatten()
    national = first(pc.match_substring_regex(day, r"^\d{1,2}[-/.]"))
    return Written(pc.cast(pc.add(days, pc.fill_null(since, 0)), WALL), offset, national)


def of_serials(numbers: pa.ChunkedArray, order: Order) -> Written:
    """Days as spreadsheets count them (1 is 1900-01-01, 0.5 is noon), to the millisecond, when `order` says so.

    Raises:
        Unreadable: `order` says nothing of serials, or a number is too small or too large for one.
    """
    plausible = pc.and_(pc.greater_equal(numbers, _FIRST), pc.less(numbers, _LAST))
    bad = first(pc.invert(plausible))
    if bad is not None:
        raise Unreadable((bad,), f'the number "{numbers[bad].as_py():.12g}" is no day.')
    bad = first(plausible)
    if bad is not None and order != "serial":
        raise Unreadable((bad,), _SERIALS.format(f'"{numbers[bad].as_py():.12g}"'))
    days = pc.floor(numbers)
    thousandths = pc.round(pc.multiply(pc.subtract(numbers, days), DAY / 1000))
    clock = pc.multiply(pc.cast(thousandths, pa.int64()), 1000)
    moments = pc.add(pc.multiply(pc.subtract(pc.cast(days, pa.int64()), _EPOCH), DAY), clock)
    return Written(pc.cast(moments, WALL), pa.chunked_array([pa.nulls(len(numbers), pa.int64())]))


# ── distinct days ─────────────────────────────────────────────────────────────────────────────────────────────────


def _days(texts: pa.Array, order: Order) -> pa.Array:
    """Days without a clock, as days since 1970 (int32)."""
    refuse(pc.match_substring_regex(texts, _SERIAL), texts, _SERIALS)
    parts = pc.extract_regex(texts, _DAY_FORM)
    refuse(pc.is_null(parts), texts, _NO_DAY)
    group = {name: pc.struct_field(parts, name) for name in "ymdasbz"}
    refuse(pc.equal(pc.binary_length(group["z"]), 2), texts, "{} has a year of two digits; export all four.")
    national = pc.not_equal(group["z"], "")
    month, day = group["b"], group["a"]
    if order in {"iso", "serial"}:
        refuse(national, texts, f'{{}} is not written as dates = "{order}" says.')
    elif pc.any(national).as_py() and (order or _find_out(texts, group, national)) == "mdy":
        month, day = day, month
    year = pc.if_else(national, group["z"], group["y"])
    month, day = (
        pc.utf8_lpad(pc.if_else(national, ours, iso), 2, "0") for ours, iso in ((month, group["m"]), (day, group["d"]))
    )
    written = pc.binary_join_element_wise(year, month, day, "-")
    days = pc.cast(converted(written, pa.date32(), _NOT_IN_CALENDAR, written=texts), pa.int32())
    refuse(pc.less(days, _YEAR_ONE), texts, _NOT_IN_CALENDAR)
    return days


def _find_out(texts: pa.Array, group: dict[str, pa.Array], national: pa.Array) -> Order:
    """Whether the day or the month comes first in those that are not ISO."""
    iso, foreign = first(pc.invert(national)), first(national)
    if iso is not None and foreign is not None:
        raise Unreadable(
            (iso, foreign),
            f"{shown(texts[iso].as_py())} and {shown(texts[foreign].as_py())} are written in two ways, as when a program has "
            'turned some into dates and left others. Correct it where it comes from, or set dates = "dmy" or dates = "mdy".',
        )
    one, two = (pc.cast(group[name], pa.int32()) for name in "ab")
    day_first, month_first = first(pc.greater(one, 12)), first(pc.greater(two, 12))
    if day_first is not None and month_first is not None and day_first != month_first:
        raise Unreadable(
            (day_first, month_first),
            f"{shown(texts[day_first].as_py())} has the day first and {shown(texts[month_first].as_py())} the month; one "
            "column is written one way. Correct it where it comes from.",
        )
    if day_first is None and month_first is None:
        refuse(
            pc.not_equal(group["s"], "."),
            texts,
            'nothing in the column says whether {} has the day or the month first; set dates = "dmy" or dates = "mdy".',
        )
    return "dmy" if month_first is None else "mdy"


# ── distinct clocks ───────────────────────────────────────────────────────────────────────────────────────────────


def _clocks(texts: pa.Array) -> pa.StructArray:
    """Microseconds since midnight; and the offset (`Z`, `UTC`, `+01`, `+0130` or `+01:30`) in microseconds, null for none."""
    parts = pc.extract_regex(texts, _CLOCK_FORM)
    refuse(pc.is_null(parts), texts, "{} is no time of the day, such as 14:30, 14:30:15 or 14:30+02:00.")
    hours, minutes, seconds, fraction, offset = parts.flatten()
    micros = pc.cast(pc.utf8_rpad(pc.utf8_slice_codeunits(fraction, 0, 6), 6, "0"), pa.int64())
    since = pc.add(pc.add(_span(hours, minutes), pc.multiply(_number(seconds), 1_000_000)), micros)
    digits = pc.utf8_rpad(pc.replace_substring_regex(offset, "[^0-9]", ""), 4, "0")
    size = _span(pc.utf8_slice_codeunits(digits, 0, 2), pc.utf8_slice_codeunits(digits, 2, 4))
    east = pc.if_else(pc.starts_with(offset, "-"), pc.negate(size), size)
    return pa.StructArray.from_arrays([since, pc.if_else(pc.equal(offset, ""), None, east)], ["since", "offset"])


def _span(hours: pa.Array, minutes: pa.Array) -> pa.Array:
    return pc.multiply(pc.add(pc.multiply(_number(hours), 60), _number(minutes)), 60_000_000)


def _number(digits: pa.Array) -> pa.Array:
    """Two digits, one, or none."""
    return pc.cast(pc.utf8_lpad(digits, 2, "0"), pa.int64())


# ── clocks of a place, and instants ───────────────────────────────────────────────────────────────────────────────


def to_utc(wall: pa.ChunkedArray, zone: ZoneInfo) -> pa.ChunkedArray:
    """Clocks of `zone`, timestamp("us"), as microseconds of UTC."""
    moments = pc.cast(wall, pa.int64())
    return _inside(pc.subtract(moments, _east(moments, lambda moment: moment.replace(tzinfo=zone))))


def to_wall(moments: pa.ChunkedArray, zone: ZoneInfo) -> pa.ChunkedArray:
    """Microseconds of UTC as clocks of `zone`, timestamp("us")."""
    return pc.cast(_inside(pc.add(moments, _east(moments, lambda moment: moment.astimezone(zone)))), WALL)


def _inside(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    outside = pc.or_(pc.less(moments, _EARLIEST), pc.greater(moments, _LATEST))
    refuse(outside, moments, "the moment is outside of the years 1 to 9999.")
    return moments


def _east(moments: pa.ChunkedArray, at_place: Callable[[datetime], datetime]) -> pa.ChunkedArray:
    """How far east of UTC each of them is where `at_place` says, in microseconds."""

    def micros(moment: int) -> int:
        try:
            there = at_place(_START + timedelta(microseconds=moment))
            return (there.utcoffset() or timedelta(0)) // timedelta(microseconds=1)
        except OverflowError:  # on the first and the last day of the calendar
            return 0

    days = pc.cast(pc.floor_temporal(pc.cast(moments, WALL), unit="day"), pa.int64())
    known = pc.unique(pc.drop_null(days))
    bounds = [(micros(day), micros(day + DAY - 1)) for day in known.to_pylist()]
    steady = pa.array([start if start == end else None for start, end in bounds], pa.int64())
    found = pc.take(steady, pc.index_in(days, known))
    odd = pc.unique(pc.drop_null(pc.if_else(pc.is_null(found), moments, None)))
    each = pa.array([micros(moment) for moment in odd.to_pylist()], pa.int64())
    return pc.coalesce(found, pc.take(each, pc.index_in(moments, odd)))
