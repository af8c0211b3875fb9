"""A day of travel beside the same weekdays of the weeks before."""

from collections.abc import Mapping
from datetime import date
from statistics import median

from octo_sync.dashboard.days import DAY
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from

COURSE = 28
"""Days of the line in a tile."""


def travelled(source: Source, today: date, product: str | None) -> dict[date, int | None]:
    """Our guests of each day that is known, from four weeks before today to tomorrow, wherever the venue is."""
    first, known = today - (COURSE + 1) * DAY, known_from(source) or date.max
    days = [day for n in range(COURSE + 4) if (day := first + n * DAY) >= known]
    rows = source.rows("today_guests", first=first, last=today + 2 * DAY, product=product)
    return dict.fromkeys(days, 0) | {row["travel_date"]: row["guests"] for row in rows if row["travel_date"] in days}


def beside(day: date, travelled: Mapping[date, int | None]) -> tuple[str, list[int | None]]:
    """What the same weekdays before had, in words, and the days up to that one."""
    usual = [guests for n in range(1, 5) if (guests := travelled.get(day - 7 * n * DAY)) is not None]
    said = f"vs {median(usual):g} on a usual {day:%A}; " if usual else ""
    return said, [travelled.get(day - n * DAY) for n in reversed(range(COURSE + 1))]
