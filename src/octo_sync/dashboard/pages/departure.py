"""A departure: what the service offers, and every booking of it. Reached from Today."""

from typing import Any

from octo_sync.dashboard.filters import day_of
from octo_sync.dashboard.links import booking_page, booking_text, free_text, start_text, status_text
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Block, Column, Filters, Link, Page, Section, View, listed
from octo_sync.flows import wording


def build(source: Source, filters: Filters) -> View:
    """The page; without a key it says where to choose a departure."""
    key, day = filters.more.get("key", ""), day_of("day", filters.more.get("day", ""))
    if not key or day is None:
        return View("Departure", "Choose a departure on the page Today.", [])
    offered = source.rows("departure", key=key, day=day)
    bookings = source.rows("departure_bookings", key=key, day=day)
    about = offered[0] if offered else bookings[0] if bookings else None
    if about is None:
        return View("Departure", "This copy has no such departure and no booking of it.", [])
    at = about["local_start_at"]
    starts = start_text(at, wording.day) if at else wording.day(day)
    return View(
        f"{about['product_name']}, {starts}",
        about["option_name"],
        [Section("", [Block("facts.html.j2", {"facts": _facts(offered)})]), _bookings(bookings)],
        filters,
    )


def _facts(offered: list[dict[str, Any]]) -> list[tuple[str, object]]:
    back = ("Day sheet", Link("Today", "today"))
    if not offered:
        return [back, ("Departure", "not known: the service does not offer it, or not yet to this copy")]
    (row,) = offered
    verified = wording.instant(row["verified_at_utc"]) if row["verified_at_utc"] else "never"
    return [
        back,
        ("State", status_text(row["status"])),
        ("Free places", free_text(row["status"], row["vacancies"], row["capacity"])),
        ("Time zone", row["time_zone"] or wording.UNKNOWN),
        ("Departure verified", f"{verified}{'' if row['is_covered'] else ', incompletely'}"),
    ]


def _bookings(rows: list[dict[str, Any]]) -> Section:
    sold = [row for row in rows if row["is_sold"]]
    guests = None if any(row["pax_count"] is None for row in sold) else sum(row["pax_count"] for row in sold)
    table = listed(
        "Bookings of this departure",
        rows,
        Column("Booking", "text", booking_text, href=booking_page),
        Column("Status", "text", lambda row: status_text(row["status"])),
        Column("Guests", "number", "pax_count", none="unknown"),
        Column("Tickets", "text", "tickets"),
        Column("Price", "money", "retail_amount"),
        Column("Channel", "text", "channel_name"),
        Column("Reseller's reference", "text", "reseller_reference"),
        empty="This copy has no booking of this departure.",
    )
    note = (
        f"{wording.plural(len(sold), 'sold booking')} with {wording.count(guests)} guests; all others are below them."
    )
    return Section("Bookings", [table], note if rows else "")


PAGE = Page("departure", "Departure", 16, build, fields=frozenset({"key", "day"}), under="today")
