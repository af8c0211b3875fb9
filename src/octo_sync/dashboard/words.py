"""How values are written on the pages, once for all of them; unknown is never 0."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from octo_sync.dashboard.view import Column, Money
from octo_sync.flows.export.html import plain
from octo_sync.flows.reconcile.words import money

__all__ = ["age", "cell", "count", "day", "instant", "month", "of", "plain", "share", "short_day", "sortable"]

UNKNOWN = "unknown"
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_AGES = (("days", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1)))


def count(number: int | None) -> str:
    """`1,234`, or `unknown`."""
    return UNKNOWN if number is None else f"{number:,}"


def share(value: float | None) -> str:
    """A share of 1 in percent: `83 %`, `0.4 %`; never rounded to a 0 or a 100 that it is not."""
    if value is None:
        return UNKNOWN
    percent = value * 100
    whole = round(percent)
    if (whole == 0 and percent > 0) or (whole == 100 and percent < 100):  # noqa: PLR2004 - percent
        return f"{percent:.1f} %" if 0.1 <= percent <= 99.9 else "<0.1 %" if whole == 0 else ">99.9 %"  # noqa: PLR2004
    return f"{whole} %"


def of(part: int | None, whole: int | None) -> str:
    """`183 of 2,140`."""
    return f"{count(part)} of {count(whole)}"


def day(at: date) -> str:
    """`Fri 20 Nov 2026`."""
    return f"{short_day(at)} {at.year}"


def short_day(at: date) -> str:
    """`Fri 20 Nov`."""
    return f"{_DAYS[at.weekday()]} {at.day} {_MONTHS[at.month - 1]}"


def month(text: str) -> str:
    """`2026-11` → `Nov 2026`."""
    return f"{_MONTHS[int(text[5:7]) - 1]} {text[:4]}"


def instant(at: datetime) -> str:
    """`2026-11-20 19:59 UTC`; a wall clock time has no zone."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at.tzinfo else f"{at:%Y-%m-%d %H:%M}"


def age(passed: timedelta) -> str:
    """`40 s`, `3 min`, `26 h`, `12 days`; what lies ahead is `0 s`."""
    for unit, size in _AGES:
        if passed >= size * 2:
            return f"{passed // size} {unit}"
    return f"{max(0, int(passed.total_seconds()))} s"


def cell(value: object, column: Column) -> str:  # noqa: PLR0911 - one line for each kind of value
    """A value of a table as text."""
    if value is None:
        return column.none
    if isinstance(value, Money):
        return f"{money(value.amount, value.currency)} {value.currency or ''}".rstrip()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column.kind == "share" and isinstance(value, float | int):
        return share(value)
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return f"{value:,.1f}".removesuffix(".0")
    if isinstance(value, Decimal):
        return f"{value:,f}"
    if isinstance(value, datetime):
        return instant(value)
    return value.isoformat() if isinstance(value, date) else plain(value)


def sortable(value: object) -> str:
    """The machine's spelling of an instant or a day, for `<time datetime>`."""
    return value.isoformat() if isinstance(value, date) else ""
