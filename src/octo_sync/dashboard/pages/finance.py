"""Finance: net payable, taxes, refunds due and deferred revenue by month; currencies are never added up."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Any

from octo_sync.dashboard import pictures
from octo_sync.dashboard.days import month_days, month_end, month_start
from octo_sync.dashboard.links import booking_page, booking_text, bookings_page, known_text
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from, standing
from octo_sync.dashboard.view import Column, Filters, Page, Section, Table, View, listed
from octo_sync.flows import wording
from octo_sync.flows.periods import CAUSES

_BACK = 3
_ROWS = 200


def build(source: Source, filters: Filters) -> View:
    """The page; whole months: without dates that of the copy's today and the three before."""
    today = standing(source).today or date.min
    last = month_end(filters.last or max(filters.first or today, today))
    first = month_start(filters.first) if filters.first else month_start(last, -_BACK)
    only = {"channel": filters.channel, "currency": filters.currency}
    asked: dict[str, Any] = {"first": first, "last": last, **only}
    without_day = pictures.undated(source.rows("revenue_undated", product=None, **only))
    return View(
        "Finance",
        f"Whole months, {wording.month(f'{first:%Y-%m}')} to {wording.month(f'{last:%Y-%m}')}, each currency for itself. "
        "Complete: all bookings that count in the row are known and, of net payable and deferred revenue, both prices of each."
        + pictures.in_part(first, known_from(source, filters.channel)),
        [
            Section(
                "Net payable",
                _net(source.rows("finance_net", **asked)),
                f"The net price is what the seller owes the supplier; the margin, retail less net, is what the seller keeps. "
                f"{without_day}".rstrip(),
            ),
            Section("Taxes", _taxes(source.rows("finance_taxes", **asked))),
            Section(
                "Refunds due",
                [_refunds(source.rows("finance_refunds", **asked))],
                "By month of cancellation. The service says whether a refund is full, partial or none; it does not say how "
                "much a partial one is, nor whether it was paid.",
            ),
            Section(
                "Deferred revenue",
                [_deferred(source.rows("finance_deferred", **asked))],
                "On the books at the end of the month, to travel later: each booking counts with its present day of travel and "
                f"price. A month that is not over counts what is on the books now. {without_day}".rstrip(),
            ),
            Section(
                "Closed months",
                _closed(source, only),
                "octo-sync close 2026-10 closes a month. Its figures stay as they were, and what changes later is an "
                "adjustment. Figures then and adjustments add up to figures now.",
                "closed",
            ),
        ],
        Filters(first=first, last=last, channel=filters.channel, currency=filters.currency),
    )


def _all_of_it(row: dict[str, Any]) -> bool:
    """Whether amounts are known whole: every booking, and both prices of each."""
    return bool(row["is_complete"]) and not row["without_net"] and not row["without_retail"]


def _net(rows: list[dict[str, Any]]) -> list[Table]:
    each = listed(
        "Net payable to the supplier, by month of travel and channel",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column("Channel", "text", "channel_name"),
        Column("Net payable", "money", "net_amount", none="unknown"),
        Column("Retail", "money", "retail_amount", none="unknown"),
        Column("Margin", "money", "margin_amount", none="unknown"),
        Column("Bookings", "number", "bookings", href=_bookings),
        Column("With net price", "number", known_text("without_net")),
        Column("Supplier", "text", "supplier_name"),
        Column("Complete", "yes", _all_of_it),
        empty="No sold booking travels in these months.",
        most=_ROWS,
    )
    return [_in_all(rows), each] if rows else [each]


