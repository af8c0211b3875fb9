"""Maps of how full departures are: tables whose cells have colours, there for a keyboard and without a script."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from octo_sync.dashboard.days import DAY
from octo_sync.dashboard.links import occupancy_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Chart, Column, Shade, Table
from octo_sync.flows import wording

_ROWS = 40
_CLASSES = 5
_SIGNS = {"sold-out": "●", "closed": "\N{MULTIPLICATION SIGN}", "unknown": "?"}
_WORDS = {"sold-out": "sold out", "closed": "closed", "unknown": "capacity unknown"}
LEGEND = (
    *((f"fill-{n}", f"{(n - 1) * 100 // _CLASSES}-{n * 100 // _CLASSES} %") for n in range(1, _CLASSES + 1)),
    *((level, f"{sign} {_WORDS[level]}") for level, sign in _SIGNS.items()),
)
"""What the colours mean: a class of the style sheet, and words."""


def by_day(source: Source, first: date, last: date, product: str | None = None) -> Chart:
    """How full each product is on each day: a map of at most 40 products."""
    rows = source.rows("occupancy", first=first, last=last, product=product)
    days = [first + DAY * n for n in range((last - first).days + 1)]
    lines: dict[str, list[Any]] = {}
    for row in rows:
        key, day = row["product_key"], row["travel_date"]
        name = wording.plain(row["product_name"])
        line = lines.setdefault(key, [name, *[""] * len(days)])
        line[(day - first).days + 1] = shade(
            row, f"{name} · {wording.short_day(day)}", occupancy_page(day, day, key, "departures")
        )
    found = rows[0]["products"] if rows else 0
    more = f"The {_ROWS} products with the most departures, of {found:,}; the filter shows any other, a download all."
    title = f"Occupancy by product and day, {wording.short_day(first)} to {wording.short_day(last)}"
    cells = Table(
        f"{title}; an empty cell: no departure, it has left, or the day was not asked for",
        [Column("Product"), *(Column(wording.short_day(day), "share") for day in days)],
        list(lines.values()),
        empty="No departure is known in this time.",
        more=more if found > _ROWS else "",
        is_map=True,
    )
    note = "Counts all sellers' bookings. Excludes closed departures and those of unknown capacity."
    return Chart("fill-map", title, {}, cells, "agg_occupancy_daily", cells=cells, legend=LEGEND, note=note)


def shade(row: Mapping[str, Any], of: str, href: str = "") -> Shade:
    """A cell: how full what `of` names is, in a colour, in words, and as a number or a sign."""
    open_departures, level = row["departures"] - row["closed_departures"], ""
    if open_departures == 0:
        level = "closed"
    elif row["sold_out_departures"] == open_departures:
        level = "sold-out"
    elif row["fill_rate"] is None:
        level = "unknown"
    if level:
        return Shade(_WORDS[level], href, level, _SIGNS[level], f"{of}: {_WORDS[level]}")
    share = min(1.0, max(0.0, row["fill_rate"]))
    said = wording.share(row["fill_rate"])
    return Shade(
        said,
        href,
        f"fill-{min(_CLASSES, int(share * _CLASSES) + 1)}",
        said.removesuffix(" %"),
        f"{of}: {said} full ({wording.count(row['taken'])} of {wording.count(row['capacity'])})",
    )
