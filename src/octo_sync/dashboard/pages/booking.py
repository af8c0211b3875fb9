"""A booking: all that the copy knows of one, by its uuid or a reference. No name of a person is in the copy."""

from collections.abc import Mapping, Sequence
from typing import Any

from octo_sync.dashboard.columns import BOOKING, STATUS, TRAVELS
from octo_sync.dashboard.differences import decided, reason
from octo_sync.dashboard.links import (
    booking_text,
    departure_page,
    difference_page,
    fields_text,
    start_text,
    status_text,
    venue_time,
)
from octo_sync.dashboard.pages.reconcile import BOTH_VALUES, BUCKET, FIELD, difference
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Block, Column, Filters, Item, Link, Page, Section, View, listed
from octo_sync.errors import OctoSyncError
from octo_sync.flows import wording

_Row = Mapping[str, Any]
_LEAD = "Find a booking by its uuid, its id, the supplier's or reseller's reference, or the code of a ticket."
_MOST = 50


def build(source: Source, filters: Filters) -> View:
    """The page: a booking, several that go by what was asked for, or the form alone."""
    find = filters.more.get("find", "").strip()
    now = source.now().replace(second=0, microsecond=0)
    found = source.rows("booking_found", find=find, now=now) if find else []
    form = Section("", [Block("find.html.j2", {"text": "" if len(found) == 1 else find})])
    if not find:
        return View("Bookings", _LEAD, [form], filters)
    if len(found) != 1:
        return View("Bookings", _LEAD, [form, _several(found)], filters)
    asked = {"connection": found[0]["connection_id"], "booking": found[0]["booking_uuid"]}
    (row,) = source.rows("booking", **asked)
    parts = source.rows("booking_parts", **asked)
    return View(
        f"Booking {booking_text(row)}",
        f"{status_text(row['status'])}, {row['product_name']}"
        + (", a test booking" if row["is_test"] else "")
        + (", deleted at the service" if row["is_deleted"] else ""),
        [
            form,
            Section("", [Block("facts.html.j2", {"facts": _facts(row)})]),
            Section("Tickets", [_tickets(source.rows("booking_tickets", **asked))]),
            Section("Extras and taxes", [_parts(parts)]),
            Section(
                "History",
                [_versions(source.rows("booking_versions", **asked))],
                "Every version that this copy kept, the latest first, and what made it look.",
            ),
            Section("Requests", [_answers(source.rows("booking_answers", **asked))]),
            *_notifications(source, asked),
            Section(
                "Differences",
                [_differences(source, decided(source, source.rows("booking_differences", **asked))[0])],
                id="differences",
            ),
        ],
        filters,
    )


def _several(found: Sequence[_Row]) -> Section:
    total = found[0]["found_count"] if found else 0
    table = listed(
        "Bookings that go by this",
        found,
        BOOKING,
        STATUS,
        TRAVELS,
        Column("Product", "text", "product_name"),
        Column("Option", "text", "option_name"),
        Column("Guests", "number", "pax_count", none="unknown"),
        Column("Channel", "text", "channel_name"),
        Column("Reseller's reference", "text", "reseller_reference"),
        empty="This copy has no such booking. Write all of a reference, code or uuid; capitals, blanks, hyphens are ignored.",
        more=f"{len(found)} of {total:,} are shown." if total > len(found) else "",
    )
    return Section("Found", [table])


def _facts(row: _Row) -> list[tuple[str, object]]:
    def at(name: str) -> str | None:
        """By the venue's clock, which is named, where its zone is known."""
        told = venue_time(name)(row)
        return told if not told or told.endswith(" UTC") else f"{told} {row['time_zone']}"

    def amount(name: str) -> str:
        return wording.money_text(row[name], row["currency"])

    travels = start_text(row, wording.day) if row["local_start_at"] else row["travel_date"] or "open"
    page = departure_page(row)
    said: list[tuple[str, object]] = [
        ("Status", status_text(row["status"])),
        ("Travels", Link(f"{travels}", page) if page else travels),
        ("Product", row["product_name"]),
        ("Option", row["option_name"]),
        ("Channel", row["channel_name"]),
        ("Guests", wording.count(row["pax_count"])),
        ("Price", amount("retail_amount")),
        ("Net price", amount("net_amount")),
        ("Taxes in the price", amount("tax_amount")),
        ("Price before discounts", amount("original_amount")),
        ("Made", at("utc_created_at")),
        ("Confirmed", at("utc_confirmed_at")),
        ("Hold lapses" if row["status"] == "ON_HOLD" else "Hold ended", at("utc_expires_at")),
        ("Used", at("utc_redeemed_at")),
        ("Cancelled", at("utc_cancelled_at")),
        ("Reason of the cancellation", row["cancellation_reason"]),
        ("Refund", row["cancellation_refund"] and status_text(row["cancellation_refund"])),
        ("Supplier's reference", row["supplier_reference"]),
        ("Reseller's reference", row["reseller_reference"]),
        ("Uuid", row["booking_uuid"]),
        ("Booking id", row["booking_id"] if row["booking_id"] != row["booking_uuid"] else ""),
        ("Deleted at the service", wording.instant(row["deleted_at_utc"]) if row["deleted_at_utc"] else ""),
        ("Last verified", _verified(row)),
    ]
    return [(label, value) for label, value in said if value]


