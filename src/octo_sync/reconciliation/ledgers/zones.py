"""Clocks of a place, and instants.

Python's `zoneinfo` says what a zone's clocks show: a clock that comes twice or never, on the day when the clocks change, means
what it means there (`fold=0`). It is asked once for a day, and for each moment alone on those days.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from octo_sync.reconciliation.ledgers.days import DAY, WALL
from octo_sync.reconciliation.ledgers.distinct import refuse

__all__ = ["to_utc", "to_wall"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds since 1970."""


def to_utc(wall: pa.ChunkedArray, zone: ZoneInfo) -> pa.ChunkedArray:
    """Clocks of `zone`, timestamp("us"), as microseconds of UTC."""

    def east(moment: int) -> timedelta | None:
        return (_EPOCH + timedelta(microseconds=moment)).replace(tzinfo=zone).utcoffset()

    moments = pc.cast(wall, pa.int64())
    return _inside(pc.subtract(moments, _east(moments, east)))


def to_wall(moments: pa.ChunkedArray, zone: ZoneInfo) -> pa.ChunkedArray:
    """Microseconds of UTC as clocks of `zone`, timestamp("us")."""

    def east(moment: int) -> timedelta | None:
        return (_EPOCH + timedelta(microseconds=moment)).astimezone(zone).utcoffset()

    return pc.cast(_inside(pc.add(moments, _east(moments, east))), WALL)


def _inside(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    outside = pc.or_(pc.less(moments, _EARLIEST), pc.greater(moments, _LATEST))
    refuse(outside, moments, "the moment is outside of the years 1 to 9999.")
    return moments


def _east(moments: pa.ChunkedArray, east: Callable[[int], timedelta | None]) -> pa.ChunkedArray:
    """How far east of UTC each of them is, in microseconds."""

    def micros(moment: int) -> int:
        try:
            return (east(moment) or timedelta(0)) // timedelta(microseconds=1)
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
