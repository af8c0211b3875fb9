"""Which rows an answer can touch: what a landing on PostgreSQL has to have at hand.

Everything here may be too much, never too little: the landing's own statements choose among what is there. A condition is
over the table's alias `t`, with `%s` for its parameters.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from octo_sync.destinations.base import Absence, Answered
from octo_sync.destinations.relations import sql
from octo_sync.model import Subject, SubjectKind
from octo_sync.tables.schema import Merge, Table

Condition = tuple[str, Sequence[Any]]
"""With its parameters."""
Conditions = Mapping[str, Condition]
"""By the tables that they are about."""

_OWN = {SubjectKind.BOOKING: "bookings", SubjectKind.PRODUCT: "products"}
_ALL: Condition = ("true", ())
_OPTION = ("connection_id", "product_id", "option_id")


def of_answers(
    answered: Sequence[Answered], tables: Sequence[Table], staged: Callable[[], Sequence[str]], empty: frozenset[str]
) -> Conditions:
    """What these answers can touch. `staged` gives the uuids of the bookings that were read.

    `empty` are nouns of which no row is there yet: nothing of them has to be looked for.
    """
    by_noun: dict[str, list[Answered]] = defaultdict(list)
    for a in answered:
        noun = _OWN.get(a.subject.kind, "") if a.not_found else "" if a.unchanged else a.noun
        by_noun[noun].append(a)
    uuids: list[str] = []
    if "bookings" in by_noun:
        own = [a.subject.parts[0] for a in by_noun["bookings"] if a.subject.kind is SubjectKind.BOOKING]
        seen = [s.uuid for a in by_noun["bookings"] for s in a.seen]
        uuids = sorted({*own, *staged(), *seen})
    found = {"ops.absences": _ALL, "ops.schema_drift": _ALL, "ops.coverage": _coverage(answered, uuids)}
    found |= _records(answered)
    for table in tables:
        noun = _noun(table, tables)
        if noun and noun in by_noun and noun not in empty:
            found[table.full_name] = _rows(table, noun, by_noun[noun], uuids)
    return found


def _noun(table: Table, tables: Sequence[Table]) -> str:
    """The noun whose landing writes the table; a history's is that of the table it follows."""
    return next((t.noun for t in tables if t.full_name == table.history_of), table.noun)


def _among(columns: Sequence[str], rows: Iterable[Sequence[Any]], kinds: Sequence[str] = ()) -> Condition:
    """That these columns have the values of one of the rows; `kinds` are their types where one is no text."""
    arrays = ", ".join(f"%s::{kind}[]" for kind in kinds or ["text"] * len(columns))
    where = f"({', '.join(f't.{c}' for c in columns)}) in (select * from unnest({arrays}))"
    return where, [list(column) for column in zip(*rows, strict=True)]


def _connections(answers: Sequence[Answered]) -> list[str]:
    return sorted({a.subject.connection for a in answers})


def _rows(table: Table, noun: str, answers: Sequence[Answered], uuids: Sequence[str]) -> Condition:
    if noun == "availability":
        return _departures(answers)
    if noun == "bookings":
        return _bookings(table, answers, uuids)
    # Everything of the connections: products are few, and a list speaks for all of them.
    return "t.connection_id = any(%s)", [_connections(answers)]


def _departures(answers: Sequence[Answered]) -> Condition:
    """Each option on the days that it was asked for: one by one, because an index finds those and no range of them."""
    options = {(a.subject.connection, *a.subject.parts[:2]) for a in answers}
    if not all(a.window for a in answers):
        return _among(_OPTION, sorted(options))
    days = {
        (a.subject.connection, *a.subject.parts[:2], a.window.start + timedelta(days=day))
        for a in answers
        if a.window
        for day in range((a.window.end - a.window.start).days + 1)
    }
    return _among((*_OPTION, "local_date"), sorted(days), ("text", "text", "text", "date"))


