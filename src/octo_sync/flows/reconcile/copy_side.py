"""This copy's side of a comparison: the rows, what the copy knows beyond them, and how sure it is of them."""

import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.destinations.reading import Reader
from octo_sync.flows.reconcile.page import Remembered
from octo_sync.journal import Journal
from octo_sync.model import Subject, SubjectKind, Window
from octo_sync.reconciliation.ledgers import Ledger
from octo_sync.reconciliation.model import Item, Side

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


@dataclass(slots=True)
class Facts:
    """See `reconciliation.items.Facts`: answered by the copy that readers have, and by the journal."""

    reader: Reader
    journal: Journal | None
    window: Window
    other: str = ""
    """The connection that is the other side: that a booking is there is nothing that is known here."""
    day: str = "travel_date"
    """What the window is about. Bookings are verified by the month of their travel, so of another day it is not known."""
    _months: dict[str, bool] | None = field(default=None)

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

    @property
    def months(self) -> Mapping[str, bool]:
        """Per month that was ever asked for: whether the bookings of every connection of the pipeline were answered wholly."""
        if self.day != "travel_date":
            return {}
        if self._months is None:
            rows = self.reader.query(
                f"select travel_month, min(case when is_complete then 1 else 0 end) from {_COVERAGE} group by travel_month"  # noqa: S608 - a text of ours
            )
            found = {month: bool(complete) for month, complete in rows.rows}
            # A list by day of booking has no month of travel, and knows none wholly.
            knows = found.pop(None, None) is None
            self._months = {f"{month:%Y-%m}": complete and knows for month, complete in found.items()}
        return self._months

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
