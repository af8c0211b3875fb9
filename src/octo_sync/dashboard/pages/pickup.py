"""Pick-up: how early the months fill up."""

from datetime import date
from typing import Any

from octo_sync.dashboard import pictures
from octo_sync.dashboard.days import month_end, month_start, months
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Column, Filters, Page, Section, Table, View
from octo_sync.errors import QueryError
from octo_sync.flows import wording

__all__ = ["PAGE", "build"]

_BACK, _AHEAD, _MOST = 3, 4, 15
"""Months of travel before and after the current one, and at most."""
_OUT = (60, 30, 14, 7)


def build(source: Source, filters: Filters) -> View:
    """The page; the months of `first` and `last` and those between; where one is given, as many as there are otherwise."""
    today = standing(source).today or date.min
    first = month_start(filters.first) if filters.first else month_start(filters.last or today, -_BACK)
    last = filters.last or month_end(max(first, today), _AHEAD)
    if len(months(first, last)) > _MOST:
        raise QueryError(f"{first:%Y-%m} to {last:%Y-%m} are more than {_MOST} months; choose fewer.")
    return View(
        "Pick-up",
        f"Months of travel {wording.month(f'{first:%Y-%m}')} to {wording.month(f'{last:%Y-%m}')}: how many guests were on the "
        "books so many days before they travel.",
        [
            Section("", [pictures.pick_up(source, first, last, today, filters.product)]),
            Section(
                "Shares of the months that are over",
                [_shares(source.rows("pickup", first=first, last=last, product=filters.product))],
            ),
        ],
        Filters(first=first, last=last, product=filters.product),
    )


def _shares(rows: list[dict[str, Any]]) -> Table:
    over = sorted({row["travel_month"] for row in rows if row["is_final"]})
    found = {(row["travel_month"], row["days_out"]): row for row in rows}

    def line(month: str) -> tuple[object, ...]:
        final = found[month, 0]["final_pax"]
        shares = [pictures.share_of(found[month, out]["pax_on_books"], final) for out in _OUT]
        return (
            wording.month(month),
            final,
            *shares,
            found[month, 0]["bookings_without_pax"],
            found[month, 0]["is_complete"],
        )

    return Table(
        "Share of a month's guests that was on the books",
        [
            Column("Travel month"),
            Column("Guests in the end", "number", none="unknown"),
            *(Column(f"{out} days before", "share") for out in _OUT),
            Column("Bookings that do not say how many", "number"),
            Column("All known", "yes"),
        ],
        [line(month) for month in over],
        empty="No month of these is over, or none can be known wholly.",
    )


PAGE = Page("pickup", "Pick-up", 30, build, frozenset({"dates", "product"}))
