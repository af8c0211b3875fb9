"""Values, lists and details that answers of one landing have no more where the rows have some: kept, or taken away (R10).

All of it passes `gate.judge`, one field of one connection at a time. What is kept is noted in the row (`stale_columns`), and
as drift when it is the field that is gone. Runs inside the landing's transaction.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property

import duckdb

from octo_sync.destinations.ddl import MAIN, quoted
from octo_sync.destinations.gate import Guard, Loss, Lost, Verdict, judge
from octo_sync.destinations.landing.lists import speaks_for
from octo_sync.destinations.relations import sql
from octo_sync.tables.schema import Column, Merge, Table

MISSING = "missing"
"""Kind of drift: a field that answers have no more, and whose values are kept."""
_FIELD = re.compile(r'\b(?:[rouiec]|price|slot)\.((?:"?[A-Za-z]+"?\.)*"?[A-Za-z]+"?)')
_OWN = "('booking', 'product')"


def accepting(connection: str, noun: str, path: str, now: datetime) -> list[str]:
    """Statements, for both engines, that let go what is kept at a path: answers are read again, and then it goes."""
    roads = {"products": "'products', 'product'", "bookings": "'bookings', 'booking'"}.get(noun, quoted(noun))
    own, parts = f"connection_id = {quoted(connection)}", {"noun": quoted(noun), "path": quoted(path)}
    found = [
        sql("accept_missing", now=now.isoformat(), connection=quoted(connection), below=quoted(f"{path}."), **parts),
        f"update ops.coverage set answer_hash = null where {own} and resource in ({roads})",
    ]
    if noun == "bookings":
        found.append(f"update core.bookings set payload_digest = null where {own}")
    return found


def ending(tables: Sequence[Table], connection: str, noun: str, path: str, *, since: date, private: str = "") -> str:
    """Statement, for both engines, that ends a field's drift once nothing of what is still asked for lacks it.

    That is: no live row keeps a value of it, and no list was without the capability that it may be.

    Args:
        tables: All of them.
        connection: Whose drift.
        noun: Of which answers.
        path: The field, or the capability.
        since: The first day that is asked for: what was before is never shown again, so it would stay for ever.
        private: What stands before the names of private tables.
    """
    owners: dict[str, set[str]] = {}
    for table in (t for t in tables if t.noun == noun):
        is_owner = table.merge is Merge.MERGE
        owner = (private if table.private else "") + table.full_name if is_owner else table.parent or "core.products"
        before, whole = ("", "*") if is_owner else (f"{table.name}.", table.name)
        for own in {True, not table.at_own[0]}:
            marks = [f"{before}{c.name}" for c in table.tracked if path in (path_of(table, c, own=own), c.capability)]
            marks += [whole] * (path_of(table, own=own) == path)
            if marks:
                owners.setdefault(owner, set()).update(marks)
    asked = {
        "availability": f"t.local_date >= date '{since}'",
        "bookings": sql("booking_asked", since=since, speaks_for=speaks_for("b", "w")),
    }.get(noun, "true")
    whose = {"connection": quoted(connection)}
    looks = [
        sql("keeps_values", owner=owner, marks=_array(sorted(marks)), asked=asked, **whose)
        for owner, marks in sorted(owners.items())
    ]
    looks.append(sql("list_lacks", noun=quoted(noun), path=_array([path]), since=since, **whose))
    lacking = "".join(f" and not exists ({look})" for look in looks)
    return (
        f"delete from ops.schema_drift where connection_id = {quoted(connection)} and kind = '{MISSING}' "
        f"and resource = {quoted(noun)} and name = {quoted(path)}{lacking}"
    )


def _array(texts: Sequence[str]) -> str:
    return f"array[{', '.join(quoted(text) for text in texts)}]"


def holds(tables: Sequence[Table], noun: str, capability: str) -> str:
    """Query whether a connection, $1, has any value that only this capability brings."""
    looks = []
    for table in tables:
        if table.noun != noun or table.private:
            continue
        columns = [c.name for c in table.columns if c.capability == capability]
        live = " and not is_deleted" if table.merge is Merge.MERGE else ""
        if table.capability == capability:
            looks.append(f"select 1 from {table.full_name} where connection_id = $1{live}")
        elif columns:
            some = " or ".join(f"{c} is not null" for c in columns)
            looks.append(f"select 1 from {table.full_name} where connection_id = $1{live} and ({some})")
    return " union all ".join(f"(select * from ({look}) limit 1)" for look in looks)


Group = tuple[str, bool]
"""A connection, and whether it is about details of the record itself (see `Table.at_own`): each is judged by itself."""


def is_own(table: Table, alias: str = "") -> str:
    """SQL for the second part of a `Group`."""
    return f"({alias}{table.at_own[0]} = '')" if table.at_own[0] else "true"


def within(table: Table, groups: Sequence[Group], alias: str) -> str:
    """The condition for rows of these groups."""
    named = ", ".join(f"({quoted(connection)}, {str(own).lower()})" for connection, own in groups)
    return f"({alias}connection_id, {is_own(table, alias)}) in ({named})" if named else "false"


def path_of(table: Table, column: Column | None = None, *, own: bool = True) -> str:
    """Where in a record the column's value is, or the rows are: `pricing.retail`, `options.units.restrictions.paxCount`."""
    at = table.at_own[1] if own and table.at_own[0] else table.at
    if column is None:
        return at
    found = _FIELD.search(column.sql)
    if found:
        name = found[1].replace('"', "")
    else:
        first, *rest = column.name.removesuffix("_minor").removesuffix("_amount").split("_")
        name = first + "".join(part.title() for part in rest)
    return ".".join(part for part in (at, name) if part)


