"""Cancellations: what share of what was sold, by whom, and how late."""

from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import date
from typing import Any

from octo_sync.dashboard import charts, pictures
from octo_sync.dashboard.columns import leading
from octo_sync.dashboard.days import DAY, SPANS, month_days, month_start, months
from octo_sync.dashboard.links import bookings_page, columns_of
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from, standing
from octo_sync.dashboard.view import Chart, Column, Filters, Page, Section, Table, Tile, Tiles, View, listed
from octo_sync.flows import wording

_BACK = 11
_Behind = Callable[..., Callable[[dict[str, Any]], str]]
"""Kind of a list of the page Bookings → the address of those behind a row."""


def build(source: Source, filters: Filters) -> View:
    """The page; without dates the bookings made in the copy's month and the eleven before, as far as they are known."""
    now = standing(source)
    today, first = now.today or date.min, now.since(filters, _BACK)
    last = filters.last or today
    asked = {"first": first, "last": last, "product": filters.product, "channel": filters.channel}
    by_month = source.rows("cancellations_months", **asked)
    chosen = columns_of(asked)

    def behind(kind: str, **only: str) -> Callable[[dict[str, Any]], str]:
        """The bookings behind a row, of its month as far as it is shown."""

        def of(row: dict[str, Any]) -> str:
            begins, ends = month_days(row["booking_month"]) if "booking_month" in row else (first, last)
            return bookings_page({**chosen, **row}, kind, max(first, begins), min(last, ends), **only)

        return of

    sold, cancelled = (sum(row[name] for row in by_month) for name in ("was_sold", "cancelled"))
    tile = Tile(
        "Cancelled since",
        wording.share(cancelled / sold) if sold else "—",
        f"{wording.count(cancelled)} of {wording.count(sold)} sold bookings made in these days",
        href=behind("lost")({}),
        name="cancelled",
    )
    return View(
        "Cancellations",
        f"Bookings made {wording.day(first)} to {wording.day(last)} that were sold, and those cancelled since. "
        "A released hold is not a cancellation."
        + pictures.in_part(first, known_from(source, filters.channel, made=True))
        + pictures.in_each(source, filters.channel),
        [
            Section("", [Tiles([tile, _by_day(source, asked, today, behind("cancelled")({}))])]),
            Section(
                "Money",
                [_money(source.rows("cancellations_money", **asked), behind)],
                "Cancelled since: of bookings made in these days. Cancelled in these days, and what is due, at most "
                "due or kept of them: whenever they were made. A price that is not known adds nothing.",
            ),
            Section(
                "",
                [
                    _by_month(by_month, months(first, last), pictures.channel_colors(source), behind),
                    _by_notice(
                        source.rows("cancellations_notice", **asked),
                        lambda row: behind("lost", only="notice", name=row["notice"])({}),
                    ),
                ],
            ),
            Section("Products", [_products(source.rows("cancellations_products", **asked), behind)]),
        ],
        Filters(first=first, last=last, product=filters.product, channel=filters.channel),
    )


def _by_day(source: Source, asked: dict[str, Any], today: date, href: str) -> Tile:
    """What was cancelled in these days, beside as many whole days before where all of their bookings are known."""
    first, last, known = asked["first"], asked["last"], known_from(source, asked["channel"]) or date.max
    whole = min(last, today - DAY)
    before = first - (whole - first) - DAY
    across = months(month_start(last, -_BACK), last)
    rows = source.rows("cancellations_days", **asked | {"first": min(before, across[0])})

    def cancelled(begins: date, ends: date) -> int:
        return sum(row["bookings"] for row in rows if begins <= row["cancelled_date"] <= ends)

    said = ""
    if known <= before < first:
        now = f"{wording.count(cancelled(first, whole))} to {wording.short_day(whole)} " if whole < last else ""
        days = wording.plural((first - before).days, "day")
        said = f"{now}vs {wording.count(cancelled(before, first - DAY))} in the {days} before"
    return Tile(
        "Cancelled in these days",
        wording.count(cancelled(first, last)),
        said,
        href=href,
        name="cancelled-in",
        course=[cancelled(*month_days(month)) if month >= known else None for month in across],
        course_of=f"A month of cancellation, the {len(across)} up to then",
    )


