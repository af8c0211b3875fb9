"""Days and clocks as people and programs write them.

`2026-11-05`, `05.11.2026`, `05/11/2026` and `11/05/2026`, alone or with `14:30[:15[.5]]` and an offset. Whether the day or the
month is first is found out over the whole column, by a part above 12; points between the parts mean day first, as everywhere
where dates are written so. What nothing decides is refused.

Each becomes a `datetime`: with a time zone where an offset is written, else the clock alone.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Literal

from octo_sync.reconciliation.ledgers.unreadable import Unreadable, shown

Order = Literal["", "iso", "dmy", "mdy", "serial"]
_HALVES = re.compile(r"([^T ,]+)(?:[T ,]+(.+))?")
_DAY_FORM = re.compile(
    r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})|"
    r"(?P<a>\d{1,2})(?P<s>[-/.])(?P<b>\d{1,2})[-/.](?P<z>\d{4}|\d{2})",
    re.ASCII,
)
_CLOCK_FORM = re.compile(
    r"(?P<h>[01]?\d|2[0-3]):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?)?"
    r"(?: ?(?P<o>Z|z|UTC|[-+](?:0\d|1[0-8])(?::?[0-5]\d)?))?",
    re.ASCII,
)
_SERIAL = re.compile(r"[2-7]\d{4}(?:\.\d+)?", re.ASCII)
_FIRST, _LAST = 20_000, 80_000
"""Serials that are taken for days: 1954 to 2119."""
_MONTHS = 12


def order(texts: Sequence[str], said: Order) -> Order:
    """How the days of trimmed texts are written: as `said`, or as is found out over all of them.

    Raises:
        Unreadable: Two contradict each other, or nothing says which part is the month.
    """
    days = {
        text: day for text in texts if (halves := _HALVES.fullmatch(text)) and (day := _DAY_FORM.fullmatch(halves[1]))
    }
    if said or not days:
        return said
    iso = [text for text, day in days.items() if day["y"]]
    national = [text for text, day in days.items() if day["z"]]
    if iso and national:
        raise Unreadable(
            (iso[0], national[0]),
            f"{shown(iso[0])} and {shown(national[0])} are written in two ways, as when a program has turned some into dates "
            'and left others. Correct it where it comes from, or set dates = "dmy" or dates = "mdy".',
        )
    day_first, month_first = (
        next((text for text in national if int(days[text][part]) > _MONTHS), None) for part in "ab"
    )
    if day_first is not None and month_first is not None and day_first != month_first:
        raise Unreadable(
            (day_first, month_first),
            f"{shown(day_first)} has the day first and {shown(month_first)} the month; one column is written one way. Correct "
            "it where it comes from.",
        )
    unclear = next((text for text in national if days[text]["s"] != "."), None)
    if day_first is None and month_first is None and unclear is not None:
        raise Unreadable(
            (unclear,),
            f"nothing in the column says whether {shown(unclear)} has the day or the month first; set "
            'dates = "dmy" or dates = "mdy".',
        )
    return "dmy" if month_first is None else "mdy"


def of_text(text: str, order: Order) -> datetime:
    """The day and clock of a trimmed text; `ValueError` for what is none, or written otherwise than `order` says."""
    halves = _HALVES.fullmatch(text)
    if halves and _SERIAL.fullmatch(halves[1]):
        return of_serial(halves[1], order)
    day = _DAY_FORM.fullmatch(halves[1]) if halves else None
    if halves is None or day is None:
        raise ValueError("{} is no day, such as 2026-11-05, 05.11.2026 or 2026-11-05 14:30.")
    if day["z"] and len(day["z"]) == 2:  # noqa: PLR2004 - said in the sentence
        raise ValueError("{} has a year of two digits; export all four.")
    return _timed(_of_day(day, order), halves[2])


def of_serial(number: float | Decimal | str, order: Order) -> datetime:
    """A day as spreadsheets count them (1 is 1900-01-01, 0.5 is noon), to the millisecond, when `order` says so.

    Raises:
        ValueError: `order` says nothing of serials, or the number is too small or too large for one.
    """
    days = float(number)
    if not _FIRST <= days < _LAST:
        raise ValueError(f'the number "{days:.12g}" is no day.')
    if order != "serial":
        raise ValueError(
            f'"{days:.12g}" looks like a day as spreadsheets count them; set dates = "serial" if it is one.'
        )
    return datetime(1899, 12, 30) + timedelta(int(days), milliseconds=round(days % 1 * 86_400_000))  # noqa: DTZ001 - a clock


def _of_day(day: re.Match[str], order: Order) -> datetime:
    year, month, number = day["y"], day["m"], day["d"]
    if day["z"]:
        if order in {"iso", "serial"}:
            raise ValueError(f'{{}} is not written as dates = "{order}" says.')
        year = day["z"]
        number, month = (day["b"], day["a"]) if order == "mdy" else (day["a"], day["b"])
    try:
        return datetime(int(year), int(month), int(number))  # noqa: DTZ001 - a clock
    except ValueError:
        raise ValueError("{} is no day of the calendar.") from None


def _timed(day: datetime, clock: str | None) -> datetime:
    if not clock:
        return day
    found = _CLOCK_FORM.fullmatch(clock)
    if found is None:
        raise ValueError(f"{shown(clock)} is no time of the day, such as 14:30, 14:30:15 or 14:30+02:00.")
    since = timedelta(
        hours=int(found["h"]), minutes=int(found["m"]), seconds=int(found["s"] or 0),
        microseconds=int((found["f"] or "").ljust(6, "0")[:6]),
    )  # fmt: skip
    return (day + since).replace(tzinfo=_zone(found["o"]))


def _zone(offset: str | None) -> timezone | None:
    """`Z`, `UTC`, `+01`, `+0130` or `+01:30`; None for none."""
    if offset is None or offset[0] not in "+-":
        return UTC if offset else None
    digits = offset[1:].replace(":", "").ljust(4, "0")
    east = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return timezone(-east if offset[0] == "-" else east)
