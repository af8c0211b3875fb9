"""Compare a read copy with a fresh pull of the same service, row for row and column for column, in both directions."""

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb

from octo_sync import model
from octo_sync.destinations.ddl import quoted
from octo_sync.destinations.digests import live
from octo_sync.destinations.duckdb.files import attach_published
from octo_sync.destinations.duckdb.transactions import translated
from octo_sync.destinations.landing.lists import booked_on, by_booking, speaks_for
from octo_sync.destinations.relations import equal, given, run, sql
from octo_sync.destinations.warehouse import Destination
from octo_sync.tables.schema import Merge, Table

_SHOWN = 1000
"""Differences listed per table; all are counted."""
_DIFFERS = "(not_here or not_there or len(names) > 0)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that is not the same. `kind` is `missing here`, `not at the service` or `differs`."""

    table: str
    key: str
    kind: str
    columns: tuple[str, ...] = ()


@dataclass(slots=True)
class Comparison:
    """What was compared, and what differed."""

    rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Table → rows here, rows at the service."""
    differing: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)
    """Table → rows here with values that the service shows no more, which were not compared; those that have any."""
    differences: list[Difference] = field(default_factory=list)
    totals: list[tuple[str, int, Decimal]] = field(default_factory=list)
    """(currency, bookings, retail amount) at the service, over all statuses."""

    @property
    def equal(self) -> bool:
        """Whether both say the same."""
        return not any(self.differing.values())


def _scope(table: Table) -> str | None:
    """Which rows of a side the fresh pull speaks for, over alias `t` and the fresh file's coverage; None = not asked."""
    covered = "select 1 from fresh.ops.coverage c where c.connection_id = t.connection_id and c.is_complete"
    noun = table.noun
    if noun in ("supplier", "products"):
        return f"exists ({covered} and c.resource = '{noun}')"
    if noun == "availability":
        return (
            f"exists ({covered} and c.resource = 'availability' and c.product_id = t.product_id "
            f"and c.option_id = t.option_id and t.local_date between c.window_start and c.window_end)"
        )
    if noun == "bookings":
        same = "b.connection_id = t.connection_id and b.booking_uuid = t.booking_uuid"
        return f"exists (select 1 from booking_scope b where {same})"
    return None


Lacking = Mapping[tuple[str, str], Sequence[str]]
"""Noun and capability → the connections whose fresh answers lacked it."""
Window = tuple[str, bool, date, date]
"""Connection, whether its days are those of booking, first and last day."""


def windows_asked(fresh: Destination) -> list[Window]:
    """The windows of bookings that complete answers of a fresh pull speak for."""
    found = fresh.query(sql("windows_asked", by_booking=by_booking("c.connection_id")))
    return [(str(name), bool(created), start, end) for name, created, start, end in found.rows]


