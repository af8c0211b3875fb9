"""Occupancy: how full the days of travel are."""

from datetime import date
from typing import Any

from octo_sync.dashboard import charts, pictures
from octo_sync.dashboard.days import DAY
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Chart, Column, Filters, Page, Section, Table, View, listed
from octo_sync.errors import QueryError
from octo_sync.flows import wording

__all__ = ["PAGE", "build"]

_DAYS, _MOST = 42, 190


def build(source: Source, filters: Filters) -> View:
    """The page; without dates the six weeks from the copy's today on."""
    today = standing(source).today or date.min
    first = filters.first or (filters.last - DAY * (_DAYS - 1) if filters.last else today)
    last = filters.last or first + DAY * (_DAYS - 1)
    if (last - first).days >= _MOST:
        raise QueryError(f"{first} to {last} are more than {_MOST} days, too many for a map; choose fewer.")
    asked = {"first": first, "last": last, "product": filters.product}
    days = source.rows("occupancy_days", **asked)
    return View(
        "Occupancy",
        f"Travel dates {wording.day(first)} to {wording.day(last)}. Counts all sellers' bookings, not only ours.",
        [
            Section("", [pictures.fill_map(source, first, last, filters.product)]),
            Section("", [_days(days)]),
            Section("Products", [_products(source.rows("occupancy_products", **asked))]),
        ],
        Filters(first=first, last=last, product=filters.product),
    )


def _days(rows: list[dict[str, Any]]) -> Chart:
    return Chart(
        id="fill-by-day",
        title="Overall occupancy by day",
        option=charts.lines(
            [wording.short_day(row["travel_date"]) for row in rows],
            {"Occupancy": [row["fill_rate"] for row in rows]},
            percent=True,
        ),
        table=listed(
            "Overall occupancy by day",
            rows,
            Column("Day", "date", "travel_date"),
            Column("Occupancy", "share", "fill_rate", none="unknown"),
            Column("Taken", "number", "taken", none="unknown"),
            Column("Capacity", "number", "capacity", none="unknown"),
            Column("Departures", "number", "departures"),
            Column("Sold out", "number", "sold_out_departures"),
            Column("Closed", "number", "closed_departures"),
            Column("Our guests", "number", "our_pax", none="unknown"),
            empty="No departure is known in this time.",
        ),
        download="agg_occupancy_daily",
        height=240,
        note="Places taken, of those of open departures with a known capacity. Gaps are days without such a departure.",
    )


def _products(rows: list[dict[str, Any]]) -> Table:
    return listed(
        "Occupancy by product",
        rows,
        Column("Product", "text", "product_name"),
        Column("Occupancy", "share", "fill_rate", none="unknown"),
        Column("Taken", "number", "taken", none="unknown"),
        Column("Capacity", "number", "capacity", none="unknown"),
        Column("Days", "number", "days"),
        Column("Departures", "number", "departures"),
        Column("Sold-out days", "number", "sold_out_days"),
        Column("Closed days", "number", "closed_days"),
        Column("Our guests", "number", "our_pax", none="unknown"),
        Column("Complete", "yes", "is_covered"),
        empty="No departure is known in this time.",
    )


PAGE = Page("occupancy", "Occupancy", 20, build, frozenset({"dates", "product"}))
