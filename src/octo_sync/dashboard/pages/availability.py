"""Availability health: what is wrong with the days ahead."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

from octo_sync.dashboard import charts
from octo_sync.dashboard.columns import leading
from octo_sync.dashboard.days import DAY
from octo_sync.dashboard.links import address, departure_page, occupancy_page, start_text
from octo_sync.dashboard.pages.occupancy import MOST_DAYS
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Chart, Column, Filters, Page, Section, Table, Tile, Tiles, View, listed
from octo_sync.dashboard.week_earlier import ProductDays, occupancy, product_days
from octo_sync.flows import wording

_DRAWN = 40
_SOON = 30
_WEAK = 0.2
_FASTER = 50
_PAST = 90
"""Days of travel that are over, of which sell-outs are shown."""
_Behind = Callable[[Mapping[str, Any]], str]


def build(source: Source, filters: Filters) -> View:
    """The page: from the copy's today on, as far as was loaded."""
    now = standing(source)
    rows = source.rows("availability", product=filters.product)
    today = now.today or date.min
    since = now.today - DAY * _PAST if now.today else date.min
    until = min(now.availability_to or today, today + DAY * (MOST_DAYS - 1))

    loaded = f"Availability was fetched up to {now.availability_to}." if now.availability_to else ""

    def behind(row: Mapping[str, Any]) -> str:
        """The same days on the page Occupancy, and what departs on them."""
        return occupancy_page(today, until, row.get("product_key") or filters.product, "products")

    return View(
        "Availability health",
        "The days ahead of each product on sale, from the day of the last verification.",
        [
            Section("", [Tiles(_tiles(rows, _ahead(source, rows, filters.product), behind, filters.product))]),
            Section("", [_chart(rows, behind)]),
            _faster(source.rows("availability_faster", product=filters.product)),
            _sold_out(source.rows("availability_sellouts", first=since, product=filters.product)),
            Section("Products", [_table(rows, behind)], loaded, "products"),
        ],
        Filters(product=filters.product),
    )


def _faster(rows: list[dict[str, Any]]) -> Section:
    """Departures that are fuller than others of their option were so many days ahead."""
    table = listed(
        "Departures that fill faster than usual",
        [row for row in rows if row["slot_key"]],
        Column("Departure", "text", start_text, href=departure_page),
        Column("Product", "text", "product_name"),
        Column("Option", "text", "option_name"),
        Column("Days ahead", "number", "days_ahead"),
        Column("Taken", "number", "taken"),
        Column("Capacity", "number", "capacity"),
        Column("Full", "share", "fill_rate"),
        Column("Usually", "share", "usual_fill_rate"),
        Column("Departures compared", "number", "compared_departures"),
        empty="No departure that could be compared fills faster.",
        most=_FASTER,
    )
    all_of_them, compared, since = rows[0]["departures"], rows[0]["compared"], rows[0]["known_since_utc"]
    too_few = (
        "The other options have fewer than five past departures to compare with"
        if compared
        else "No option has five past departures to compare with yet"
    )
    known = f" Departures are known from {wording.day(since)} on." if since else ""
    note = (
        "At least a fifth of the places fuller than the median of the option's departures of the last eight weeks, each as it "
        f"was so many days ahead. {compared:,} of {all_of_them:,} open departures of the next 30 days could be compared. "
        f"{too_few}.{known}"
    )
    return Section("Fills faster than usual", [table], note, id="faster")


def _sold_out(rows: list[dict[str, Any]]) -> Section:
    """How early departures sold out, of those that were seen on sale before."""
    table = listed(
        "Departures that sold out, by product",
        [row for row in rows if row["sold_out"]],
        Column("Product", "text", "product_name"),
        Column("Sold out", "number", "sold_out", href=_full),
        Column("Median days ahead of travel", "number", "median_days_ahead"),
        Column("Opened again", "number", "opened_again"),
        empty="No departure of these days was seen to sell out.",
    )
    others = sum(row["already_sold_out"] for row in rows)
    unknown = (
        f" {others:,} {'other was' if others == 1 else 'others were'} sold out when first seen: since when is unknown."
    )
    note = (
        f"Departures of the last {_PAST} days and ahead that this copy saw on sale before. The number leads to those that are "
        f"still sold out, or nearly.{unknown if others else ''}"
    )
    return Section("Sold out ahead", [table], note, id="sold-out")


def _full(row: Mapping[str, Any]) -> str:
    """Those of a product on the page Occupancy; '' where they are of more days than it shows."""
    first, last = row["first_date"], row["last_date"]
    return occupancy_page(first, last, row["product_key"], "full") if (last - first).days < MOST_DAYS else ""


