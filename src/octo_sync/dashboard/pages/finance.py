"""Finance: net payable, taxes, cancelled bookings and deferred revenue by month; currencies are never added up."""

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

from octo_sync.dashboard import closing, money_tiles, pictures
from octo_sync.dashboard.columns import known_text, leading
from octo_sync.dashboard.days import month_end, month_start
from octo_sync.dashboard.links import bookings_page, columns_of, month_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from, standing
from octo_sync.dashboard.sums import CURRENCY, KNOWN, all_together
from octo_sync.dashboard.view import Column, Filters, Page, Section, Table, Tiles, View, listed
from octo_sync.flows import wording

_ROWS = 200
_Behind = Callable[[dict[str, Any]], str]
"""The address of the bookings that a number of a row counts; '' of none."""


def build(source: Source, filters: Filters) -> View:
    """The page; whole months: without dates the last one that is over by the copy's today."""
    today = standing(source).today or date.min
    last = filters.last or (max(filters.first, today) if filters.first else month_end(today, -1))
    first, last = month_start(filters.first or last), month_end(last)
    only = {"channel": filters.channel, "currency": filters.currency}
    asked: dict[str, Any] = {"first": first, "last": last, **only}
    net, refunds = source.rows("finance_net", **asked), source.rows("finance_refunds", **asked)
    deferred = source.rows("finance_deferred", **asked)
    # Of the last month chosen that has begun.
    months = source.rows("finance_deferred_months", month=deferred[0]["month_end"], **only) if deferred else []
    undated, compared = source.rows("finance_open", **asked), closing.Compared(source)
    channel = columns_of({"channel": filters.channel})

    def in_all(number: str, kind: str, **only: str) -> _Behind:
        return lambda row: bookings_page({**row, **channel}, kind, first, last, **only) if row[number] else ""

    tiles = money_tiles.finance(source, first, last, today, only)
    zones = sorted({row["business_time_zone"] or "UTC" for row in source.rows("sync_connections")})
    return View(
        "Finance",
        f"Whole months, {wording.month(first)} to {wording.month(last)}, each currency for itself. "
        "Complete: all bookings that count in the row are known and, of net payable and deferred revenue, both prices of each. "
        f"The venue's clock decides the month of travel; the business time zone ({', '.join(zones)}) decides all other months."
        + pictures.in_part(first, known_from(source, filters.channel))
        + pictures.beyond(source, last, filters.channel)
        + pictures.in_each(source, filters.channel),
        [
            *([Section("", [Tiles(tiles)])] if tiles else []),
            Section(
                "Net payable",
                _net(net, in_all),
                "The net price is what the seller owes the supplier; the margin, retail less net where both are known, is what "
                "the seller keeps. Money kept on cancelled bookings is not in it; it is under Cancelled bookings."
                + (" Open-dated bookings are not in it; they are below." if undated else ""),
            ),
            *([Section("Open-dated bookings", _undated(undated, in_all, last, today), _UNDATED)] if undated else []),
            Section(
                "Taxes",
                _taxes(
                    source.rows("finance_taxes", **asked),
                    lambda row: bookings_page({**row, **channel}, "sold", first, last, **_stated(row)),
                ),
                "In retail: the tax in the price that the guest pays. In net: the tax in the price that the seller owes the "
                "supplier. Under none stated are sold bookings without a named tax. One with several taxes is in "
                "several rows. The service names taxes and tells no rates.",
            ),
            Section(
                "Cancelled bookings: refunds due and money kept",
                _refunds(refunds, in_all),
                "By month of cancellation. The service says whether a refund is full, partial or none; it does not say how "
                "much a partial one is, nor whether it was paid. Kept: the prices of the bookings whose refund is none.",
            ),
            Section(
                "Deferred revenue",
                _deferred(deferred, months, lambda row: _still_to_travel({**row, **channel}), has_begun=first <= today),
                "On the books at the end of the month, to travel later: each booking counts with its present day of travel and "
                "price. A month that is not over counts what is on the books now."
                + (" Open-dated bookings are not in it; they are above." if undated else ""),
            ),
            Section(
                "Closed months",
                [
                    *([] if any(only.values()) else closing.ready(source, compared, today)),
                    *closing.closed(source, compared, only),
                ],
                "octo-sync close 2026-10 closes a month. Its figures stay as they were; what changes later is an adjustment, "
                "and figures then and adjustments add up to figures now. Refunds are of the month of cancellation. Months "
                "that an older octo-sync closed lack taxes, refunds due and deferred revenue. Open-dated bookings are in "
                "no month.",
                "closed",
            ),
        ],
        Filters(first=first, last=last, channel=filters.channel, currency=filters.currency),
    )


