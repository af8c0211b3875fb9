"""Both sides of a comparison, read.

Here are this copy's rows, what it knows beyond them, and how sure it is of them; there is the file, database, connection or
frame that the pipeline names.
"""

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.destinations.reading import Reader
from octo_sync.errors import ConfigError, LedgerError
from octo_sync.flows.reconcile.page import Remembered
from octo_sync.journal import Journal
from octo_sync.model import Subject, SubjectKind, Window
from octo_sync.pipeline import Pipeline, ReconcileTable
from octo_sync.reconciliation import ledgers
from octo_sync.reconciliation.ledgers import Ledger, Wanted
from octo_sync.reconciliation.model import Item, Kind, Rules, Side
from octo_sync.reconciliation.sides import kind_of

_PARAMETER = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|(?<![:\w]):(from|to)\b", re.DOTALL)
_QUOTED = re.compile(rb'"([^"\\]{1,100})"')
"""Texts in a body: a notification holds the uuid of what it is about, at a place that depends on its envelope."""
_MOST = 20
"""Versions and deliveries of one booking that are worth showing."""
_COVERAGE = (
    "marts.coverage where resource = 'bookings' "
    "and connection_id in (select connection_id from core.connections where is_active)"
)
"""A connection that the pipeline has no more is never verified again."""
_BOOKINGS = {
    column: (
        "select b.connection_id, b.booking_uuid, b.supplier_reference, b.reseller_reference, b.status, b.is_test, "  # noqa: S608 - one of three names
        "b.is_deleted, b.local_date, "
        "cast(b.utc_created_at at time zone coalesce(c.business_time_zone, 'UTC') as date) as booking_date "
        "from core.bookings b left join core.connections c on c.connection_id = b.connection_id "
        f"where b.{column} in (select unnest(cast($wanted as text[])))"
    )
    for column in ("booking_uuid", "supplier_reference", "reseller_reference")
}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_OTHER_CONNECTION = (
    "select * from marts.fct_bookings where connection_id = $connection and was_sold and {day} between $from and $to"
)


# -- here --------------------------------------------------------------------------------------------------------------


def select(reader: Reader, sql: str, values: Mapping[str, Any]) -> pa.Table:
    """Rows of a statement in which `:from` and `:to` are days."""
    used: dict[str, Any] = {}

    def parameter(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0]
        used[found[1]] = values[found[1]]
        return f"${found[1]}"

    text = _PARAMETER.sub(parameter, sql)
    return reader.batches(text, used).read_all()


@dataclass
class Facts:
    """See `reconciliation.items.Facts`: answered by the copy that readers have, and by the journal."""

    reader: Reader
    journal: Journal | None
    window: Window
    other: str = ""
    """The connection that is the other side: that a booking is there is nothing that is known here."""
    day: str = "travel_date"
    """What the window is about. Bookings are verified by the month of their travel, so of another day it is not known."""

    def bookings(self, column: str, values: Collection[str]) -> Sequence[Mapping[str, Any]]:
        """Bookings of the copy, wherever they travel, whose column has one of the values."""
        if not values:
            return ()
        found = self.reader.query(_BOOKINGS[column], {"wanted": list(values)}).records()
        return [booking for booking in found if booking["connection_id"] != self.other]

    def versions(self, uuids: Collection[str]) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """What each booking was, oldest first."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        if uuids:
            rows = self.reader.query(
                "select * from core.booking_history where booking_uuid in (select unnest(cast($wanted as text[]))) "
                "order by connection_id, booking_uuid, version_no",
                {"wanted": list(uuids)},
            )
            for version in rows.records():
                found.setdefault(str(version["booking_uuid"]), []).append(version)
        return found

    def owed(self, uuids: Collection[str]) -> Collection[str]:
        """Those of the bookings about which something was told and is not landed."""
        if self.journal is None or not uuids:
            return ()
        connections = {backlog.connection for backlog in self.journal.subjects.backlog()}
        wanted = [Subject(c, SubjectKind.BOOKING, (uuid,)) for c in connections for uuid in uuids]
        return {subject.parts[0] for subject in self.journal.subjects.dirty_among(wanted)}

    def is_covered(self, day: date) -> bool | None:
        """Whether the bookings of the day's month were answered wholly; None where it was never asked for."""
        return self.months.get(f"{day:%Y-%m}")

    @cached_property
    def months(self) -> Mapping[str, bool]:
        """Per month that was ever asked for: whether the bookings of every connection of the pipeline were answered wholly."""
        if self.day != "travel_date":
            return {}
        rows = self.reader.query(
            f"select travel_month, min(case when is_complete then 1 else 0 end) from {_COVERAGE} group by travel_month"  # noqa: S608 - a text of ours
        )
        found = {month: bool(complete) for month, complete in rows.rows}
        # A list by day of booking has no month of travel, and knows none wholly.
        knows = found.pop(None, None) is None
        return {f"{month:%Y-%m}": complete and knows for month, complete in found.items()}

    def seen(self) -> datetime | None:
        """The oldest moment at which a month of the window was verified; None where none was.

        What was booked in a window travels in it or later.
        """
        last = self.window.end if self.day == "travel_date" else date.max
        rows = self.reader.query(
            f"select min(verified_at_utc) from {_COVERAGE} and coalesce(travel_month, $first) between $first and $last",  # noqa: S608 - the same
            {"first": self.window.start.replace(day=1), "last": last},
        )
        return rows.rows[0][0] if rows.rows else None


