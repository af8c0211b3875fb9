"""Finance: net payable, taxes, refunds due and deferred revenue by month; currencies are never added up."""

from datetime import date
from typing import Any

from octo_sync.dashboard import pictures
from octo_sync.dashboard.days import month_end, month_start
from octo_sync.dashboard.links import booking_page, booking_text
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
    asked: dict[str, Any] = {"first": first, "last": last, "channel": filters.channel, "currency": filters.currency}
    undated = source.rows("revenue_undated", product=None, channel=filters.channel, currency=filters.currency)
    return View(
        "Finance",
        f"Months {wording.month(f'{first:%Y-%m}')} to {wording.month(f'{last:%Y-%m}')}, each currency for itself. "
        "Complete: all bookings that count in the row are known."
        + pictures.in_part(first, known_from(source, filters.channel)),
        [
            Section("Net payable", [_net(source.rows("finance_net", **asked))], pictures.undated(undated)),
            Section("Taxes", [_taxes(source.rows("finance_taxes", **asked))]),
            Section(
                "Refunds due",
                [_refunds(source.rows("finance_refunds", **asked))],
                "By month of cancellation. The service says whether a refund is full, partial or none; it does not say how "
                "much a partial one is, nor whether it was paid.",
            ),
            Section(
                "Deferred revenue",
                [_deferred(source.rows("finance_deferred", **asked))],
                "Bookings made by the month's last day, not cancelled by then, that travel later: each by its present day of "
                "travel and price. A month in progress counts what is on the books now. Open-dated bookings are in no row, "
                "nor is travel after the last day asked for.",
            ),
            Section(
                "Closed months",
                _closed(source, {"channel": filters.channel, "currency": filters.currency}),
                "octo-sync close 2026-10 closes a month. Its figures stay as they were, and what changes later is an "
                "adjustment. Figures then and adjustments add up to figures now.",
                "closed",
            ),
        ],
        Filters(first=first, last=last, channel=filters.channel, currency=filters.currency),
    )


def _table(caption: str, rows: list[dict[str, Any]], question: int, *columns: Column, empty: str) -> Table:
    return listed(caption, rows, *columns, empty=empty, most=_ROWS, others=f"question {question} has all of them")


def _net(rows: list[dict[str, Any]]) -> Table:
    return _table(
        "Net payable to the supplier, by month of travel and channel",
        rows,
        11,
        Column("Travel month", "month", "travel_month"),
        Column("Channel", "text", "channel_name"),
        Column("Net payable", "money", "net_amount", none="unknown"),
        Column("Retail", "money", "retail_amount", none="unknown"),
        Column("Margin", "money", "margin_amount", none="unknown"),
        Column("Bookings", "number", "bookings"),
        Column("Without net", "number", "without_net"),
        Column("Supplier", "text", "supplier_name"),
        Column("Complete", "yes", "is_complete"),
        empty="No sold booking travels in these months.",
    )


def _taxes(rows: list[dict[str, Any]]) -> Table:
    return _table(
        "Taxes in the prices of sold bookings, by month of travel, name and channel",
        rows,
        24,
        Column("Travel month", "month", "travel_month"),
        Column("Tax", "text", "tax_name"),
        Column("Channel", "text", "channel_name"),
        Column("In retail", "money", "retail_tax", none="unknown"),
        Column("In net", "money", "net_tax", none="unknown"),
        Column("Bookings", "number", "bookings"),
        Column("Complete", "yes", "is_complete"),
        empty="The service states no taxes for sold bookings of these months.",
    )


def _refunds(rows: list[dict[str, Any]]) -> Table:
    return _table(
        "Cancelled bookings and their refunds, by month of cancellation and channel",
        rows,
        25,
        Column("Cancelled in", "month", "cancelled_month", none="unknown"),
        Column("Channel", "text", "channel_name"),
        Column("Refund due", "money", "refund_amount"),
        Column("Full refunds", "number", "full_refunds"),
        Column("Without price", "number", "without_amount"),
        Column("Partial refunds", "number", "partial_refunds"),
        Column("Partial, at most", "money", "partial_at_most"),
        Column("No refund", "number", "no_refund"),
        Column("Not stated", "number", "refund_not_stated"),
        Column("Cancelled", "number", "cancelled"),
        empty="No sold booking was cancelled in these months.",
    )


def _deferred(rows: list[dict[str, Any]]) -> Table:
    return _table(
        "Sold by the month's end for travel after it, by channel",
        rows,
        26,
        Column("Month's end", "date", "month_end"),
        Column("Channel", "text", "channel_name"),
        Column("Retail", "money", "retail_amount", none="unknown"),
        Column("Net", "money", "net_amount", none="unknown"),
        Column("Bookings", "number", "bookings"),
        Column("Guests", "number", "pax", none="unknown"),
        Column("Without net", "number", "without_net"),
        Column("Month over", "yes", "is_over"),
        Column("Complete", "yes", "is_complete"),
        empty="Nothing was on the books for travel after these months.",
    )


def _closed(source: Source, asked: dict[str, Any]) -> list[Table]:
    """Closed months, whatever months the page shows; and, where there are any, what changed in them."""
    figures, changes = source.rows("finance_closed", **asked), source.rows("finance_adjustments", **asked)
    months = listed(
        "Closed months of travel: figures then, adjustments, figures now",
        figures,
        Column("Travel month", "month", "period"),
        Column("Channel", "text", "channel_name", none="no bookings"),
        Column("Net then", "money", "net_amount", none="unknown"),
        Column("Net adjustment", "money", "net_adjustment"),
        Column("Net now", "money", "net_now", none="unknown"),
        Column("Retail adjustment", "money", "retail_adjustment"),
        Column("Retail now", "money", "retail_now", none="unknown"),
        Column("Adjustments", "number", "adjustments"),
        Column("Closed", "date", lambda row: row["closed_at_utc"].date()),
        Column("Complete then", "yes", "was_complete"),
        empty="No month is closed.",
        most=_ROWS,
        others="marts.closed_periods has all of them",
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
        others="marts.period_adjustments has all of them",
    )
    return [months, adjustments]


PAGE = Page("finance", "Finance", 55, build, frozenset({"dates", "channel", "currency"}))
