"""The ready-made questions of `warehouse/questions/`: which there are, and what goes into their parameters.

A file's headers say what it answers and what it wants to know:

```
-- question: How full is each day of the next weeks?
-- parameter: first: date: today: First travel date.
-- parameter: below: number: 0.2: Weak is below this share.
-- yes: is_fresh, is_complete
-- not shown: open-dated booking: is_sold and travel_date is null
```

`yes` is of a question of yes or no: yes is when these columns are true in every row. `not shown` says what one of
`fct_bookings` is called that the answer leaves out, and its condition.

In the select a parameter is `$first`. A default that is empty must be given by whoever asks. Dates may be relative to the
day of asking: `yesterday`, `today-7d`, `month-1` (the first day of last month), `month-1d` (its last), `year` (1 January),
`year+1-1d` (31 December); instants to the moment: `now-24h`.
Nothing in a question reads a clock, so the same values give the same rows on every engine.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path

from octo_sync.errors import QueryError
from octo_sync.flows.publish import SqlFile, sql_files
from octo_sync.model import day_at

Value = date | datetime | int | Decimal | str
TYPES = ("date", "instant", "integer", "number", "text")

_QUESTION = re.compile(r"^--\s*question:\s*(.+?)\s*$", re.MULTILINE)
_YES = re.compile(r"^--\s*yes:\s*(.+?)\s*$", re.MULTILINE)
_NOT_SHOWN = re.compile(r"^--\s*not shown:\s*(.+?)\s*:\s*(.+?)\s*$", re.MULTILINE)
_PARAMETER = re.compile(r"^--\s*parameter:\s*(\w+)\s*:\s*(\w+)\s*:\s*(.*?)\s*:\s*(\S.*?)\s*$", re.MULTILINE)
_NAMED = 3
"""Rows that speak against a yes and are named."""
_DAY = re.compile(r"(yesterday|today|tomorrow|month|year)(?:([+-]\d{1,5})(d|m|y)?)?(?:([+-]\d{1,5})d)?")
_MOMENT = re.compile(r"now(?:([+-]\d{1,6})([hdm]))?")


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a question wants to know. `default` is written as a person would write it; '' = it must be given."""

    name: str
    type: str
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its number (None for a user's own without one), its text and its parameters.

    `yes` names the columns that are true in every row where the answer is yes; () = it is no question of yes or no. `not_shown`
    has which bookings are in no row, in words and as a condition.
    """

    number: int | None
    name: str
    question: str
    description: str
    parameters: tuple[Parameter, ...]
    file: SqlFile
    yes: tuple[str, ...] = ()
    not_shown: tuple[tuple[str, str], ...] = ()

    @property
    def sql(self) -> str:
        """The select, with `$name` where a parameter goes."""
        return self.file.sql

    @property
    def required(self) -> tuple[str, ...]:
        """Parameters without a default."""
        return tuple(p.name for p in self.parameters if not p.default)


def questions(directory: Path, folder: str = "questions") -> list[Question]:
    """The questions that came with the program, a project's own in their place or beside them; by number, then name.

    `folder` is the one of `warehouse/`: what the dashboard asks is written the same way.

    Raises:
        QueryError: A header is wrong.
    """
    found = [_read(file) for file in sql_files(directory, folder)]
    return sorted(found, key=lambda q: (q.number is None, q.number or 0, q.name))


def _read(file: SqlFile) -> Question:
    number, _, name = file.path.stem.partition("_")
    if not number.isdigit():
        number, name = "", file.path.stem
    asked = _QUESTION.search(file.text)
    try:
        parameters = parameters_of(file.text)
    except QueryError as error:
        raise QueryError(f"{file.where}: {error}") from None
    return Question(
        number=int(number) if number else None,
        name=name,
        question=asked[1] if asked else name.replace("_", " "),
        description=file.description,
        parameters=parameters,
        file=file,
        yes=tuple(told[1].replace(",", " ").split()) if (told := _YES.search(file.text)) else (),
        not_shown=tuple(_NOT_SHOWN.findall(file.text)),
    )


def parameters_of(text: str) -> tuple[Parameter, ...]:
    """What the headers of a query say that it wants to know.

    Raises:
        QueryError: A header is wrong.
    """
    for line in re.findall(r"^--\s*parameter:.*$", text, re.MULTILINE):
        if not (match := _PARAMETER.match(line)) or match[2] not in TYPES:
            raise QueryError(
                f"{line.strip()!r} is not `-- parameter: name: type: default: meaning` with a type of {', '.join(TYPES)}."
            )
    return tuple(Parameter(*match) for match in _PARAMETER.findall(text))


def find(known: Sequence[Question], wanted: str) -> Question | None:
    """The question of that number or name: `7`, `07`, `pick_up` or `07_pick_up`; None when there is none."""
    text = wanted.strip().lower().replace("-", "_")
    for question in known:
        if text in (question.name, question.file.path.stem) or (text.isdigit() and int(text) == question.number):
            return question
    return None


def verdict(question: Question, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Yes or no with its evidence, or '' where that is not asked. Rows are named by their first two columns.

    Raises:
        QueryError: The answer lacks a column that decides.
    """
    if not question.yes:
        return ""
    if missing := [name for name in question.yes if name not in columns]:
        raise QueryError(f"{question.file.where}: `-- yes:` names {missing[0]}, which is no column of it.")
    words = [name.removeprefix("is_").replace("_", " ") for name in question.yes]
    against = []
    for name, word in zip(question.yes, words, strict=True):
        place = list(columns).index(name)
        found = [" ".join(map(str, row[:2])) for row in rows if row[place] is not True]
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        against += [f"not {word}: {', '.join(found[:_NAMED])}{more}"] if found else []
    if against or not rows:
        return f"No: {'; '.join(against) or 'there is no row to tell it from'}."
    return f"Yes: all {len(rows)} rows are {' and '.join(words)}."


def values(question: Question, given: Mapping[str, str], *, now: datetime, time_zone: str) -> dict[str, Value]:
    """A value for each parameter: what was given, else its default. `today` is the day at `time_zone`.

    Raises:
        QueryError: A parameter is unknown, missing, or not of its type.
    """
    names = [p.name for p in question.parameters]
    for name in given:
        if name not in names:
            raise QueryError(
                f"The question {question.name} has no parameter {name!r}; it has {', '.join(names) or 'none'}."
            )
    for parameter in question.parameters:
        if not given.get(parameter.name, parameter.default).strip():
            raise QueryError(
                f"The question {question.name} needs {parameter.name} (--param {parameter.name}=…): {parameter.meaning}"
            )
    found = filled(question.parameters, given, now=now, time_zone=time_zone)
    first, last = found.get("first"), found.get("last")
    if type(first) is date and type(last) is date and first > last:
        raise QueryError(f"first={first} is after last={last}; expected the first day, then the last.")
    return found


def filled(
    parameters: Sequence[Parameter], given: Mapping[str, str], *, now: datetime, time_zone: str
) -> dict[str, Value]:
    """The same for the parameters of any query; what is given beyond them is not looked at.

    Raises:
        QueryError: A parameter is missing, or not of its type.
    """
    found: dict[str, Value] = {}
    for parameter in parameters:
        text = given.get(parameter.name, parameter.default).strip()
        if not text:
            raise QueryError(f"The query needs a value for {parameter.name}: {parameter.meaning}")
        try:
            found[parameter.name] = _value(parameter.type, text, now=now, time_zone=time_zone)
        except (ValueError, OverflowError, InvalidOperation):
            raise QueryError(
                f"{parameter.name}={text!r} is no {parameter.type}; e.g. {_EXAMPLES[parameter.type]}."
            ) from None
    return found


_EXAMPLES = {
    "date": "2026-11-20, tomorrow, today+1d, today-7d, month-1, year",
    "instant": "2026-11-20, 2026-11-20T12:00:00Z, now, now-24h",
    "integer": "30",
    "number": "0.2",
    "text": "anything but nothing",
}


def _value(kind: str, text: str, *, now: datetime, time_zone: str) -> Value:
    if kind == "date":
        return _day(text, day_at(time_zone, now))
    if kind == "instant":
        return _moment(text, now)
    if kind == "integer":
        return int(text)
    if kind == "number":
        number = Decimal(text)
        if not number.is_finite():
            raise ValueError(text)
        return number
    return text


def _day(text: str, today: date) -> date:
    match = _DAY.fullmatch(text)
    if not match:
        return date.fromisoformat(text)
    word, shift = match[1], int(match[2] or 0)
    unit = match[3] or {"month": "m", "year": "y"}.get(word, "d")
    base = {"month": today.replace(day=1), "year": today.replace(month=1, day=1)}.get(word, today)
    base += timedelta(days={"yesterday": -1, "tomorrow": 1}.get(word, 0))
    if unit == "d":
        base += timedelta(days=shift)
    elif shift:
        months = base.year * 12 + base.month - 1 + (shift if unit == "m" else shift * 12)
        base = date(months // 12, months % 12 + 1, min(base.day, 28))
    return base + timedelta(days=int(match[4] or 0))


def _moment(text: str, now: datetime) -> datetime:
    if match := _MOMENT.fullmatch(text):
        unit = {"h": "hours", "d": "days", "m": "minutes", None: "hours"}[match[2]]
        return now + timedelta(**{unit: int(match[1] or 0)})
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
