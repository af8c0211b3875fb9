"""Days of the week in cron expressions, as crontab(5) counts them: 0 and 7 are Sunday."""

import re

WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[1-6]))?", re.ASCII)


def weekdays(field: str) -> tuple[int, ...] | None:
    """The days that the fifth field of a cron expression means, 0 = Sunday to 6; None when it cannot be read."""
    found: set[int] = set()
    for part in field.lower().split(","):
        match = _PART.fullmatch(part)
        if match is None:
            return None
        first, last, step = match["first"] or "0", match["last"], match["step"]
        # Without an end: this day alone; all days; with a step, every so many from one on.
        end = _number(last or (first if match["first"] and not step else "6"))
        begin = _number(first)
        if last and end == 0 and begin:
            end = 7  # a week may end with its Sunday, whatever that is called
        if begin is None or end is None or end < begin:
            return None
        found |= {day % 7 for day in range(begin, end + 1, int(step or 1))}
    return tuple(sorted(found))


def _number(text: str) -> int | None:
    if text in WEEKDAYS:
        return WEEKDAYS.index(text)
    return int(text) if text in set("01234567") else None
