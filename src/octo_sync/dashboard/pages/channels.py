"""Channels: what share of the revenue each channel has, month by month, and the margin it leaves."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from octo_sync.dashboard import charts, pictures
from octo_sync.dashboard.columns import known_text, leading
from octo_sync.dashboard.days import month_days, month_end, month_start, months, year_earlier
from octo_sync.dashboard.links import bookings_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_from, standing
from octo_sync.dashboard.sums import per
from octo_sync.dashboard.view import Chart, Column, Filters, Page, Section, View, listed
from octo_sync.flows import wording

_BACK, _AHEAD = 5, 2


def build(source: Source, filters: Filters) -> View:
    """The page; whole months of travel: without dates that of the copy's today, the five before and the two after."""
    now = standing(source)
    today, first = now.today or date.min, month_start(now.since(filters, _BACK))
    last = month_end(filters.last) if filters.last else month_end(max(first, today), _AHEAD)
    asked: dict[str, Any] = {"product": filters.product, "currency": filters.currency}
    drawn, left_out = pictures.largest_currencies(source.rows("channel_mix", first=first, last=last, **asked))
    colors = pictures.channel_colors(source)

    def behind(row: Mapping[str, Any]) -> str:
        of = {**row, "product_key": filters.product} if filters.product else row
        return bookings_page(of, "sold", *month_days(row["travel_month"]))

    across, ago = months(first, last), pictures.known_a_year_ago(first, last, known_from(source, filters.channel))
    earlier = source.rows("channel_mix", first=year_earlier(first), last=year_earlier(last), **asked) if ago else []
    before = {(row["currency"], row["connection_id"], row["travel_month"]): row["retail_share"] for row in earlier}

    def share_then(row: Mapping[str, Any]) -> float | None:
        then = ago.get(row["travel_month"])
        return before.get((row["currency"], row["connection_id"], then), 0.0) if then else None

    to_come = next((n for n, month in enumerate(across) if month > today), None)
    mixes = [
        _mix(currency, rows, across, to_come, colors, behind, share_then if ago else None)
        for currency, rows in drawn.items()
    ]
    undated = pictures.undated(source.rows("revenue_undated", channel=None, **asked))
    return View(
        "Channels",
        f"Sold bookings that travel {wording.month(first)} to {wording.month(last)}, each currency "
        "for itself."
        + pictures.in_part(first, known_from(source))
        + pictures.beyond(source, last, None)
        + pictures.in_each(source, None),
        [
            Section(
                "", mixes or ["No sold booking travels in these months."], " ".join(filter(None, (left_out, undated)))
            )
        ],
        Filters(first=first, last=last, **asked),
    )


def _mix(
    currency: str,
    rows: Sequence[Mapping[str, Any]],
    across: list[date],
    to_come: int | None,
    colors: Mapping[str, str],
    behind: Callable[[Mapping[str, Any]], str],
    share_then: Callable[[Mapping[str, Any]], float | None] | None,
) -> Chart:
    amounts, leads = pictures.by_channel(rows, across, "travel_month", "retail_amount", behind, colors)
    totals = [sum(values[n] or 0 for values in amounts.values()) for n in range(len(across))]
    shares: dict[str, list[float | None]] = {
        name: [(value or 0) / whole if whole else None for value, whole in zip(values, totals, strict=True)]
        for name, values in amounts.items()
    }
    return Chart(
        id=f"mix-{charts.part_of_id(currency)}",
        title=f"Share of revenue in {wording.plain(currency)}, by month of travel and channel",
        option=charts.bars(
            [wording.month(month) for month in across], shares, colors=colors, percent=True, faint_from=to_come
        ),
        table=listed(
            f"Channels in {wording.plain(currency)}, by month of travel",
            rows,
            Column("Travel month", "month", "travel_month"),
            Column("Channel", "text", "channel_name"),
            Column("Share", "share", "retail_share", none="unknown"),
            *([Column("Final share a year earlier", "share", share_then, none="unknown")] if share_then else []),
            *leading(
                behind,
                Column("Retail", "money", "retail_amount", none="unknown"),
                Column("Net", "money", "net_amount", none="unknown"),
                Column("With net price", "number", known_text("without_net")),
                Column("Seller's margin", "money", "margin_amount", none="unknown"),
            ),
            Column("Rate", "share", "margin_rate", none="unknown"),
            *leading(
                behind,
                Column("Bookings", "number", "bookings"),
                Column("Guests", "number", "guests", none="unknown"),
            ),
            Column("Retail per guest", "money", per("guest_amount", "guests"), none="unknown"),
            Column("All bookings known", "yes", "is_complete"),
        ),
        download="fct_bookings",
        height=260,
        leads=leads,
        note=f"{_margin(rows)} Months to come are paler.",
    )


def _margin(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the channels keep of all these months, those with the most revenue first."""
    bases, margins = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
    for row in rows:
        if row["margin_amount"] is not None:
            name = wording.plain(row["channel_name"])
            bases[name] += row["margin_base"]
            margins[name] += row["margin_amount"]
    if not bases:
        return "No net price is known, so no margin is."
    largest = sorted(bases, key=lambda name: (-bases[name], name))[: pictures.CHANNELS]
    shares = {name: float(margins[name] / bases[name]) if bases[name] else None for name in largest}
    said = ", ".join(f"{name} {wording.share(share)}" for name, share in shares.items())
    return f"Seller's margin (retail less net) where the net price is known: {said}."


PAGE = Page("channels", "Channels", 52, build, frozenset({"dates", "product", "currency"}), by_month=True)
