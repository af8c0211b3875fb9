"""The pick-up curve: guests on the books by days before travel."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from octo_sync.dashboard import charts
from octo_sync.dashboard.days import month_days, month_start, year_earlier
from octo_sync.dashboard.links import columns_of, month_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Chart, Column, listed
from octo_sync.flows import wording

_DAYS_OUT = (180, 120, 90, 60, 45, 30, 21, 14, 7, 3, 1, 0)


def share_of(part: int | None, whole: int | None) -> float | None:
    """One number of people as a share of another; None where either is unknown or the whole is 0."""
    return part / whole if part is not None and whole else None


def drawn(
    source: Source,
    first: date,
    last: date,
    today: date,
    product: str | None = None,
    channel: str | None = None,
    *,
    year_ago: bool = False,
) -> Chart:
    """Guests on the books by days before travel, a line for each month of travel from the month of `first` to that of `last`.

    A month that is not over has points up to where all of its days have come: the others are not known yet. With `year_ago`
    the same month of the year before stands beside it, where all of that is known.
    """
    asked = {"product": product, "channel": channel}
    chosen = columns_of(asked)
    rows = source.rows("pickup", first=first, last=last, **asked)
    # A month has one colour on every page, whichever months stand beside it.
    colors = {
        month: charts.SERIES[(12 * month.year + month.month) % len(charts.SERIES)]
        for month in sorted({r["travel_month"] for r in rows})
    }
    styles = {row["travel_month"]: "dashed" for row in rows if not row["is_final"]}
    to_come = {month: (month_days(month)[1] - today).days for month in styles}
    known = [row for row in rows if row["days_out"] >= to_come.get(row["travel_month"], 0)]
    if year_ago:
        after = {year_earlier(month): month for month in styles}
        before = source.rows("pickup", first=year_earlier(month_start(first)), last=year_earlier(last), **asked)
        for row in before:
            then = row["travel_month"]
            if row["is_final"] and row["is_complete"] and then in after and (then not in colors or then in styles):
                colors[then], styles[then] = colors[after[then]], "dotted"
                known.append(row)
    found = {(row["travel_month"], row["days_out"]): _then_on_books(row) for row in known}
    without = sum(row["bookings_without_guests"] for row in rows if row["days_out"] == 0)
    return Chart(
        id="pick-up",
        title="Pick-up: guests on the books, by days before travel",
        option=charts.lines(
            [f"{out} d" for out in _DAYS_OUT],
            {wording.month(month): [found.get((month, out)) for out in _DAYS_OUT] for month in colors},
            colors={wording.month(month): color for month, color in colors.items()},
            styles={wording.month(month): style for month, style in styles.items()},
        ),
        table=listed(
            "Guests on the books, by month of travel and days before it",
            known,
            Column("Travel month", "month", "travel_month"),
            Column("Days before", "number", "days_out"),
            Column("Guests on the books then", "number", _then_on_books, none="unknown"),
            Column("Of them cancelled since", "number", "cancelled_since_guests", none="unknown"),
            Column(
                "Final guests",
                "number",
                lambda row: row["final_guests"] if row["is_final"] else None,
                none="not over",
                href=lambda row: month_page("final_guests", "sold", "travel_month")({**row, **chosen}),
            ),
            Column(
                "Share booked by then",
                "share",
                lambda row: share_of(row["guests_on_books"], row["final_guests"]) if row["is_final"] else None,
            ),
            Column("Month over", "yes", "is_final"),
            Column("Complete", "yes", "is_complete"),
            empty="No sold booking travels in these months.",
        ),
        download="agg_pickup_curve",
        note="Dashed: months in progress; they end at the days before travel that all their days have reached."
        + (" Dotted: the same month a year earlier." if "dotted" in styles.values() else "")
        + (f" Excludes {without:,} bookings without a number of guests." if without else ""),
    )


def _then_on_books(row: Mapping[str, Any]) -> int | None:
    """Also those who cancelled since, as pace has it."""
    stayed, left = row["guests_on_books"], row["cancelled_since_guests"]
    return None if stayed is None or left is None else stayed + left
