"""Pick-up: how early the months fill up."""

from collections.abc import Callable
from datetime import date
from operator import itemgetter
from typing import Any

from octo_sync.dashboard import pictures
from octo_sync.dashboard.days import month_end, month_start, months
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.standing import standing
from octo_sync.dashboard.view import Column, Filters, Page, Section, Table, View, listed
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
        f"Months of travel {wording.month(f'{first:%Y-%m}')} to {wording.month(f'{last:%Y-%m}')}: guests on the books by "
        "days before travel.",
        [
            Section("", [pictures.pick_up(source, first, last, today, filters.product)]),
            Section(
                "Past months",
                [_shares(source.rows("pickup", first=first, last=last, product=filters.product))],
            ),
        ],
        Filters(first=first, last=last, product=filters.product),
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


PAGE = Page("pickup", "Pick-up", 30, build, frozenset({"dates", "product"}))