def _verified(row: _Row) -> str:
    if row["verified_at_utc"] is None:
        return "never"
    by = f", by {row['verified_by']}" if row["verified_by"] else ""
    return f"{wording.instant(row['verified_at_utc'])}{by}{', incompletely' if row['is_covered'] is False else ''}"


def _tickets(rows: Sequence[_Row]) -> Item:
    return listed(
        "Tickets of this booking",
        rows,
        Column("Ticket", "text", "unit_name", none="unknown"),
        Column("For", "text", lambda row: status_text(row["unit_type"])),
        Column("Status", "text", lambda row: "deleted" if row["is_deleted"] else status_text(row["status"])),
        Column("Guests", "number", "pax_count", none="unknown"),
        Column("Price", "money", "retail_amount"),
        Column("Net price", "money", "net_amount"),
        Column("Used", "text", venue_time("utc_redeemed_at")),
        Column("Code", "text", "supplier_reference"),
        Column("Reseller's code", "text", "reseller_reference"),
        empty="The service told of no ticket.",
    )


def _parts(rows: Sequence[_Row]) -> Item:
    return listed(
        "Extras and taxes of this booking",
        rows,
        Column("Name", "text", "part_name"),
        Column("Kind", "text", "part"),
        Column("Of", "text", "bought_with"),
        Column("Quantity", "number", "quantity", none=""),
        Column("Price", "money", "retail_amount"),
        Column("Net price", "money", "net_amount"),
        empty="The service told of no extra and no tax.",
    )


def _versions(rows: Sequence[_Row]) -> Item:
    return listed(
        "Versions of this booking",
        rows,
        Column("Version", "text", "version_no"),
        Column("Since", "instant", "valid_from_utc"),
        Column("Until", "instant", "valid_to_utc", none="now"),
        Column("Learnt by", "text", "source"),
        Column("What changed", "text", _changed),
        STATUS,
        Column("Travels", "date", "travel_date", none="open"),
        Column("Product", "text", "product_name"),
        Column("Guests", "number", "pax_count", none="unknown"),
        Column("Price", "money", "retail_amount"),
        Column("Net price", "money", "net_amount"),
        empty="No version was kept.",
    )


def _answers(rows: Sequence[_Row]) -> Item:
    def what(row: _Row) -> str:
        if row["resource"] != "bookings":
            return "this booking" if row["resource"] == "booking" else "the list that showed it"
        return f"the list of {wording.day(row['window_start'])} to {wording.day(row['window_end'])}"

    return listed(
        "The last answers of the service that speak for this booking",
        rows,
        Column("Asked for", "text", what),
        Column("When", "instant", "verified_at_utc"),
        Column("Why", "text", "source"),
        Column("All of it stored", "yes", "is_complete"),
        Column("Run", "text", "run_id"),
        empty="No answer on record speaks for it.",
    )


def _notifications(source: Source, asked: Mapping[str, str]) -> list[Section]:
    """What webhooks said of it; nothing where there is no journal."""
    if source.deliveries is None:
        return []
    try:
        told = source.deliveries(asked["connection"], asked["booking"])
    except OctoSyncError as error:
        return [Section("Notifications", [str(error)])]
    table = listed(
        "Notifications of this booking",
        told,
        Column("Received", "instant", lambda one: one.received_at),
        Column("Type", "text", lambda one: one.type, none="not said"),
        Column("Unexpected", "text", lambda one: one.reading, none=""),
        Column("Parts to fetch", "number", lambda one: one.marks),
        empty="No webhook named it, or too long ago.",
        more=f"At most {_MOST} are shown." if len(told) == _MOST else "",
    )
    return [Section("Notifications", [table], id="notifications")]


def _changed(row: _Row) -> str:
    return "first version" if row["version_no"] == 1 else fields_text(row["changed_fields"])


def _differences(source: Source, rows: Sequence[_Row]) -> Item:
    ended = [run["ended_at_utc"] for run in source.rows("reconcile_runs") if run["verdict"] != "failed"]
    last = f"No comparison found a difference; the last one ended {wording.instant(max(ended))}." if ended else ""
    return listed(
        "What comparisons say of this booking",
        rows,
        Column("Comparison", "text", "recon_name", href=difference_page),
        Column("State", "text", "state"),
        BUCKET,
        FIELD,
        *BOTH_VALUES,
        Column("Difference", "number", difference),
        Column("Reason", "text", reason),
        Column("First seen", "instant", "first_seen_at_utc"),
        empty=last or "Nothing was compared yet.",
    )


PAGE = Page("booking", "Booking", 18, build, fields=frozenset({"find"}), under="bookings")