def _net(rows: list[dict[str, Any]], behind: Callable[..., _Behind]) -> list[Table]:
    each = listed(
        "Net payable to the supplier, by month of travel and channel",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column("Channel", "text", "channel_name"),
        *_payable(partial(month_page, month="travel_month")),
        Column("Supplier", "text", "supplier_name"),
        *KNOWN,
        empty="No sold booking travels in these months.",
        most=_ROWS,
    )
    return [all_together("Net payable in all", rows, CURRENCY, *_payable(behind), *KNOWN), each] if rows else [each]


def _payable(behind: Callable[..., _Behind]) -> list[Column]:
    return [
        *leading(
            behind("bookings", "sold"),
            Column("Net payable", "money", "net_amount", none="unknown"),
            Column("Retail with net price", "money", "retail_with_net", none="unknown"),
            Column("Margin", "money", "margin_amount", none="unknown"),
            Column("Retail", "money", "retail_amount", none="unknown"),
            Column("Bookings", "number", "bookings"),
        ),
        Column("Without net price", "number", "without_net", href=behind("without_net", "sold", only="no_net")),
    ]


_UNDATED = (
    "They have no day of travel, so they are in no month of net payable, taxes and deferred revenue. "
    "Used: by day of redemption. Not used: sold by the end of the last month, and neither used nor cancelled by then; of a "
    "month that is not over, by now. A price that is not known adds nothing."
)


def _undated(rows: list[dict[str, Any]], behind: Callable[..., _Behind], last: date, today: date) -> list[Table]:
    is_now = last >= today
    then = "yet" if is_now else f"by {last}"
    unused = behind("unused", "open", only="not_used") if is_now else lambda _: ""
    figures = [
        Column("Sold in all", "number", "bookings", href=behind("bookings", "open")),
        Column("Used in these months", "number", "used"),
        Column("Used: retail", "money", "used_retail", none="unknown"),
        Column("Used: net", "money", "used_net", none="unknown"),
        *leading(
            unused,
            Column("Not used yet" if is_now else "Not used at the end", "number", "unused"),
            Column("Not used: retail", "money", "unused_retail", none="unknown"),
            Column("Not used: net", "money", "unused_net", none="unknown"),
        ),
        Column("Used on an unknown day", "number", "used_some_day"),
        Column("Without net price, in all", "number", "without_net", href=behind("without_net", "open", only="no_net")),
    ]
    title = f"Open-dated bookings: used in these months, and not used {then}"
    return [
        all_together(f"{title}, in all", rows, CURRENCY, *figures),
        listed(f"{title}, by channel", rows, Column("Channel", "text", "channel_name"), *figures),
    ]


def _stated(row: dict[str, Any]) -> dict[str, str]:
    """Which bookings alone are behind a row of taxes."""
    return {"only": "no_tax"} if row["tax_name"] is None else {"only": "tax", "name": row["tax_name"]}


def _taxes(rows: list[dict[str, Any]], behind: _Behind) -> list[Table]:
    def named(page: _Behind) -> _Behind:
        """No list is of a tax whose name is empty."""
        return lambda row: "" if row["tax_name"] == "" else page(row)

    def of_month(row: dict[str, Any]) -> str:
        return month_page("bookings", "sold", "travel_month", **_stated(row))(row)

    name = Column("Tax", "text", "tax_name", none="none stated")
    figures = [
        Column("In retail", "money", "retail_tax"),
        Column("In net", "money", "net_tax"),
        Column("Whole retail price, taxes included", "money", "retail_amount", none="unknown"),
        Column("Bookings", "number", "bookings"),
    ]
    flags = Column("Month over", "yes", "is_over"), Column("Complete", "yes", "is_complete")
    by = ("tax_name", "currency")
    together = all_together("Taxes in all, by name", rows, name, *leading(named(behind), *figures), *flags, by=by)
    each = listed(
        "Taxes in the prices of sold bookings, by month of travel, name and channel",
        rows,
        Column("Travel month", "month", "travel_month"),
        name,
        Column("Channel", "text", "channel_name"),
        *leading(named(of_month), *figures),
        *flags,
        empty="No sold booking travels in these months.",
        most=_ROWS,
    )
    return [together, each] if rows else [each]


