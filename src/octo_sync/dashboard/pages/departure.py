"""A departure: what the service offers, and every booking of it. Reached from Today."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from octo_sync.dashboard.columns import BOOKING, STATUS
from octo_sync.dashboard.filters import day_of
from octo_sync.dashboard.links import ended_text, free_text, has_left, start_text, status_text, venue_time
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Block, Column, Filters, Link, Page, Section, View, listed
from octo_sync.flows import wording

_Rows = Sequence[dict[str, Any]]


def build(source: Source, filters: Filters) -> View:
    """The page; without a key it says where to choose a departure."""
    key, day = filters.more.get("key", ""), day_of("day", filters.more.get("day", ""))
    if not key or day is None:
        return View("Departure", "Choose a departure on the page Today.", [])
    now = source.now().replace(second=0, microsecond=0)
    offered, bookings = (
        source.rows("departure", key=key, day=day, now=now),
        source.rows("departure_bookings", key=key, day=day),
    )
    about = offered[0] if offered else bookings[0] if bookings else None
    if about is None:
        return View("Departure", "This copy has no such departure and no booking of it.", [])
    starts = start_text(about, wording.day) if about["local_start_at"] else wording.day(day)
    return View(
        f"{about['product_name']}, {starts}",
        about["option_name"],
        [
            Section("", [Block("facts.html.j2", {"facts": _facts(offered, now)})]),
            *_bookings(bookings, source.rows("departure_guests", key=key, day=day, now=now), now),
        ],
        filters,
    )


def _facts(offered: list[dict[str, Any]], now: datetime) -> list[tuple[str, object]]:
    back = ("Day sheet", Link("Today", "today"))
    if not offered:
        return [back, ("Departure", "not known: the service does not offer it, or not yet to this copy")]
    (row,) = offered
    verified = wording.instant(row["verified_at_utc"]) if row["verified_at_utc"] else "never"
    return [
        back,
        ("State", "departed" if has_left(row, now) else ended_text(row) or _state(row)),
        ("Places", _places(row, is_sold=not has_left(row, now) and not ended_text(row))),
        ("Time zone", row["time_zone"] or wording.UNKNOWN),
        ("Departure verified", f"{verified}{'' if row['is_covered'] else ', incompletely'}"),
    ]


def _state(row: dict[str, Any]) -> str:
    if row["sold_out_at_utc"] is None:
        return status_text(row["status"])
    least = "" if row["was_on_sale"] else " at least"
    return f"sold out since{least} {wording.instant(row['sold_out_at_utc'])}"


def _places(row: dict[str, Any], *, is_sold: bool) -> str:
    """`38 of 40 taken, 2 free`; of one that is sold no more nothing is free."""
    if row["taken"] is None:
        return free_text(row["status"], row["vacancies"], row["capacity"])
    free = f", {row['vacancies']:,} free" if row["vacancies"] and is_sold else ""
    return f"{row['taken']:,} of {row['capacity']:,} taken{free}"


def _bookings(rows: _Rows, tickets: _Rows, now: datetime) -> list[Section]:
    """Those sold and on hold, which are all that is printed, and the others."""
    sold = [row for row in rows if row["is_sold"]]
    held = [row for row in rows if not row["is_sold"] and _is_held(row, now)]
    others = [row for row in rows if row not in sold and row not in held]
    cancelled = sum(row["status"] == "CANCELLED" for row in others)
    counts = {"sold": len(sold), "on hold": len(held), "cancelled": cancelled, "other": len(others) - cancelled}
    said = [", ".join(f"{n:,} {kind}" for kind, n in counts.items() if n or kind != "other")]
    for those, is_sold, words in ((sold, True, ""), (held, False, " on hold")):
        guests = [row["pax_count"] for row in those]
        of = "".join(f": {row['tickets']}" for row in tickets if row["is_sold"] is is_sold)
        if those:
            said.append(
                (wording.UNKNOWN + " guests" if None in guests else wording.plural(sum(guests), "guest")) + words + of
            )
    here = listed(
        "Bookings of this departure", [*sold, *held], *_columns(), empty="This copy has no booking of this departure."
    )
    sections = [Section("Bookings", [here], ". ".join(said) if rows else "", paper="sheet")]
    if others:
        sections.append(
            Section("Other bookings", [listed("Other bookings of this departure", others, *_columns())], paper="none")
        )
    return sections


def _is_held(row: dict[str, Any], now: datetime) -> bool:
    lapses = row["lapses_at_utc"]
    return row["status"] == "PENDING" or (row["status"] == "ON_HOLD" and (lapses is None or lapses > now))


def _columns() -> list[Column]:
    return [
        BOOKING,
        STATUS,
        Column("Guests", "number", "pax_count", none="unknown"),
        Column("Tickets", "text", "tickets"),
        Column("Codes", "text", "codes", none=""),
        Column("Extras", "text", "extras", none=""),
        Column("Hold lapses", "text", venue_time("lapses_at_utc"), none=""),
        Column("Used", "text", venue_time("utc_redeemed_at"), none=""),
        Column("Price", "money", "retail_amount"),
        Column("Channel", "text", "channel_name"),
        Column("Reseller's reference", "text", "reseller_reference"),
    ]


PAGE = Page("departure", "Departure", 16, build, fields=frozenset({"key", "day"}), under="today")