@contextlib.contextmanager
def _attached(here: Path, **others: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Copies attached for reading, under these names."""
    with translated(here), duckdb.connect(":memory:", config={"threads": 2, "memory_limit": "512MB"}) as db:
        for name, file in {"here": here, **others}.items():
            attach_published(db, file, name)
        db.execute("set timezone = 'UTC'")
        yield db


def bookings_in(here: Path, windows: Sequence[Window]) -> list[tuple[str, str]]:
    """Connection and uuid of the live bookings of a copy that lie in one of the windows. Blocking.

    Raises:
        WarehouseError: The copy cannot be read.
    """
    with _attached(here=here) as db:
        columns = {"connection_id": "varchar", "by_booking": "boolean", "first": "date", "last": "date"}
        select, values = given(columns, windows)
        return db.execute(sql("bookings_in", windows=select, booked_on=booked_on("t")), values).fetchall()


def products_in(here: Path) -> list[tuple[str, str]]:
    """Connection and id of the live products of a copy. Blocking.

    Raises:
        WarehouseError: The copy cannot be read.
    """
    with _attached(here=here) as db:
        return db.execute(sql("products_in")).fetchall()


def bookings_unlisted(
    here: Path, by_booking: Sequence[str], travel: model.Window, *, open_dated: bool
) -> list[tuple[str, str]]:
    """Connection and uuid of the live bookings of a copy that no list has to show, and that a service still keeps. Blocking.

    They are those that travel on the days of `travel` through connections whose service lists `by_booking`, and with
    `open_dated` those without a day of travel.

    Raises:
        WarehouseError: The copy cannot be read.
    """
    with _attached(here=here) as db:
        values = [list(by_booking), travel.start, travel.end, open_dated]
        return db.execute(sql("bookings_unlisted"), values).fetchall()


def compare(here: Path, fresh: Path, tables: Sequence[Table]) -> Comparison:
    """Compare the copy `here` with the warehouse file of a fresh pull, as far as that pull went.

    Blocking.

    Raises:
        WarehouseError: One of the files cannot be read.
    """
    result = Comparison()
    with _attached(here=here, fresh=fresh) as db:
        db.execute(sql("booking_scope", speaks_for=speaks_for("t", "c", "fresh.ops")))
        lacking: dict[tuple[str, str], list[str]] = defaultdict(list)
        for connection, noun, capability in db.execute(sql("lacking")).fetchall():
            lacking[noun, capability].append(connection)
        for table in tables:
            scope = _scope(table)
            if table.schema == "core" and scope is not None:
                _compare_table(db, table, scope, lacking, result)
        result.totals = [
            (str(c), int(n), Decimal(a).quantize(Decimal(1).scaleb(-int(p))))
            for c, n, a, p in db.execute(sql("fresh_totals")).fetchall()
        ]
    return result


def _lacks(table: Table, capability: str, lacking: Lacking, alias: str) -> str:
    """Whether the fresh answers lacked a capability, so that nothing can be said about what it brings."""
    connections = lacking.get((table.noun, capability), ()) if capability else ()
    return f"{alias}.connection_id in ({', '.join(map(quoted, connections))})" if connections else "false"


def _older(table: Table) -> tuple[str, str]:
    """Over a row `t` of the copy: the list of its columns that are older, and whether it is older as a whole."""
    if table.merge is Merge.MERGE:
        return "string_split(coalesce(t.stale_columns, ''), ',')", "coalesce(t.stale_columns, '') = '*'"
    owner = table.parent or "core.products"
    same = equal(table.parent_key or table.scope, "o", "t")
    stale = f"string_split(coalesce((select any_value(o.stale_columns) from here.{owner} o where {same}), ''), ',')"
    own = f"list_transform(list_filter({stale}, lambda s: starts_with(s, '{table.name}.')), lambda s: split_part(s, '.', 2))"
    return own, f"list_contains({stale}, '{table.name}')"


def _compare_table(
    db: duckdb.DuckDBPyConnection, table: Table, scope: str, lacking: Lacking, result: Comparison
) -> None:
    key = [k for k in table.key if k != "valid_from_utc"]
    # What is kept although answers have it no more is said to be older, and cannot be compared.
    older, is_kept = _older(table)
    is_kept = f"({is_kept} or {_lacks(table, table.capability, lacking, 't')})"
    rows = f"here.{table.full_name} t where {live(table)} and {scope}"
    here = f"(select t.*, {older} as older from {rows} and not {is_kept})"
    fresh = f"(select * from fresh.{table.full_name} t where {live(table)} and {scope})"
    columns = {
        c.name: f"(list_contains(h.older, '{c.name}') or {_lacks(table, c.capability, lacking, 'h')})"
        for c in table.tracked
        if c.name not in key
    }
    other = {c: f"h.{c} is distinct from f.{c}" for c in columns}
    named = {c: f"case when {other[c]} and not {kept} then '{c}' end" for c, kept in columns.items()}
    kept = " or ".join(f"({other[c]} and {kept})" for c, kept in columns.items()) or "false"
    text = " || ' ' || ".join(f"coalesce(h.{k}, f.{k})::varchar" for k in key)
    parts = {"text": text, "first": key[0], "here": here, "fresh": fresh, "same": equal(key, "h", "f")}
    differs = " or ".join(other.values()) or "false"
    db.execute(sql("found", differs=differs, named=", ".join(named.values()), kept=kept, **parts))
    name = table.full_name
    result.rows[name] = (run(db, f"select count(*) from {here}"), run(db, f"select count(*) from {fresh}"))
    result.differing[name] = run(db, f"select count(*) from found where {_DIFFERS}")
    kept_rows = f"select (select count(*) from found where is_kept) + (select count(*) from {rows} and {is_kept})"
    if number := run(db, kept_rows):
        result.kept[name] = number
    shown = f"select key, not_here, not_there, names from found where {_DIFFERS} order by key limit {_SHOWN}"
    for row_key, not_here, not_there, names in db.execute(shown).fetchall():
        kind = "missing here" if not_here else "not at the service" if not_there else "differs"
        result.differences.append(Difference(name, row_key, kind, tuple(names) if kind == "differs" else ()))
