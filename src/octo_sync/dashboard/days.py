"""Days and months of the calendar."""

from collections.abc import Mapping
from datetime import date, timedelta

DAY = timedelta(days=1)
_EVER = 100_000
SPANS: Mapping[str, Mapping[str, tuple[int, int] | None]] = {
    "lead": {
        "same day": (-_EVER, 0),
        "1-2 days": (1, 2),
        "3-7 days": (3, 7),
        "8-30 days": (8, 30),
        "31-90 days": (31, 90),
        "over 90 days": (91, _EVER),
        "unknown": None,
    },
    "notice": {
        "over 30 days": (31, _EVER),
        "8-30 days": (8, 30),
        "3-7 days": (3, 7),
        "1-2 days": (1, 2),
        "same day": (0, 0),
        "after travel": (-_EVER, -1),
        "unknown": None,
    },
}
"""Days from booking, and from cancellation, to travel: what they are counted as, the least and the most."""


def presets(today: date) -> list[tuple[str, date, date]]:
    """Times that people ask for again and again: what they are called, first and last day."""
    return [
        ("today", today, today),
        ("tomorrow", today + DAY, today + DAY),
        ("last 7 days", today - 7 * DAY, today - DAY),
        ("next 7 days", today, today + 6 * DAY),
        ("last 30 days", today - 30 * DAY, today - DAY),
        ("next 30 days", today, today + 29 * DAY),
        ("last month", month_start(today, -1), month_end(today, -1)),
        ("this month", month_start(today), month_end(today)),
        ("next month", month_start(today, 1), month_end(today, 1)),
        ("next 3 months", month_start(today, 1), month_end(today, 3)),
        ("this year", today.replace(month=1, day=1), today.replace(month=12, day=31)),
    ]


def month_start(day: date, ahead: int = 0) -> date:
    """The first day of the month that is so many months ahead of the day's."""
    number = day.year * 12 + day.month - 1 + ahead
    return date(number // 12, number % 12 + 1, 1)


def month_end(day: date, ahead: int = 0) -> date:
    """The last day of it."""
    return month_start(day, ahead + 1) - DAY


def year_earlier(day: date) -> date:
    """The same day a year earlier; of a leap day the one before."""
    return day.replace(year=day.year - 1, day=28 if (day.month, day.day) == (2, 29) else day.day)


def month_days(day: date) -> tuple[date, date]:
    """First and last day of its month."""
    return month_start(day), month_end(day)


def months(first: date, last: date) -> list[date]:
    """The first day of every month from that of `first` to that of `last`."""
    count = (last.year - first.year) * 12 + last.month - first.month + 1
    return [month_start(first, n) for n in range(count)]
