"""Which rows an answer can touch: what a landing on PostgreSQL has to have at hand.

Everything here may be too much, never too little: the landing's own statements choose among what is there. A condition is
over the table's alias `t`, with `%s` for its parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from octo_sync.destinations.base import Absence, Answered
from octo_sync.destinations.relations import sql
from octo_sync.model import Subject, SubjectKind
from octo_sync.tables.schema import Merge, Table

Conditions = Mapping[str, tuple[str, Sequence[Any]]]
"""Table → condition and its parameters."""

_OWN = {SubjectKind.BOOKING: "bookings", SubjectKind.PRODUCT: "products"}
_ALL: tuple[str, Sequence[Any]] = ("true", ())


def of_answers(
    answered: Sequence[Answered], tables: Sequence[Table], staged: Callable[[], Sequence[str]], empty: frozenset[str]
) -> Conditions:
    """What these answers can touch. `staged` gives the uuids of the bookings that were read.

    `empty` are nouns of which no row is there yet: nothing of them has to be looked for.
    """
    found: dict[str, tuple[str, Sequence[Any]]] = {"ops.absences": _ALL, "ops.schema_drift": _ALL}
    by_noun: dict[str, list[Answered]] = {}
    for a in answered:
        noun = a.noun if a.noun and not a.unchanged and not a.not_found else ""
        if a.not_found:
            noun = _OWN.get(a.subject.kind, "")
        if noun:
            by_noun.setdefault(noun, []).append(a)
    uuids: list[str] = []
    if "bookings" in by_noun:
        own = [a.subject.parts[0] for a in by_noun["bookings"] if a.subject.kind is SubjectKind.BOOKING]
        seen = [s.uuid for a in by_noun["bookings"] for s in a.seen]
        uuids = sorted({*own, *staged(), *seen})
    for table in tables:
        if table.full_name == "raw.records":
            found |= _records(answered)
        elif (noun := _noun(table, tables)) in by_noun and noun not in empty:
            found[table.full_name] = _CONDITIONS[noun](table, by_noun[noun], uuids)
    found["ops.coverage"] = _coverage(answered, uuids)
    return found


def _noun(table: Table, tables: Sequence[Table]) -> str:
    """The noun whose landing writes the table; a history's is that of the table it follows."""
    return next((t.noun for t in tables if t.full_name == table.history_of), table.noun)


def _connections(answers: Sequence[Answered]) -> list[str]:
    return sorted({a.subject.connection for a in answers})


def _whole(_table: Table, answers: Sequence[Answered], _uuids: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """Everything of the connections: products are few, and a list speaks for all of them."""
    return "t.connection_id = any(%s)", [_connections(answers)]


def _departures(_table: Table, answers: Sequence[Answered], _uuids: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """Each option on the days that it was asked for: one by one, because an index finds those and no range of them."""
    options = [((a.subject.connection, *a.subject.parts[:2]), a.window) for a in answers]
    columns, casts = "t.connection_id, t.product_id, t.option_id", ["text[]"] * 3
    rows: set[tuple[Any, ...]] = {key for key, _ in options}
    windows = [(key, window) for key, window in options if window]
    if len(windows) == len(options):
        columns, casts = f"{columns}, t.local_date", [*casts, "date[]"]
        rows = {
            (*key, window.start + timedelta(days=day))
            for key, window in windows
            for day in range((window.end - window.start).days + 1)
        }
    lists = [list(column) for column in zip(*sorted(rows), strict=True)]
    return f"({columns}) in (select * from unnest({', '.join(f'%s::{cast}' for cast in casts)}))", lists


def _bookings(table: Table, answers: Sequence[Answered], uuids: Sequence[str]) -> tuple[str, Sequence[Any]]:
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


_CONDITIONS: Mapping[str, Callable[[Table, Sequence[Answered], Sequence[str]], tuple[str, Sequence[Any]]]] = {
    "supplier": _whole,
    "products": _whole,
    "availability": _departures,
    "bookings": _bookings,
}


def _records(answered: Sequence[Answered]) -> Conditions:
    """The newest payload of each key in the answers."""
    keys = sorted({(a.subject.connection, p.resource, p.key) for a in answered for p in a.payloads})
    if not keys:
        return {}
    return {"raw.records": (sql("newest_payloads"), [list(column) for column in zip(*keys, strict=True)])}


def _coverage(answered: Sequence[Answered], uuids: Sequence[str]) -> tuple[str, Sequence[Any]]:
    """What was verified of the answers' subjects, of the lists, and of every booking that is concerned.

    Bookings that only a list should have shown count when they were asked for later than the answer.
    """
    connections = _connections(answered)
    first = min((a.request_seq for a in answered), default=0)
    keys = {a.subject.key for a in answered if a.subject.kind in (SubjectKind.AVAILABILITY, SubjectKind.BOOKING)}
    keys |= {Subject("", SubjectKind.BOOKING, (uuid,)).key for uuid in uuids}
    return sql("coverage_concerned"), [connections, sorted(keys), first]


def _options(keys: Sequence[tuple[str, ...]]) -> tuple[str, list[Any]]:
    """Everything of the options of these departures. A key is connection, product, option and departure."""
    where = "(t.connection_id, t.product_id, t.option_id) in (select * from unnest(%s::text[], %s::text[], %s::text[]))"
    return where, [list(column) for column in zip(*sorted({key[:3] for key in keys}), strict=True)]


def of_moved(keys: Sequence[tuple[str, ...]], tables: Sequence[Table], brought: Conditions) -> Conditions:
    """Departures with these keys on other days than those that were `brought`, and their details."""
    found: dict[str, tuple[str, Sequence[Any]]] = {}
    options, names = _options(keys)
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
    options, names = _options(keys)
    return {"ops.coverage": (f"t.resource = 'availability' and {options} and not ({where})", [*names, *parameters])}


def of_absences(absences: Sequence[Absence], keys: Sequence[Sequence[str]], tables: Sequence[Table]) -> Conditions:
    """What the burial of these rows touches: the rows, and all that has their keys. `keys` are those, without connection.

    Also the months of departures that go with them.
    """
    by_name = {t.full_name: t for t in tables}
    wheres: dict[str, list[str]] = {}
    lists: dict[str, list[Any]] = {}
    for name in sorted({a.table for a in absences}):
        own = by_name[name]
        rows = [(a.connection, *key) for a, key in zip(absences, keys, strict=True) if a.table == name]
        for table in tables:
            columns = {c.name for c in table.all_columns}
            months = table.full_name == "ops.coverage" and "core.availability" in own.cascade
            if not months and (table.merge is Merge.LOG or not set(own.key) <= columns or table.schema == "ops"):
                continue
            arrays = ", ".join(["%s::text[]"] * len(own.key))
            wheres.setdefault(table.full_name, []).append(
                f"({', '.join(f't.{c}' for c in own.key)}) in (select * from unnest({arrays}))"
            )
            lists.setdefault(table.full_name, []).extend(list(column) for column in zip(*rows, strict=True))
    found = {name: (" or ".join(parts), lists[name]) for name, parts in wheres.items()}
    return {**found, "ops.absences": _ALL}
