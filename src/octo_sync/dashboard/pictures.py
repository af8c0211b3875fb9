"""Pictures that more than one page has: the rows of one select as a chart, and the table behind it."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from octo_sync.dashboard import charts
from octo_sync.dashboard.columns import SOLD, leading
from octo_sync.dashboard.days import DAY, month_days, month_end, month_start, months, year_earlier
from octo_sync.dashboard.links import bookings_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import known_to
from octo_sync.dashboard.view import Chart, Column, listed
from octo_sync.flows import wording

CHANNELS = 6
"""Colours that can be told apart; the other channels are one."""
_CURRENCIES = 6

_NOTHING_SOLD = {"bookings": 0, "guests": 0, "retail_amount": Decimal(0), "net_amount": Decimal(0), "without_net": 0}
_ANY: Mapping[str, None] = dict.fromkeys(("product", "channel", "currency"))
_NOT_KNOWN = dict.fromkeys(_NOTHING_SOLD)


def ahead(source: Source, *, sold: tuple[date, date], travel: tuple[date, date]) -> None:
    """Begin with what `revenue` and the pick-up curve will ask of these times: they take the longest."""
    source.ahead(
        ("pickup", {"first": travel[0], "last": travel[1], "product": None, "channel": None}),
        ("revenue_months", {"first": sold[0], "last": sold[1], **_ANY, "by": None}),
    )


def in_part(first: date, known_from: date | None) -> str:
    """The sentence for a time that begins before the copy is complete; '' for any other."""
    if known_from == date.max:
        return " Travel dates may be incomplete: the service lists bookings by day of booking."
    return f" Data before {wording.day(known_from)} is incomplete." if known_from and first < known_from else ""


def beyond(source: Source, last: date, channel: str | None) -> str:
    """The sentence for a time that ends after the last day of travel that was asked for; '' for any other."""
    until = known_to(source, channel)
    return f" Travel after {wording.day(until)} is not known: it was not asked for." if until and last > until else ""


def in_each(source: Source, channel: str | None) -> str:
    """The sentence for a page of all channels that counts bookings once for each connection; '' where no two see the same."""
    shared = 0 if channel else source.rows("shared_bookings")[0]["bookings"]
    seen = f"{wording.plural(shared, 'booking')} {'is' if shared == 1 else 'are'} seen through several connections"
    return f" In this copy {seen} and counted once for each, also in sums of all channels." if shared else ""


def bookings_by_channel(source: Source, first: date, last: date) -> Chart:
    """Bookings made per day, stacked by channel."""
    rows = source.rows("bookings_by_channel", first=first, last=last)
    days = sorted({row["booking_date"] for row in rows})

    def behind(number: str, kind: str, **only: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: (
            bookings_page(row, kind, row["booking_date"], row["booking_date"], **only) if row[number] else ""
        )

    colors = channel_colors(source)
    series, leads = by_channel(rows, days, "booking_date", "bookings", behind("bookings", "made"), colors)
    doubtful = sorted({row["booking_date"] for row in rows if not row["is_complete"]})
    return Chart(
        id="bookings-by-channel",
        title="Bookings made per day, by channel",
        option=charts.bars([wording.short_day(day) for day in days], series, colors=colors),
        table=listed(
            "Bookings made per day and channel",
            [row for row in reversed(rows) if row["made"] or not row["is_complete"]],
            Column("Day", "date", "booking_date"),
            Column("Channel", "text", "channel_name"),
            Column("Bookings", "number", "bookings", href=behind("bookings", "made")),
            Column("Cancelled since", "number", "cancelled", href=behind("cancelled", "lost")),
            Column("Guests", "number", "guests", none="unknown", href=behind("guests", "made", only="still")),
            Column("Not sold", "number", lambda row: row["made"] - row["bookings"]),
            Column("Complete", "yes", "is_complete"),
            empty="No booking was made in this time.",
        ),
        download="fct_bookings",
        note=_doubt(doubtful),
        leads=leads,
    )


def by_channel(
    rows: Sequence[Mapping[str, Any]],
    across: Sequence[object],
    place: str,
    amount: str,
    behind: Callable[[Mapping[str, Any]], str],
    colors: Mapping[str, str],
) -> tuple[dict[str, list[float | None]], dict[str, list[str]]]:
    """A series for each of the largest channels, in the order of `colors`, and one for the others.

    `place` and `amount` are columns.

    Also the pages that are `behind` the values of a channel: '' where two connections have its name.
    """
    totals: dict[str, Any] = defaultdict(int)
    for row in rows:
        totals[wording.plain(row["channel_name"])] += row[amount] or 0
    named = sorted((name for name in totals if totals[name]), key=lambda name: (-totals[name], name))
    others = f"{len(named) - CHANNELS} others"
    drawn = in_order(named[:CHANNELS], colors)
    found: dict[str, list[Any]] = {name: [0] * len(across) for name in drawn}
    if len(named) > CHANNELS:
        found[others] = [0] * len(across)
    leads = {name: [""] * len(across) for name in drawn}
    for row in rows:
        name = wording.plain(row["channel_name"])
        series = found.get(name, found.get(others))
        if series is not None and row[amount]:
            at = across.index(row[place])
            if name in leads:
                leads[name][at] = "" if series[at] else behind(row)
            series[at] += row[amount]
    return {name: [float(value) for value in values] for name, values in found.items()}, leads


def channel_colors(source: Source) -> dict[str, str]:
    """Each channel's colour, the same in every picture; the last one is for all that are not drawn.

    By when channels were first pulled, so that a new channel, or a new name, changes the colour of no other.
    """
    rows = sorted(source.rows("channels"), key=lambda row: row["place"])
    names = dict.fromkeys(wording.plain(row["channel_name"]) for row in rows)
    return {name: charts.SERIES[number % (len(charts.SERIES) - 1)] for number, name in enumerate(names)}


def in_order(names: Collection[str], colors: Mapping[str, str]) -> list[str]:
    """Channels as every picture has them, whichever sells most in it: in the order of `colors`; one without comes last."""
    return [*(name for name in colors if name in names), *(name for name in names if name not in colors)]


def _doubt(days: Sequence[date]) -> str:
    """Which days are not complete; the last one is not over."""
    said = "Sold bookings by the day they were made (business time zone), including those cancelled since."
    if not days:
        return said
    if len(days) == 1:
        return f"{said} {wording.short_day(days[0])} is incomplete."
    return f"{said} {len(days)} days are incomplete, {days[0]} to {days[-1]}."


def revenue(
    source: Source, first: date, last: date, today: date, only: Mapping[str, Any] = _ANY, known: date | None = None
) -> tuple[list[Chart], str]:
    """Sold bookings per month of travel: a chart for each of the six largest currencies, and what is in none of them.

    With `known`, the first day of travel of which all bookings are known, the months a year earlier stand beside them: beside
    one that is not over, what that had at the same time. A month of which not all days were asked for is compared with none.
    """
    rows = source.rows("revenue_months", first=first, last=last, **only, by=None)
    drawn, left = largest_currencies(rows)
    across = months(first, last)
    colors = channel_colors(source)
    ago = known_a_year_ago(first, last, known)
    earlier = revenue_year_earlier(source, first, last, today, only) if ago else []
    until = known_to(source, only["channel"]) or date.max
    compared = known_a_year_ago(first, last, known, until)

    def behind(row: Mapping[str, Any]) -> str:
        of = {**row, "product_key": only["product"]} if only["product"] else row
        days = month_days(row["travel_month"])
        return bookings_page(of, "sold", max(first, days[0]), min(last, days[1])) if row["bookings"] else ""

    made = [
        _revenue_of(name, of, across, today, colors, earlier, ago, compared, until, behind)
        for name, of in drawn.items()
    ]
    open_dated = undated(source.rows("revenue_undated", **only))
    return made, " ".join(filter(None, (left, open_dated)))


def revenue_year_earlier(
    source: Source, first: date, last: date, today: date, only: Mapping[str, str | None]
) -> list[Mapping[str, Any]]:
    """Rows of `revenue_months` of a year earlier: of a month that is not over what it had at the same time."""
    over = month_start(year_earlier(today))
    return [
        row
        for by in (None, year_earlier(today - DAY))
        for row in source.rows("revenue_months", first=year_earlier(first), last=year_earlier(last), **only, by=by)
        if (row["travel_month"] < over) is (by is None)
    ]


def known_a_year_ago(first: date, last: date, known: date | None, until: date = date.max) -> dict[date, date]:
    """Each month of these days of which all that is asked for a year earlier is known, and that month; all from `known` on.

    With `until`, the last day of travel that was asked for, only months of which all is known now, too.
    """
    begins = year_earlier(first)
    both = ((month, year_earlier(month)) for month in months(first, min(last, until)))
    return {
        month: ago
        for month, ago in both
        if known and max(begins, ago) >= known and min(last, month_end(month)) <= until
    }


def largest_currencies(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, list[Mapping[str, Any]]], str]:
    """The rows of the six currencies with the most bookings, and a sentence that names the others."""
    by_currency: dict[str | None, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_currency[row["currency"]].append(row)
    bookings = {currency: sum(row["bookings"] for row in of) for currency, of in by_currency.items()}
    ordered = sorted((c for c in bookings if c is not None), key=lambda c: (-bookings[c], c))
    left = [f"{c} ({bookings[c]:,} bookings)" for c in ordered[_CURRENCIES:]]
    if None in bookings:
        left.append(f"no currency ({bookings[None]:,} bookings)")
    return {c: by_currency[c] for c in ordered[:_CURRENCIES]}, f"Not drawn: {', '.join(left)}." if left else ""


def undated(rows: Sequence[Mapping[str, Any]]) -> str:
    """What no month of travel can show, as a sentence."""
    told = [
        f"{row['bookings']:,} sold "
        + (
            f"in {wording.plain(row['currency'] or 'no currency')}"
            if row["retail_amount"] is None or row["currency"] is None
            else f"for {wording.money_text(row['retail_amount'], row['currency'])}"
        )
        + (f", {row['redeemed']:,} of them used" if row["redeemed"] else "")
        for row in rows
    ]
    return f"Open-dated bookings are in no month: now there are {'; '.join(told)}." if told else ""


def _revenue_of(
    currency: str,
    rows: Sequence[Mapping[str, Any]],
    across: Sequence[date],
    today: date,
    colors: Mapping[str, str],
    earlier: Sequence[Mapping[str, Any]],
    ago: Mapping[date, date],
    compared: Collection[date],
    until: date,
    behind: Callable[[Mapping[str, Any]], str],
) -> Chart:
    """`earlier` are the rows of a year earlier, of all currencies; `ago` has a month's month of then, where that is known.

    Of months that are not `compared` travel after `until` was not asked for: who sold nothing in them may do so yet.
    """
    earlier = [row for row in earlier if row["currency"] == currency]
    before = {(row["connection_id"], row["travel_month"]): row for row in earlier}

    def year_before(row: Mapping[str, Any]) -> Decimal | None:
        if (month := ago.get(row["travel_month"])) is None:
            return None
        then = before.get((row["connection_id"], month))
        return (then and then["retail_amount"]) or Decimal(0)

    there = {(row["connection_id"], row["travel_month"]) for row in rows}
    sold_then_alone = [
        {**row, **(_NOTHING_SOLD if month in compared else _NOT_KNOWN), "travel_month": month}
        for month, month_ago in ago.items()
        for (connection, then), row in before.items()
        if then == month_ago and (connection, month) not in there
    ]
    lines = sorted(
        [*rows, *sold_then_alone], key=lambda row: (row["travel_month"], row["channel_name"], row["connection_id"])
    )
    in_all = [
        float(sum(row["retail_amount"] or 0 for row in earlier if row["travel_month"] == ago[month]))
        if month in compared
        else None
        for month in across
    ]
    total = sum((row["retail_amount"] or Decimal(0) for row in rows), Decimal(0))
    without = sum(row["without_retail"] for row in rows)
    count, by = sum(row["bookings"] for row in rows), year_earlier(today - DAY)
    series, leads = by_channel(rows, across, "travel_month", "retail_amount", behind, colors)
    series = {
        name: [value if value or month <= until else None for month, value in zip(across, values, strict=True)]
        for name, values in series.items()
    }
    return Chart(
        id=f"revenue-{charts.part_of_id(currency)}",
        title=f"Revenue in {wording.plain(currency)}, by month of travel",
        option=charts.bars(
            [wording.month(month) for month in across],
            series,
            colors=colors,
            faint_from=next((n for n, month in enumerate(across) if month > today), None),
            beside={"a year earlier": in_all} if compared else {},
        ),
        table=listed(
            f"Sold bookings in {wording.plain(currency)}, by month of travel and channel",
            lines,
            Column("Travel month", "month", "travel_month"),
            Column("Channel", "text", "channel_name"),
            *leading(behind, *SOLD),
            *([Column("Retail a year earlier", "money", year_before, none="unknown")] if ago else []),
        ),
        download="fct_bookings",
        height=260,
        leads=leads,
        note=f"{wording.money_text(total, currency)} retail in {wording.plural(count, 'sold booking')}"
        + (f"; {without:,} of them have no price" if without else "")
        + ". Months to come are paler."
        + (f" A year earlier: of months that are not over, by the end of {wording.day(by)}." if ago else ""),
    )
