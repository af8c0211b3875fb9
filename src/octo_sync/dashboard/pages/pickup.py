"""Pick-up: how early the months fill up, and how that compares with last year."""

from collections.abc import Callable
from datetime import date
from operator import itemgetter
from typing import Any

from octo_sync.dashboard import charts, pictures
from octo_sync.dashboard.days import month_days, month_end, month_start, months
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Chart, Column, Filters, Page, Section, Table, View, listed
from octo_sync.errors import QueryError
from octo_sync.flows import wording

_BACK, _AHEAD, _MOST = 3, 4, 15
"""Months of travel before and after the current one, and at most."""
_OUT = (60, 30, 14, 7)
_ROWS = 200
_EARLY = {
    "same_day": "same day",
    "days_1_2": "1-2 days",
    "days_3_7": "3-7 days",
    "days_8_30": "8-30 days",
    "days_31_90": "31-90 days",
    "over_90": "over 90 days",
}
"""A column of `lead_times` → what it counts."""


def build(source: Source, filters: Filters) -> View:
    """The page; the months of `first` and `last` and those between; where one is given, as many as there are otherwise."""
    today = standing(source).today or date.min
    first = month_start(filters.first) if filters.first else month_start(filters.last or today, -_BACK)
    last = filters.last or month_end(max(first, today), _AHEAD)
    if len(months(first, last)) > _MOST:
        raise QueryError(f"{first:%Y-%m} to {last:%Y-%m} are more than {_MOST} months; choose fewer.")
    only: dict[str, Any] = {"product": filters.product, "channel": filters.channel}
    asked: dict[str, Any] = {"first": first, "last": last, **only}
    guests = source.rows("pace", **asked)
    undated = source.rows("revenue_undated", **only, currency=None)
    return View(
        "Pick-up",
        f"Months of travel {wording.month(f'{first:%Y-%m}')} to {wording.month(f'{last:%Y-%m}')}: guests on the books by "
        "days before travel.",
        [
            Section("", [pictures.pick_up(source, first, last, today, **only)]),
            Section(
                "Pace",
                [
                    _pace(guests),
                    _parts(source, guests, asked),
                    _amounts(source.rows("pace_amounts", **asked)),
                ],
                " ".join(filter(None, (_by_the_end(guests), pictures.undated(undated)))),
            ),
            Section(
                "Lead time",
                [_lead_times(source.rows("lead_times", **asked), pictures.channel_colors(source))],
                "Sold bookings that travel in these months, by days from booking to travel, both at the venue. A month that is "
                "not over has only its early bookings.",
                "lead-time",
            ),
            Section("Past months", [_shares(source.rows("pickup", **asked))]),
        ],
        Filters(first=first, last=last, **only),
    )


def _by_the_end(rows: list[dict[str, Any]]) -> str:
    """What the numbers of pace mean."""
    days = [row["as_of_date"] for row in rows]
    return (
        f"Counted at the end of {wording.day(max(days))}, the last whole day. New: booked less cancelled. Usual week: the "
        "average of the four weeks before the last 7 days. Last year: the same month, at the same time of last year and in "
        "the end."
        if days
        else ""
    )


def _change(now: str) -> Callable[[dict[str, Any]], float | None]:
    """Against the same time last year, where all of both months is known."""

    def change(row: dict[str, Any]) -> float | None:
        if not (row["is_complete"] and row["is_last_year_complete"]) or row[now] is None or not row["last_year"]:
            return None
        return float(row[now] / row["last_year"] - 1)

    return change


def _then(name: str) -> Callable[[dict[str, Any]], Any]:
    """What last year had, where all of that is known."""
    return lambda row: row[name] if row["is_last_year_complete"] else None


def _pace(rows: list[dict[str, Any]]) -> Table:
    return listed(
        "Guests on the books, by month of travel",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column("Guests", "number", "pax", none="unknown"),
        Column("New in a day", "number", "last_day", none="unknown"),
        Column("New in 7 days", "number", "last_week", none="unknown"),
        Column("Usual week", "number", "usual_week", none="unknown"),
        Column("New in 30 days", "number", "last_30_days", none="unknown"),
        Column("Same time last year", "number", _then("last_year"), none="unknown"),
        Column("Change", "share", _change("pax"), none="unknown"),
        Column("Final last year", "number", _then("last_year_final"), none="unknown"),
        Column("Complete", "yes", "is_complete"),
        empty="No sold booking travels in these months.",
    )


