"""Availability health: what is wrong with the days ahead."""

from typing import Any

from octo_sync.dashboard import charts
from octo_sync.dashboard.days import DAY
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Chart, Column, Filters, Page, Section, Table, Tile, Tiles, View
from octo_sync.flows import wording

__all__ = ["PAGE", "build"]

_DRAWN = 40
_SOON = 30


def build(source: Source, filters: Filters) -> View:
    """The page: from the copy's today on, as far as was loaded."""
    now = standing(source)
    rows = source.rows("availability", product=filters.product)
    return View(
        "Availability health",
        "The days ahead of each product that is offered, from the day of the last verification at the venue on.",
        [
            Section("", [Tiles(_tiles(rows))]),
            Section("", [_chart(rows)]),
            Section("Products", [_table(rows)], _loaded(now.availability_to)),
        ],
        Filters(product=filters.product),
    )


def _loaded(until: object) -> str:
    return f"Availability was asked for up to {until}." if until else ""


def _tiles(rows: list[dict[str, Any]]) -> list[Tile]:
    days = sum(row["days"] for row in rows)
    soon = [
        row
        for row in rows
        if row["last_day_loaded"] is None or row["last_day_loaded"] < row["as_of_date"] + DAY * _SOON
    ]
    return [
        Tile(
            "Sold-out days", wording.count(sum(r["sold_out_days"] for r in rows)), _of_days(days), name="sold-out-days"
        ),
        Tile("Closed days", wording.count(sum(r["closed_days"] for r in rows)), _of_days(days), name="closed-days"),
        Tile(
            "Weak days",
            wording.count(sum(r["weak_days"] for r in rows)),
            f"less than 20 % full, {_of_days(days)}",
            name="weak-days",
        ),
        Tile(
            f"Without departures {_SOON} days from now",
            wording.count(len(soon)),
            f"of {len(rows):,} products: their last known departure is sooner, or there is none",
            "mark" if soon else "good",
            name="ending-soon",
        ),
    ]


def _of_days(days: int) -> str:
    return f"of {days:,} product-days with departures"


def _chart(rows: list[dict[str, Any]]) -> Chart:
    drawn = [row for row in rows if row["days"]][:_DRAWN]
    left = len(rows) - len(drawn)

    def column(name: str) -> list[int]:
        return [row[name] for row in drawn]

    others = [r["days"] - r["sold_out_days"] - r["closed_days"] - r["weak_days"] for r in drawn]
    return Chart(
        id="health",
        title="Days ahead, by product",
        option=charts.shares_across(
            [wording.plain(row["product_name"]) for row in drawn],
            {
                "sold out": ("var(--sold-out)", column("sold_out_days")),
                "closed": ("var(--closed)", column("closed_days")),
                "less than 20 % full": ("var(--fill-2)", column("weak_days")),
                "other days": ("var(--fill-4)", others),
            },
        ),
        table=Table(
            "Days ahead, by product",
            [
                Column("Product"),
                Column("Sold out", "number"),
                Column("Closed", "number"),
                Column("Less than 20 % full", "number"),
                Column("Other days", "number"),
            ],
            [
                (row["product_name"], row["sold_out_days"], row["closed_days"], row["weak_days"], other)
                for row, other in zip(drawn, others, strict=True)
            ],
            empty="No departure ahead is known.",
        ),
        download="availability_health",
        height=100 + max(3, len(drawn)) * 26,
        note=f"{len(drawn)} of {len(rows):,} products: those with the most sold-out and closed days; the table below has all."
        if left > 0
        else "",
    )


def _table(rows: list[dict[str, Any]]) -> Table:
    return Table(
        "Health of each product's availability",
        [
            Column("Product"),
            Column("Days", "number"),
            Column("Sold out", "number"),
            Column("Closed", "number"),
            Column("Weak", "number"),
            Column("Next sold-out day", "date", none="none"),
            Column("Last departure", "date", none="none"),
            Column("Asked for up to", "date", none="never asked"),
            Column("Verified", "instant", none="never"),
            Column("Wholly", "yes"),
        ],
        [
            (
                row["product_name"],
                row["days"],
                row["sold_out_days"],
                row["closed_days"],
                row["weak_days"],
                row["next_sold_out_day"],
                row["last_day_loaded"],
                row["covered_to"],
                row["verified_at_utc"],
                row["is_covered"],
            )
            for row in rows
        ],
        empty="No product is offered.",
    )


PAGE = Page("availability", "Availability", 60, build, frozenset({"product"}))
