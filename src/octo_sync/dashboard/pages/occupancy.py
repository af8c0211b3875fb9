"""Occupancy: how full the days of travel are."""

from datetime import date
from typing import Any

from octo_sync.dashboard import charts, pictures
from octo_sync.dashboard.days import DAY
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Chart, Column, Filters, Page, Section, Table, View
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
        f"Travel dates {wording.day(first)} to {wording.day(last)}. Everyone's sales are counted, not only ours.",
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
        title="How full each day is, all of it together",
        option=charts.lines(
            [wording.short_day(row["travel_date"]) for row in rows],
            {"Full": [row["fill_rate"] for row in rows]},
            percent=True,
        ),
        table=Table(
            "How full each day of travel is",
            [
                Column("Day", "date"),
                Column("Full", "share", none="unknown"),
                Column("Taken", "number", none="unknown"),
                Column("Capacity", "number", none="unknown"),
                Column("Departures", "number"),
                Column("Sold out", "number"),
                Column("Closed", "number"),
                Column("Our guests", "number", none="unknown"),
            ],
            [
                (
                    row["travel_date"],
                    row["fill_rate"],
                    row["taken"],
                    row["capacity"],
                    row["departures"],
                    row["sold_out_departures"],
                    row["closed_departures"],
                    row["our_pax"],
                )
                for row in rows
            ],
            empty="No departure is known in this time.",
        ),
        download="agg_occupancy_daily",
        height=240,
        note="Places taken, of those of departures that are open and of known capacity. A gap: none of that day is.",
    )


def _products(rows: list[dict[str, Any]]) -> Table:
    return Table(
        "How full each product is in this time",
        [
            Column("Product"),
            Column("Full", "share", none="unknown"),
            Column("Taken", "number", none="unknown"),
            Column("Capacity", "number", none="unknown"),
            Column("Days", "number"),
            Column("Departures", "number"),
            Column("Sold-out days", "number"),
            Column("Closed days", "number"),
            Column("Our guests", "number", none="unknown"),
            Column("Verified wholly", "yes"),
        ],
        [
            (
                row["product_name"],
                row["fill_rate"],
                row["taken"],
                row["capacity"],
                row["days"],
                row["departures"],
                row["sold_out_days"],
                row["closed_days"],
                row["our_pax"],
                row["is_covered"],
            )
            for row in rows
        ],
        empty="No departure is known in this time.",
    )


PAGE = Page("occupancy", "Occupancy", 20, build, frozenset({"dates", "product"}))