def _bookings(table: Table, answers: Sequence[Answered], uuids: Sequence[str]) -> Condition:
    """Those that were shown; of bookings themselves also those that a complete list should have shown."""
    where = "t.connection_id = any(%s) and t.booking_uuid = any(%s)"
    parameters: list[Any] = [_connections(answers), list(uuids)]
    if table.full_name != "core.bookings":
        return where, parameters
    for a in answers:
        if a.subject.kind is SubjectKind.BOOKINGS and a.window and a.complete:
            day = timedelta(days=1)
            if a.date_meaning == "creation":
                where += " or t.connection_id = %s and t.utc_created_at >= %s and t.utc_created_at < %s"
                parameters += [a.subject.connection, a.window.start - day, a.window.end + 2 * day]
            else:
                where += " or t.connection_id = %s and t.local_date between %s and %s"
                parameters += [a.subject.connection, a.window.start, a.window.end]
    return where, parameters


def _records(answered: Sequence[Answered]) -> Conditions:
    """The newest payload of each key in the answers."""
    keys = sorted({(a.subject.connection, p.resource, p.key) for a in answered for p in a.payloads})
    if not keys:
        return {}
    return {"raw.records": (sql("newest_payloads"), [list(column) for column in zip(*keys, strict=True)])}


def _coverage(answered: Sequence[Answered], uuids: Sequence[str]) -> Condition:
    """What was verified of the answers' subjects, of the lists, and of every booking that is concerned.

    Bookings that only a list should have shown count when they were asked for later than the answer.
    """
    connections = _connections(answered)
    first = min((a.request_seq for a in answered), default=0)
    keys = {a.subject.key for a in answered if a.subject.kind in (SubjectKind.AVAILABILITY, SubjectKind.BOOKING)}
    keys |= {Subject("", SubjectKind.BOOKING, (uuid,)).key for uuid in uuids}
    return sql("coverage_concerned"), [connections, sorted(keys), first]


def of_moved(keys: Sequence[tuple[str, ...]], tables: Sequence[Table], brought: Conditions) -> Conditions:
    """Departures with these keys on other days than those that were `brought`, and their details.

    A key is connection, product, option and departure.
    """
    found: dict[str, Condition] = {}
    options, names = _among(_OPTION, sorted({key[:3] for key in keys}))
    for table in tables:
        if _noun(table, tables) == "availability" and table.full_name in brought:
            where, parameters = brought[table.full_name]
            found[table.full_name] = (
                f"{options} and t.availability_id = any(%s) and not ({where})",
                [*names, sorted({key[3] for key in keys}), *parameters],
            )
    return found


def of_months(keys: Sequence[tuple[str, ...]], brought: Conditions) -> Conditions:
    """What was verified of all months of these options, where it was not `brought` before."""
    where, parameters = brought["ops.coverage"]
    options, names = _among(_OPTION, sorted({key[:3] for key in keys}))
    return {"ops.coverage": (f"t.resource = 'availability' and {options} and not ({where})", [*names, *parameters])}


def of_absences(absences: Sequence[Absence], tables: Sequence[Table]) -> Conditions:
    """What the burial of these rows touches: the rows, all that has their keys, and the months of departures that go."""
    wheres: dict[str, list[str]] = defaultdict(list)
    lists: dict[str, list[Any]] = defaultdict(list)
    for own in tables:
        rows = [(a.connection, *map(str, json.loads(a.key))) for a in absences if a.table == own.full_name]
        for table in tables if rows else ():
            columns = {c.name for c in table.all_columns}
            months = table.full_name == "ops.coverage" and "core.availability" in own.cascade
            if months or (table.schema != "ops" and table.merge is not Merge.LOG and columns.issuperset(own.key)):
                where, values = _among(own.key, rows)
                wheres[table.full_name].append(where)
                lists[table.full_name] += values
    found = {name: (" or ".join(parts), lists[name]) for name, parts in wheres.items()}
    return {**found, "ops.absences": _ALL}