def _refunds(rows: list[dict[str, Any]], behind: Callable[..., _Behind]) -> list[Table]:
    some_day = {row["currency"] for row in rows if not row["cancelled_month"]}

    def all_of_them(number: str, kind: str, **only: str) -> _Behind:
        """No list has those that were cancelled at an unknown time."""
        return lambda row: "" if row["currency"] in some_day else behind(number, kind, **only)(row)

    together = all_together("Cancelled bookings in all", rows, CURRENCY, *_refund_figures(all_of_them))
    each = listed(
        "Cancelled bookings and their refunds, by month of cancellation and channel",
        rows,
        Column("Cancelled in", "month", "cancelled_month", none="unknown"),
        Column("Channel", "text", "channel_name"),
        *_refund_figures(partial(month_page, month="cancelled_month")),
        empty="No sold booking was cancelled in these months.",
        most=_ROWS,
    )
    return [together, each] if rows else [each]


def _refund_figures(behind: Callable[..., _Behind]) -> list[Column]:
    def of(number: str, **only: str) -> _Behind:
        return behind(number, "cancelled", **only)

    return [
        *leading(
            of("full_refunds", only="full"),
            Column("Refund due, full ones", "money", "refund_amount", none="unknown"),
            Column("Refund due: net", "money", "refund_net_amount", none="unknown"),
            Column("Full refunds", "number", "full_refunds"),
        ),
        Column("Without price", "number", "without_amount", href=of("without_amount", only="full_no_retail")),
        *leading(
            of("partial_refunds", only="partial"),
            Column("Partial refunds", "number", "partial_refunds"),
            Column("Partial, at most", "money", "partial_at_most", none="unknown"),
        ),
        *leading(
            of("no_refund", only="none"),
            Column("No refund", "number", "no_refund"),
            Column("Kept, at least: retail", "money", "kept_retail", none="unknown"),
            Column("Kept, at least: net", "money", "kept_net", none="unknown"),
        ),
        Column(
            "Kept, without net price", "number", "kept_without_net", href=of("kept_without_net", only="none_no_net")
        ),
        Column("Not stated", "number", "refund_not_stated", href=of("refund_not_stated", only="not_stated")),
        Column("Cancelled", "number", "cancelled", href=of("cancelled")),
    ]


def _deferred(
    rows: list[dict[str, Any]], months: list[dict[str, Any]], behind: _Behind, *, has_begun: bool
) -> list[Table]:
    figures = [
        Column("Retail", "money", "retail_amount", none="unknown"),
        Column("Net", "money", "net_amount", none="unknown"),
        Column("Bookings", "number", "bookings"),
        Column("Guests", "number", "guests", none="unknown"),
        Column("With net price", "number", known_text("without_net")),
    ]
    month = Column("Month's end", "date", "month_end")
    each = listed(
        "Sold by the month's end for travel after it, by channel",
        rows,
        month,
        Column("Channel", "text", "channel_name"),
        *leading(behind, *figures),
        *KNOWN,
        empty="Nothing was on the books for travel after these months."
        if has_begun
        else "These months have not begun.",
        most=_ROWS,
    )
    if not rows:
        return [each]
    end, by = rows[0]["month_end"], ("month_end", "currency")
    together = all_together(
        "Deferred revenue in all", rows, month, CURRENCY, *leading(behind, *figures), *KNOWN, by=by, last_first=True
    )
    by_month = listed(
        f"Deferred revenue at the end of {wording.month(end)}, by month of travel",
        [{**row, "month_end": end} for row in months],
        Column("Travel month", "month", "travel_month"),
        CURRENCY,
        *leading(behind, *figures),
    )
    return [together, by_month, each]


def _still_to_travel(row: dict[str, Any]) -> str:
    """The bookings behind a row of deferred revenue, of one month of travel where it has one."""
    end = row["month_end"]
    if "travel_month" in row:
        return month_page("bookings", "books", "travel_month", by=end)(row)
    return bookings_page(row, "deferred", month_start(end), end)


PAGE = Page("finance", "Finance", 55, build, frozenset({"dates", "channel", "currency"}), by_month=True)