def _summed(rows: list[dict[str, Any]], by: Sequence[str], *names: str) -> list[dict[str, Any]]:
    """All months and channels together, in order of what they are counted by; an amount that no booking has adds nothing."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in by)].append(row)

    def summed(of: list[dict[str, Any]], name: str) -> Any:  # noqa: ANN401 - an amount or a number
        known = [row[name] for row in of if row[name] is not None]
        return sum(known) if known else None

    return [
        dict(zip(by, group, strict=True))
        | {name: summed(of, name) for name in names}
        | {"is_complete": all(row["is_complete"] for row in of)}
        for group, of in sorted(groups.items(), key=lambda each: [(value is None, value) for value in each[0]])
    ]


def _in_all(rows: list[dict[str, Any]]) -> Table:
    names = ("net_amount", "retail_amount", "margin_amount", "bookings", "without_net", "without_retail")
    return listed(
        "Net payable in all",
        _summed(rows, ["currency"], *names),
        Column("Currency", "text", "currency", none="no currency"),
        Column("Net payable", "money", "net_amount", none="unknown"),
        Column("Retail", "money", "retail_amount", none="unknown"),
        Column("Margin", "money", "margin_amount", none="unknown"),
        Column("Bookings", "number", "bookings"),
        Column("With net price", "number", known_text("without_net")),
        Column("Complete", "yes", _all_of_it),
    )


def _bookings(row: dict[str, Any]) -> str:
    """The bookings behind a row of a month of travel."""
    return bookings_page(row, "sold", *month_days(row["travel_month"]))


def _taxes(rows: list[dict[str, Any]]) -> list[Table]:
    in_all = listed(
        "Taxes in all, by name",
        _summed(rows, ["tax_name", "currency"], "retail_tax", "net_tax"),
        Column("Tax", "text", "tax_name"),
        Column("In retail", "money", "retail_tax", none="unknown"),
        Column("In net", "money", "net_tax", none="unknown"),
        Column("Complete", "yes", "is_complete"),
    )
    each = listed(
        "Taxes in the prices of sold bookings, by month of travel, name and channel",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column("Tax", "text", "tax_name"),
        Column("Channel", "text", "channel_name"),
        Column("In retail", "money", "retail_tax", none="unknown"),
        Column("In net", "money", "net_tax", none="unknown"),
        Column("Bookings", "number", "bookings"),
        Column("Complete", "yes", "is_complete"),
        empty="The service states no taxes for sold bookings of these months.",
        most=_ROWS,
    )
    return [in_all, each] if rows else [each]


def _refunds(rows: list[dict[str, Any]]) -> Table:
    return listed(
        "Cancelled bookings and their refunds, by month of cancellation and channel",
        rows,
        Column("Cancelled in", "month", "cancelled_month", none="unknown"),
        Column("Channel", "text", "channel_name"),
        Column("Refund due", "money", "refund_amount", none="unknown"),
        Column("Full refunds", "number", "full_refunds"),
        Column("Without price", "number", "without_amount"),
        Column("Partial refunds", "number", "partial_refunds"),
        Column("Partial, at most", "money", "partial_at_most", none="unknown"),
        Column("No refund", "number", "no_refund"),
        Column("Not stated", "number", "refund_not_stated"),
        Column("Cancelled", "number", "cancelled", href=_cancelled),
        empty="No sold booking was cancelled in these months.",
        most=_ROWS,
    )


def _cancelled(row: dict[str, Any]) -> str:
    """The bookings behind a row of a month of cancellation; those without one are in no list."""
    month = row["cancelled_month"]
    return bookings_page(row, "cancelled", *month_days(month)) if month else ""


def _deferred(rows: list[dict[str, Any]]) -> Table:
    return listed(
        "Sold by the month's end for travel after it, by channel",
        rows,
        Column("Month's end", "date", "month_end"),
        Column("Channel", "text", "channel_name"),
        Column("Retail", "money", "retail_amount", none="unknown"),
        Column("Net", "money", "net_amount", none="unknown"),
        Column("Bookings", "number", "bookings", href=_still_to_travel),
        Column("Guests", "number", "pax", none="unknown"),
        Column("With net price", "number", known_text("without_net")),
        Column("Month over", "yes", "is_over"),
        Column("Complete", "yes", _all_of_it),
        empty="Nothing was on the books for travel after these months.",
        most=_ROWS,
    )


def _still_to_travel(row: dict[str, Any]) -> str:
    """The bookings behind a row of deferred revenue."""
    return bookings_page(row, "deferred", month_start(row["month_end"]), row["month_end"])


def _closed(source: Source, asked: dict[str, Any]) -> list[Table]:
    """Closed months, whatever months the page shows; and, where there are any, what changed in them."""
    figures, changes = source.rows("finance_closed", **asked), source.rows("finance_adjustments", **asked)
    months = listed(
        "Closed months of travel: figures then, adjustments, figures now",
        figures,
        Column("Travel month", "month", "period"),
        Column("Channel", "text", "channel_name", none="no bookings"),
        Column("Closed", "instant", "closed_at_utc"),
        Column("Complete then", "yes", "was_complete"),
        Column("Net then", "money", "net_amount", none="unknown"),
        Column("Net adjustment", "money", "net_adjustment"),
        Column("Net now", "money", "net_now", none="unknown"),
        Column("Retail then", "money", "retail_amount", none="unknown"),
        Column("Retail adjustment", "money", "retail_adjustment"),
        Column("Retail now", "money", "retail_now", none="unknown"),
        Column("Adjustments", "number", "adjustments"),
        empty="No month is closed.",
        most=_ROWS,
    )
    if not changes:
        return [months]
    adjustments = listed(
        "Adjustments of closed months, the latest first",
        changes,
        Column("Travel month", "month", "period"),
        Column("Booking", "text", booking_text, href=booking_page),
        Column("Cause", "text", lambda row: CAUSES[row["cause"]]),
        Column("Net", "money", "net_adjustment"),
        Column("Retail", "money", "retail_adjustment"),
        Column("Channel", "text", "channel_name"),
        Column("Seen", "instant", "changed_at_utc", none="unknown"),
        most=_ROWS,
    )
    return [months, adjustments]


PAGE = Page("finance", "Finance", 55, build, frozenset({"dates", "channel", "currency"}), by_month=True)