def _money(rows: list[dict[str, Any]], behind: _Behind) -> Table:
    return listed(
        "Retail price of cancelled bookings, by currency",
        rows,
        Column("Currency", "text", "currency", none="no currency"),
        Column("Retail cancelled since", "money", "cancelled_retail", none="unknown", href=behind("lost")),
        Column("Retail cancelled in these days", "money", "left_retail", none="unknown", href=behind("cancelled")),
        *(
            Column(title, "money", amount, none="unknown", href=behind("cancelled", only=only))
            for title, amount, only in (
                ("Refund due, full ones", "refund_amount", "full"),
                ("Partial, at most", "partial_at_most", "partial"),
                ("Kept, at least", "kept_retail", "none"),
            )
        ),
        Column("Cancelled in these days", "number", "left_bookings", href=behind("cancelled")),
        Column("Cancelled since", "number", "cancelled", href=behind("lost")),
        Column("Sold", "number", "was_sold", href=behind("made")),
        Column("Retail sold", "money", "sold_retail", none="unknown", href=behind("made")),
        Column("Share of retail cancelled since", "share", "cancelled_share"),
        empty="No booking made or cancelled in this time was sold.",
    )


def _by_month(rows: list[dict[str, Any]], across: list[date], colors: dict[str, str], behind: _Behind) -> Chart:
    sold = Counter[str]()
    counted = defaultdict[tuple[str, date], list[dict[str, Any]]](list)
    for row in rows:
        name = wording.plain(row["channel_name"])  # of more than one connection, perhaps
        sold[name] += row["was_sold"]
        counted[name, row["booking_month"]].append(row)
    largest = sorted(sold, key=lambda name: (-sold[name], name))[: pictures.CHANNELS]
    shown = pictures.in_order(largest, colors)
    series: dict[str, list[float | None]] = {name: [None] * len(across) for name in shown}
    leads = {name: [""] * len(across) for name in shown}
    for (name, booked), those in counted.items():
        if name in series:
            at, cancelled = across.index(booked), sum(row["cancelled"] for row in those)
            series[name][at] = cancelled / sum(row["was_sold"] for row in those)
            # No list is of two connections.
            leads[name][at] = behind("lost")(those[0]) if cancelled and len(those) == 1 else ""
    left = len(sold) - len(shown)
    option = charts.lines([wording.month(month) for month in across], series, colors=colors, percent=True)
    if len(across) == 1:
        option = charts.bars(shown, {"Share cancelled": [series[name][0] for name in shown]}, percent=True)
        leads = {"Share cancelled": [leads[name][0] for name in shown]}
    return Chart(
        id="rate-by-month",
        title="Share cancelled, by month of booking and channel",
        option=option,
        table=listed(
            "Share cancelled, by month of booking and channel",
            list(reversed(rows)),
            Column("Month of booking", "month", "booking_month"),
            Column("Channel", "text", "channel_name"),
            Column("Sold", "number", "was_sold", href=behind("made")),
            Column("Cancelled since", "number", "cancelled", href=behind("lost")),
            Column("Share", "share", "cancellation_rate"),
            empty="No booking made in this time was sold.",
        ),
        download="fct_bookings",
        leads=leads,
        note="Later months have had less time to be cancelled."
        + (f" {left} smaller channels are only in the table." if left else ""),
    )


def _by_notice(rows: list[dict[str, Any]], behind: Callable[[dict[str, Any]], str]) -> Chart:
    found = {row["notice"]: row for row in rows}
    shown = [name for name in SPANS["notice"] if name in found]
    return Chart(
        id="notice",
        title="Cancelled bookings, by notice before travel",
        option=charts.bars(shown, {"Bookings": [found[name]["bookings"] for name in shown]}),
        table=listed(
            "Cancelled bookings, by notice before travel",
            [found[name] for name in shown],
            Column("Before travel", "text", "notice"),
            *leading(
                behind,
                Column("Bookings", "number", "bookings"),
                Column("Guests", "number", "guests", none="unknown"),
            ),
            empty="Nothing was cancelled.",
        ),
        download="fct_bookings",
        leads={"Bookings": [behind(found[name]) for name in shown]},
        note="Unknown: no time of cancellation, or no travel date.",
    )


def _products(rows: list[dict[str, Any]], behind: _Behind) -> Table:
    return listed(
        "Share cancelled, by product and currency",
        rows,
        Column("Product", "text", "product_name"),
        Column("Share", "share", "cancellation_rate"),
        *leading(
            behind("lost"),
            Column("Retail cancelled", "money", "cancelled_retail", none="unknown"),
            Column("Cancelled", "number", "cancelled"),
        ),
        Column("Sold", "number", "was_sold", href=behind("made")),
        Column("Guests cancelled", "number", "cancelled_guests", href=behind("lost")),
        empty="No booking made in this time was sold.",
    )


PAGE = Page("cancellations", "Cancellations", 40, build, frozenset({"dates", "product", "channel"}), is_past=True)