def _amounts(rows: list[dict[str, Any]]) -> Table:
    return listed(
        "Retail amounts on the books, by month of travel and currency",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column("Retail", "money", "amount", none="unknown"),
        Column("New in 7 days", "money", "last_week", none="unknown"),
        Column("New in 30 days", "money", "last_30_days", none="unknown"),
        Column("Same time last year", "money", _then("last_year"), none="unknown"),
        Column("Change", "share", _change("amount"), none="unknown"),
        Column("Final last year", "money", _then("last_year_final"), none="unknown"),
        Column("Complete", "yes", "is_complete"),
        empty="No sold booking travels in these months.",
    )


def _parts(source: Source, months: list[dict[str, Any]], asked: dict[str, Any]) -> Table:
    """Of those from the first to the last that is known in both years: one that is not would take all with it."""
    known = [row["travel_month"] for row in months if row["is_complete"] and row["is_last_year_complete"]]
    first, last = (month_days(known[0])[0], month_days(known[-1])[1]) if known else (asked["first"], asked["last"])
    return listed(
        f"Guests on the books by product and channel, {wording.month(f'{first:%Y-%m}')} to {wording.month(f'{last:%Y-%m}')}",
        source.rows("pace_parts", **{**asked, "first": first, "last": last}),
        Column("Product", "text", "product_name"),
        Column("Channel", "text", "channel_name"),
        Column("Guests", "number", "pax", none="unknown"),
        Column("New in 7 days", "number", "last_week", none="unknown"),
        Column("Usual week", "number", "usual_week", none="unknown"),
        Column("New in 30 days", "number", "last_30_days", none="unknown"),
        Column("Same time last year", "number", _then("last_year"), none="unknown"),
        Column("Change", "share", _change("pax"), none="unknown"),
        Column("Final last year", "number", _then("last_year_final"), none="unknown"),
        Column("Complete", "yes", "is_complete"),
        empty="No sold booking travels in these months.",
        most=_ROWS,
    )


def _lead_times(rows: list[dict[str, Any]], colors: dict[str, str]) -> Chart:
    return Chart(
        id="lead-times",
        title="Days from booking to travel",
        option=charts.bars(
            list(_EARLY.values()),
            {wording.plain(row["channel_name"]): [row[name] for name in _EARLY] for row in rows[: pictures.CHANNELS]},
            colors=colors,
        ),
        table=listed(
            "Days from booking to travel, by channel",
            rows,
            Column("Channel", "text", "channel_name"),
            Column("Bookings", "number", "bookings"),
            Column("Median days", "number", "median_lead_days", none="unknown"),
            *(Column(words, "number", name) for name, words in _EARLY.items()),
            Column("Not known", "number", "not_known"),
            empty="No sold booking travels in these months.",
        ),
        download="fct_bookings",
        height=240,
    )


def _shares(rows: list[dict[str, Any]]) -> Table:
    found = {(row["travel_month"], row["days_out"]): row for row in rows}

    def share(out: int) -> Callable[[dict[str, Any]], float | None]:
        return lambda final: pictures.share_of(found[final["travel_month"], out]["pax_on_books"], final["final_pax"])

    return listed(
        "Share of a month's guests that was on the books",
        sorted((row for row in rows if row["is_final"] and not row["days_out"]), key=itemgetter("travel_month")),
        Column("Travel month", "month", "travel_month"),
        Column("Final guests", "number", "final_pax", none="unknown"),
        *(Column(f"{out} days before", "share", share(out)) for out in _OUT),
        Column("Bookings without guests", "number", "bookings_without_pax"),
        Column("Complete", "yes", "is_complete"),
        empty="No month shown is over with complete data.",
    )


PAGE = Page("pickup", "Pick-up", 30, build, frozenset({"dates", "product", "channel"}), by_month=True)