def _ahead(source: Source, rows: list[dict[str, Any]], product: str | None) -> ProductDays:
    """The days that the rows count, each product's from its own today on."""
    todays = {row["product_key"]: row["as_of_date"] for row in rows}
    last = max((row["last_day_loaded"] for row in rows if row["last_day_loaded"]), default=date.min)
    found = product_days(source, min(todays.values(), default=date.min), last, product)
    now, then = (
        {key: row for key, row in of.items() if key[1] >= todays.get(key[0], date.max)}
        for of in (found.now, found.then)
    )
    return ProductDays(now, then)


def _many(which: Callable[[Mapping[str, Any]], bool], days: Sequence[Mapping[str, Any]]) -> int:
    return sum(map(which, days))


def _is_sold_out(row: Mapping[str, Any]) -> bool:
    return bool(row["sold_out"] and row["sold_out"] + row["closed"] == row["departures"])


def _is_closed(row: Mapping[str, Any]) -> bool:
    return bool(row["closed"] == row["departures"])


def _is_weak(row: Mapping[str, Any]) -> bool:
    rate = occupancy([row])
    return rate is not None and rate < _WEAK and not _is_sold_out(row)


def _tiles(rows: list[dict[str, Any]], ahead: ProductDays, behind: _Behind, product: str | None) -> list[Tile]:
    days = sum(row["days"] for row in rows)
    soon = sum((row["last_day_loaded"] or date.min) < row["as_of_date"] + DAY * _SOON for row in rows)
    return [
        *(
            Tile(
                label,
                wording.count(sum(row[f"{of}_days"] for row in rows)),
                f"{ahead.beside_known(which)}{what}of {days:,} days on which a product has departures",
                href=behind({}),
                name=label.lower().replace(" ", "-"),
                course=ahead.course(partial(_many, which)),
                course_of="Products, a day of travel",
            )
            for label, of, what, which in (
                ("Sold-out days", "sold_out", "", _is_sold_out),
                ("Closed days", "closed", "", _is_closed),
                ("Weak days", "weak", "less than 20 % full, ", _is_weak),
            )
        ),
        Tile(
            f"Without departures {_SOON} days from now",
            wording.count(soon),
            f"of {len(rows):,} products: the last known departure is sooner, or there is none",
            "mark" if soon else "good",
            href=address("availability", "products", product=product),
            name="ending-soon",
        ),
    ]


def _chart(rows: list[dict[str, Any]], behind: _Behind) -> Chart:
    drawn = [row for row in rows if row["days"]][:_DRAWN]
    left = len(rows) - len(drawn)

    def column(name: str) -> list[int]:
        return [row[name] for row in drawn]

    there, names = [behind(row) for row in drawn], [wording.plain(row["product_name"]) for row in drawn]
    series = {
        "sold out": ("var(--sold-out)", column("sold_out_days")),
        "closed": ("var(--closed)", column("closed_days")),
        "less than 20 % full": ("var(--fill-2)", column("weak_days")),
        "other days": ("var(--fill-4)", [_other_days(row) for row in drawn]),
    }
    return Chart(
        id="health",
        title="Days ahead, by product",
        option=charts.shares_across(names, series),
        leads=dict.fromkeys(series, there),
        table=listed(
            "Days ahead, by product",
            drawn,
            Column("Product", "text", "product_name"),
            *leading(
                behind,
                Column("Sold out", "number", "sold_out_days"),
                Column("Closed", "number", "closed_days"),
                Column("Less than 20 % full", "number", "weak_days"),
                Column("Other days", "number", _other_days),
            ),
            empty="No departure ahead is known.",
        ),
        download="availability_health",
        height=charts.height_across(names),
        note=f"{len(drawn)} of {len(rows):,} products: those with the most sold-out and closed days; the table below has all."
        if left > 0
        else "",
    )


def _other_days(row: dict[str, Any]) -> int:
    return int(row["days"] - row["sold_out_days"] - row["closed_days"] - row["weak_days"])


def _table(rows: list[dict[str, Any]], behind: _Behind) -> Table:
    return listed(
        "Health of each product's availability",
        rows,
        Column("Product", "text", "product_name"),
        *leading(
            behind,
            Column("Days", "number", "days"),
            Column("Sold out", "number", "sold_out_days"),
            Column("Closed", "number", "closed_days"),
            Column("Weak", "number", "weak_days"),
        ),
        Column("Next sold-out day", "date", "next_sold_out_day", none="none"),
        Column("Last departure", "date", "last_day_loaded", none="none"),
        Column("Fetched up to", "date", "covered_to", none="never"),
        Column("Verified", "instant", "verified_at_utc", none="never"),
        Column("Complete", "yes", "is_covered"),
        empty="No product is on sale.",
    )


PAGE = Page("availability", "Availability", 60, build, frozenset({"product"}))