def sides(reader: Reader, facts: Facts, here: pa.Table, ledger: Ledger) -> tuple[Side, Side]:
    """How large, how old and how complete both sides are."""
    seen = facts.seen()
    covered = [facts.months.get(month) for month in facts.window.months()]
    complete = None if not facts.months else all(covered)
    ours = Side(origin=reader.name, rows=here.num_rows, as_of=seen, verified_from=seen, complete=complete)
    return ours, Side(origin=ledger.origin, rows=ledger.rows.num_rows, as_of=ledger.as_of, notes=ledger.notes)


def remembered(reader: Reader, journal: Journal | None, uuids: Collection[str]) -> Remembered:
    """What the copy remembers of an item's booking, one of `uuids`: its versions and the last notifications about it."""

    def detail(item: Item) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        if item.booking_uuid is None:
            return {}
        rows = reader.query(
            "select valid_from_utc, valid_to_utc, status, local_date, retail_amount, net_amount, currency, pax_count, "
            "changed_fields, source from core.booking_history where booking_uuid = $uuid and connection_id = $connection "
            "order by version_no desc",
            {"uuid": item.booking_uuid, "connection": item.connection},
            limit=_MOST,
        )
        return {"Versions of the booking here": rows.records(), "Notifications": list(told[item.booking_uuid.encode()])}

    # Deliveries may be millions.
    told: dict[bytes, deque[Mapping[str, Any]]] = {uuid.encode(): deque(maxlen=_MOST) for uuid in uuids}
    for each in journal.inbox.all_deliveries() if journal is not None else ():
        for text in told.keys() & _QUOTED.findall(each.body):
            told[text].append({"received_at": each.received_at, "type": each.type, "state": each.reading})
    return detail


# -- there -------------------------------------------------------------------------------------------------------------


def read_there(
    pipeline: Pipeline,
    table: ReconcileTable,
    rules: Rules,
    wanted: Sequence[Wanted],
    reader: Reader,
    environ: Mapping[str, str],
    given: pa.Table | None,
) -> Ledger:
    """Its rows, from `given` or from where the table says; `wanted` are the columns that count.

    Raises:
        ConfigError: The environment lacks what an address needs.
        LedgerError: It cannot be read, or a file or database has no row. (Another connection, or a frame, may have none.)
    """
    source = table.there
    form = ledgers.Format(**{each.name: getattr(source.format, each.name) for each in fields(ledgers.Format)})
    days = {"from": rules.window.start, "to": rules.window.end}
    if given is not None:
        return ledgers.of_table(given, "the rows that were handed in", wanted, form)
    if source.connection:
        sold = _OTHER_CONNECTION.format(day=table.day)
        rows = reader.batches(sold, {"connection": source.connection, **days}).read_all()
        return ledgers.of_table(rows, f"connection {source.connection}", wanted, form)
    if source.dsn:
        dsn = _filled(source.dsn, environ)
        ledger = ledgers.read_sql(dsn, source.sql, days, wanted, form, directory=pipeline.directory)
        return _with_rows(ledger, f"the query found no row for {rules.window}", "Look at sql, or ask for other days")
    by_ending = {".csv": ledgers.read_csv, ".xlsx": ledgers.read_xlsx, ".parquet": ledgers.read_parquet}
    read = by_ending[Path(source.file).suffix.lower()]
    ledger = read(_files(pipeline.directory, source.file, rules.name), wanted, form)
    return _with_rows(ledger, "there is no row below the header", "Export it again, or set header_row")


def wanted(rules: Rules, types: Mapping[str, Kind], here: pa.Schema) -> list[Wanted]:
    """The columns there that are compared or matched by, and what each is."""
    found = {each.there: Wanted(each.there, types[each.here]) for each in rules.fields}
    if rules.changed_there:
        found.setdefault(rules.changed_there, Wanted(rules.changed_there, "instant"))
    for key in rules.keys:
        for ours, name in zip(key.here, key.there, strict=True):
            # References are texts, whatever a spreadsheet takes them for; of columns taken together some are days or amounts.
            found.setdefault(name, Wanted(name, kind_of(rules, here, ours) if len(key.here) > 1 else "text"))
    return list(found.values())


def _with_rows(ledger: Ledger, what: str, advice: str) -> Ledger:
    """A ledger that is empty is an export that failed: compared, it would make all of this copy a difference."""
    if not ledger.rows.num_rows:
        raise LedgerError(f"{ledger.origin}: {what}, so nothing was compared. {advice}.")
    return ledger


def _files(directory: Path, pattern: str, name: str) -> list[Path]:
    path = Path(pattern).expanduser()
    base, below = (Path(path.anchor), path.relative_to(path.anchor)) if path.is_absolute() else (directory, path)
    found = sorted(each for each in base.glob(str(below)) if each.is_file())
    if not found:
        raise LedgerError(
            f"reconcile.{name}.there: no file is called {base.resolve() / below}. Put the export there, or correct "
            "there.file in the pipeline file."
        )
    return found


def _filled(dsn: str, environ: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] not in environ:
            raise ConfigError(f"The environment has no {found[1]}, which the address of a ledger's database names.")
        return environ[found[1]]

    return _VARIABLE.sub(value, dsn)
