"""A pipeline's cron expression in the words of crontab(5), of systemd.time(7) and of people.

In the pipeline's own a day of the month and one of the week must both fit. crontab takes either of the two, systemd wants
names; so fields are read into numbers and written anew.
"""

import re
from collections.abc import Sequence

from octo_sync.errors import ConfigError
from octo_sync.pipeline.weekdays import WEEKDAYS, weekdays

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FIELDS = (range(60), range(24), range(1, 32), range(1, 13))
_TIMES = 4
"""Times of a day that a person reads in a row."""
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?", re.ASCII)


def crontab(expression: str) -> str:
    """The five fields for a crontab, also Kubernetes'.

    Raises:
        ConfigError: crontab cannot say it.
    """
    minutes, hours, days, months, week = _read(expression)
    if days and week:
        raise ConfigError(
            f'schedule.full: cron cannot say "{expression}", because it takes a day of the month or of the week, not both. '
            "Leave one of them *."
        )
    fields = [",".join(map(str, numbers)) if numbers else "*" for numbers in (minutes, hours, days, months)]
    return " ".join([*fields, ",".join(WEEKDAYS[number] for number in week) or "*"])


def calendar(expression: str, time_zone: str) -> str:
    """The `OnCalendar=` of a timer.

    Raises:
        ConfigError: systemd cannot say it.
    """
    minutes, hours, days, months, week = _read(expression)

    def two(numbers: Sequence[int]) -> str:
        return ",".join(f"{number:02}" for number in numbers) or "*"

    names = ",".join(WEEKDAYS[number].title() for number in week)
    return f"{names} *-{two(months)}-{two(days)} {two(hours)}:{two(minutes)}:00 {time_zone}".strip()


def words(expression: str, time_zone: str) -> str:
    """What people say: `every day at 02:17, UTC`; '' where that would take too many words."""
    try:
        minutes, hours, days, months, week = _read(expression)
    except ConfigError:
        return ""
    if days or months or (hours and (not minutes or len(hours) * len(minutes) > _TIMES)):
        return ""
    on = f"on {', '.join(WEEKDAYS[number].title() for number in week)}"
    if hours:
        at = " and ".join(f"{hour:02}:{minute:02}" for hour in hours for minute in minutes)
        return f"{on if week else 'every day'} at {at}, {time_zone}"
    step = 60 // len(minutes) if minutes else 1
    if len(minutes) == 1:
        said = f"every hour, {minutes[0]} minutes past" if minutes[0] else "every hour"
    elif minutes in ((), tuple(range(0, 60, step))):
        said = f"every {step} minutes" if minutes else "every minute"
    else:
        return ""
    return f"{said}, {on}, {time_zone}" if week else said


def _read(expression: str) -> list[tuple[int, ...]]:
    """The numbers of each field in order; empty means all."""
    *others, last = expression.split()
    week = weekdays(last)
    if week is None:
        raise _strange(expression)
    found = [_numbers(text, field, expression) for text, field in zip(others, _FIELDS, strict=True)]
    return [*found, () if len(week) == len(WEEKDAYS) else week]


def _strange(expression: str) -> ConfigError:
    return ConfigError(
        f'schedule.full: cron and systemd know only numbers, names, "*", "-", "," and "/"; found "{expression}".'
    )


def _numbers(text: str, all_of_them: range, expression: str) -> tuple[int, ...]:
    found: set[int] = set()
    for part in text.lower().split(","):
        match = _PART.fullmatch(part)
        try:
            first, last, step = (match[name] for name in ("first", "last", "step")) if match else ("?", "", "")
            begin = _number(first) if first else all_of_them[0]
            end = _number(last) if last else begin if first and not step else all_of_them[-1]
        except ValueError:
            raise _strange(expression) from None
        found |= set(range(begin, end + 1, int(step or 1)))
    return () if found == set(all_of_them) else tuple(sorted(found))


def _number(text: str) -> int:
    return _MONTHS.index(text) + 1 if text in _MONTHS else int(text)
