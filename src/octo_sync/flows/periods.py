"""Closing a month of travel: its figures are kept as they are, and what changes later is an adjustment with a cause."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, astuple, replace
from datetime import date, datetime
from typing import Any

from octo_sync.destinations.base import Rows
from octo_sync.destinations.reading import Reader
from octo_sync.errors import ConfigError, ReconcileError
from octo_sync.flows.ports import Ports
from octo_sync.flows.wording import plural
from octo_sync.journal import ClosedBooking, ClosedTotal, Closing, Journal
from octo_sync.model import SubjectKind, Window

_PERIOD = re.compile(r"(?:19|20|21)\d\d-(?:0[1-9]|1[0-2])", re.ASCII)
CAUSES = {
    "cancelled": "cancelled",
    "deleted": "deleted at the service",
    "gone": "no longer in this copy",
    "moved_out": "moved to another month",
    "not_sold": "no longer sold",
    "booked_later": "booked after the closing",
    "moved_in": "moved into the month",
    "sold_later": "sold after the closing",
    "learnt_later": "learnt after the closing",
    "currency": "currency changed",
    "price": "price changed",
    "net_price": "net price changed",
    "guests": "number of guests changed",
}
"""Of an adjustment, in words."""
TOTALS = {"tax": "taxes", "refund": "refunds due", "deferred": "deferred at the month's end"}
"""What is kept beside bookings, in words."""
_SOLD = (
    "select connection_id, booking_uuid, currency, retail_amount, net_amount, pax_count from marts.fct_bookings "
    "where is_sold and travel_month = $period order by connection_id, booking_uuid"
)
_TOTALS = (
    "select kind, coalesce(tax_name, '') as name, connection_id, coalesce(currency, '') as currency, bookings_now as bookings, "
    "retail_now as retail_amount, net_now as net_amount from marts.month_totals where period = $period and bookings_now > 0 "
    "order by kind, name, connection_id, currency"
)
_KNOWN = (
    "select c.connection_id, c.channel_name, c.is_active, c.as_of_date, coalesce(m.is_complete, false) as is_complete "
    "from marts.dim_channel c "
    "left join marts.booking_months m on m.connection_id = c.connection_id and m.travel_month = $period "
    "where c.is_active or c.connection_id in "
    "(select connection_id from marts.fct_bookings where is_sold and travel_month = $period) order by c.channel_name"
)
_ELSEWHERE = "select connection_id, booking_uuid from marts.fct_bookings where travel_month <> $period"
_MIRRORED = "select period, closed_at_utc, was_complete, digest, has_totals from ops.closed_periods"
_MIRRORED_PERIODS = "select period from ops.closed_periods"
_MIRRORED_BOOKINGS = (
    "select period, connection_id, booking_uuid, currency, retail_amount, net_amount, pax_count from ops.closed_bookings "
    "order by connection_id, booking_uuid"
)
_MIRRORED_TOTALS = (
    "select period, kind, name, connection_id, currency, bookings, retail_amount, net_amount from ops.closed_totals "
    "order by kind, name, connection_id, currency"
)
_OPEN = "select count(*) from marts.recon_open where day between $first and $last"
_COMPARED = "select window_start, window_end, ended_at_utc, verdict from ops.recon_runs"


def close(reader: Reader, journal: Journal, period: str, now: datetime, *, incomplete: bool) -> Closing | None:
    """Keep what the month has in the published copy; None where it is closed already, which changes nothing.

    Raises:
        ConfigError: `period` is no month.
        ReconcileError: The month is not over, or not all its bookings are known, or some are pending, and `incomplete` does
            not allow it.
    """
    if not _PERIOD.fullmatch(period):
        raise ConfigError(f"{period[:40]!r} is no month of travel, such as 2026-10.")
    if period in journal.closings.periods():
        return None
    first, last = astuple(Window.month(period))
    channels = reader.query(_KNOWN, {"period": first}).records()
    ongoing = [row["channel_name"] for row in channels if row["as_of_date"] is None or row["as_of_date"] <= last]
    unknown = [row["channel_name"] for row in channels if not row["is_complete"]]
    if ongoing or not channels:
        if last >= now.date():
            raise ReconcileError(f"{period} ends on {last}; close it after that day, when octo-sync sync has run.")
        raise ReconcileError(
            f"{period} is not over in the copy{_of(ongoing)}: it was last verified before the month's end. Run octo-sync sync."
        )
    if unknown and not incomplete:
        raise ReconcileError(
            f"Not all bookings that travel in {period} are known{_of(unknown)}, so its figures may be too small. Pull the "
            f"month with octo-sync sync --travel {first}..{last}, or close it as it is with --incomplete."
        )
    pending = _pending(
        reader, journal, period, {row["connection_id"]: row["channel_name"] for row in channels if row["is_active"]}
    )
    if pending and not incomplete:
        raise ReconcileError(
            f"Bookings of {period} are pending{_of(pending)}, so its figures may not be the newest. Run octo-sync sync first, "
            f"or close it as it is with --incomplete."
        )
    rows = reader.query(_SOLD, {"period": first}).records()
    bookings = tuple(ClosedBooking(**row) for row in rows)
    totals = tuple(ClosedTotal(**row) for row in reader.query(_TOTALS, {"period": first}).records())
    closing = Closing(
        period=period, closed_at=now, is_complete=not (unknown or pending), bookings=bookings, totals=totals
    )
    closing = replace(closing, digest=closing.computed_digest())
    return closing if journal.closings.add(closing) else None


def _pending(reader: Reader, journal: Journal, period: str, channels: Mapping[str, str]) -> list[str]:
    """The channels of which the month's list, or a booking that the copy does not have in another month, is pending.

    `channels`: connection → name, those that are asked.
    """
    kinds = (SubjectKind.BOOKINGS, SubjectKind.BOOKING)
    waiting = [each for each in journal.subjects.backlog() if each.kind in kinds and each.connection in channels]
    subjects = [
        row.subject for each in waiting for row in journal.subjects.rows(each.connection, each.kind) if row.dirty
    ]
    found = {subject.connection for subject in subjects if subject.travel_month == period}
    bookings = [subject for subject in subjects if subject.kind is SubjectKind.BOOKING]
    if bookings:
        elsewhere = {*reader.query(_ELSEWHERE, {"period": Window.month(period).start}).rows}
        found |= {each.connection for each in bookings if (each.connection, *each.parts) not in elsewhere}
    return sorted(channels[name] for name in found)


def still_open(reader: Reader, period: str) -> str:
    """What comparisons with other systems say against closing a month, as page Finance does; '' where nothing."""
    first, last = astuple(Window.month(period))
    ((differences,),) = reader.query(_OPEN, {"first": first, "last": last}).rows
    runs = reader.query(_COMPARED).records()
    if differences:
        which = "it" if differences == 1 else "them"
        found = plural(differences, "open difference")
        return f"{period} has {found} with other systems; octo-sync reconcile names {which}."
    looked = compared_at(runs, first, last)
    return f"No comparison with another system looked at the whole of {period}." if runs and not looked else ""


def compared_at(runs: Iterable[Mapping[str, Any]], first: date, last: date) -> datetime | None:
    """When the end of these days was last compared; None where no comparison that worked looked at the whole of them."""
    worked = [run for run in runs if run["verdict"] != "failed"]
    is_whole = any(run["window_start"] <= first for run in worked)
    looked = [run["ended_at_utc"] for run in worked if run["window_start"] <= last <= run["window_end"]]
    return max(looked) if is_whole and looked else None


def _of(channels: list[str]) -> str:
    return f" (channel {', '.join(channels)})" if channels else ""


def mirrored(query: Callable[[str], Rows]) -> list[Closing]:
    """The closed months as `ops` of a warehouse or copy has them, which anybody may have changed."""
    bookings, totals = defaultdict[str, list[ClosedBooking]](list), defaultdict[str, list[ClosedTotal]](list)
    for period, *values in query(_MIRRORED_BOOKINGS).rows:
        bookings[period].append(ClosedBooking(*values))
    for period, *values in query(_MIRRORED_TOTALS).rows:
        totals[period].append(ClosedTotal(*values))
    return [
        Closing(
            period=period,
            closed_at=closed_at,
            is_complete=is_complete,
            bookings=tuple(bookings[period]),
            totals=tuple(totals[period]) if has_totals else None,
            digest=digest,
        )
        for period, closed_at, is_complete, digest, has_totals in query(_MIRRORED).rows
    ]


def take_back(query: Callable[[str], Rows], journal: Journal) -> None:
    """Keep the closed months again that `ops` has and the journal lost, where their digest fits their figures."""
    known = journal.closings.periods()
    if {period for (period,) in query(_MIRRORED_PERIODS).rows} <= known:
        return
    for closing in mirrored(query):
        if closing.period not in known and not closing.is_altered:
            journal.closings.add(closing)


def mirror_closings(ports: Ports) -> None:
    """Copy closed months into `ops`, those that are not there yet; a month's row comes after its bookings and totals.

    A journal that is new, because the former was lost, first takes back what is there.

    Raises:
        JournalError, WarehouseError: One could not be read or written.
    """
    journal, warehouse = ports.journal, ports.warehouse
    take_back(warehouse.query, journal)
    there = {period for (period,) in warehouse.query(_MIRRORED_PERIODS).rows}
    if journal.closings.periods() <= there:
        return
    for closing in journal.closings.all():
        if closing.period not in there:
            period = {"period": closing.period}
            warehouse.write_log("ops.closed_bookings", [period | asdict(each) for each in closing.bookings])
            warehouse.write_log("ops.closed_totals", [period | asdict(each) for each in closing.totals or ()])
            row = {
                "closed_at_utc": closing.closed_at,
                "was_complete": closing.is_complete,
                "digest": closing.digest,
                "has_totals": closing.totals is not None,
            }
            warehouse.write_log("ops.closed_periods", [period | row])