@dataclass
class Losses:
    """What one noun's answers of one landing would take away. `found` is for `ops.schema_drift`."""

    db: duckdb.DuckDBPyConnection
    noun: str
    guard: Guard
    lately: Callable[[], Lost]
    found: dict[tuple[str, str], int] = field(default_factory=dict)
    """(connection, path) → rows that keep a value that answers have no more."""
    doubtful: set[tuple[str, str]] = field(default_factory=set)
    """Connection and uuid of bookings whose details a list has to decide about."""
    lost: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    """(connection, path) → rows that lose a value, rows that show one."""

    @cached_property
    def drift(self) -> Mapping[tuple[str, str], bool]:
        """Fields that are known to be missing: (connection, path) → whether a person let it through."""
        rows = self.db.execute(
            f"select connection_id, name, accepted_at_utc is not null from {MAIN}.ops.schema_drift "
            f"where kind = '{MISSING}' and resource = $1",
            [self.noun],
        ).fetchall()
        return {(connection, name): accepted for connection, name, accepted in rows}

    @cached_property
    def listed(self) -> Mapping[str, bool]:
        """Whether a list of a connection is among the answers."""
        listed = f"select connection_id, bool_or(resource not in {_OWN}) from staged_{self.noun} group by all"
        return dict(self.db.execute(listed).fetchall())

    def verdict(self, connection: str, path: str, lost: int, shown: int, *, came: int = 0) -> Verdict:
        """What becomes of the values; what is kept for the field's sake is written down."""
        key = connection, path
        known = self.drift.get(key)
        verdict = judge(
            Loss(lost, shown, self.listed.get(connection, False), alone=came == 1),
            self.guard,
            lately=self.lately().get((connection, self.noun, path), (0, 0)),
            open_drift=known is False,
            accepted=known is True,
        )
        if verdict == "drift":
            self.found[key] = max(lost, self.found.get(key, 0))
        # What a person has let through says nothing about what may go next.
        if verdict == "real" and not known:
            self.lost[key] = max((lost, shown), self.lost.get(key, (0, 0)))
        return verdict

    def columns(
        self, table: Table, columns: Sequence[Column], *, losing: str, shown: str, seen: str = ""
    ) -> dict[Group, dict[str, Verdict]]:
        """Judge columns: the verdict on each that was lost.

        Args:
            table: Whose columns.
            columns: Those that may have lost values.
            losing: Relation of rows with `lost`, the names of the columns that lost theirs, comma-separated.
            shown: Relation of the rows as they came, with the columns by their names.
            seen: The same of rows that were in the answers and not read.
        """
        by_name = {c.name: c for c in columns}
        lost: Counter[tuple[Group, str]] = Counter()
        for connection, own, names, count in self.db.execute(
            f"select connection_id, {is_own(table)}, lost, count(*) from {losing} where lost <> '' group by all"
        ).fetchall():
            lost.update({((connection, own), name): count for name in names.split(",")})
        if not lost:
            return {}
        names = sorted({name for _, name in lost})
        there: Counter[tuple[Group, str]] = Counter()
        for relation in filter(None, (shown, seen)):
            for connection, own, *found in self.db.execute(
                f"select connection_id, {is_own(table)}, {', '.join(f'count({n})' for n in names)}, count(*) "
                f"from ({relation}) group by all"
            ).fetchall():
                counts = zip((*names, ""), found, strict=True)
                there.update({((connection, own), name): n for name, n in counts})
        verdicts: dict[Group, dict[str, Verdict]] = {}
        for (group, name), count in lost.items():
            path = path_of(table, by_name[name], own=group[1])
            some, came = there[group, name], there[group, ""]
            verdicts.setdefault(group, {})[name] = self.verdict(group[0], path, count, some, came=came)
        return verdicts

    def details(self, table: Table, losing: str, shown: str) -> dict[Group, Verdict]:
        """Judge rows that go because the answers say nothing about them. Both are relations."""
        count = f"select connection_id, {is_own(table)}, count(*) from ({{}}) group by all"
        lost = {(c, own): n for c, own, n in self.db.execute(count.format(f"from {losing}")).fetchall()}
        if not lost:
            return {}
        there = {(c, own): n for c, own, n in self.db.execute(count.format(shown)).fetchall()}
        return {
            group: self.verdict(group[0], path_of(table, own=group[1]), n, there.get(group, 0))
            for group, n in lost.items()
        }
