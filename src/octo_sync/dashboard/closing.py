"""What the page Finance says of months of travel that may be closed, and of those that are."""

from collections import Counter
from datetime import date
from typing import Any
from urllib.parse import urlencode

from octo_sync.dashboard.days import month_days
from octo_sync.dashboard.differences import decided
from octo_sync.dashboard.links import booking_page, booking_text
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Column, Table, listed
from octo_sync.flows.periods import CAUSES

_ROWS = 200


def ready(
    source: Source, first: date, last: date, net: list[dict[str, Any]], refunds: list[dict[str, Any]]
) -> list[Table | str]:
    """What speaks against closing each month that is over; open differences where anything was ever compared."""
    rows = source.rows("finance_ready", first=first, last=last)
    if not rows:
        return []
    without_net, not_stated = Counter[str](), Counter[str | None]()
    for row in net:
        without_net[row["travel_month"]] += row["without_net"]
    for row in refunds:
        not_stated[row["cancelled_month"]] += row["refund_not_stated"]
    found, problem = decided(source, source.rows("differences"))
    differ = Counter(f"{row['day']:%Y-%m}" for row in found if row["day"] and row["state"] == "open")
    runs = source.rows("reconcile_runs")
    compared = [(run["window_start"], run["window_end"]) for run in runs if run["verdict"] != "failed"]

    def open_differences(row: dict[str, Any]) -> int | None:
        """None where no comparison looked at the whole month."""
        begins, ends = month_days(row["travel_month"])
        looked = any(since <= begins for since, _ in compared) and any(since <= ends <= to for since, to in compared)
        return differ[row["travel_month"]] if looked else None

    table = listed(
        "May I close? Months that are over and not closed",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column("Ready", "yes", lambda row: row["is_known"] and (not runs or open_differences(row) == 0)),
        Column("Bookings known", "yes", "is_known"),
        Column(
            "Open differences",
            "number",
            open_differences,
            none="not compared",
            href=lambda row: (
                f"reconcile?{urlencode(dict(zip(('first', 'last'), month_days(row['travel_month']), strict=True)))}"
            ),
        ),
        Column("Without net price", "number", lambda row: without_net[row["travel_month"]]),
        Column("Refund not stated", "number", lambda row: not_stated[row["travel_month"]]),
    )
    return [problem, table] if problem else [table]


def closed(source: Source, asked: dict[str, Any]) -> list[Table]:
    """Closed months, whatever months the page shows; and, where there are any, what changed in them."""
    figures, changes = source.rows("finance_closed", **asked), source.rows("finance_adjustments", **asked)
    months = listed(
        "Closed months of travel: figures then, adjustments, figures now",
        figures,
        Column("Travel month", "month", "period"),
        Column("Channel", "text", "channel_name", none="no bookings"),
        Column("Closed", "instant", "closed_at_utc"),
        Column("Complete then", "yes", "was_complete"),
        Column("Net then", "money", "net_amount", none="unknown"),
        Column("Net adjustment", "money", "net_adjustment"),
        Column("Net now", "money", "net_now", none="unknown"),
        Column("Retail then", "money", "retail_amount", none="unknown"),
        Column("Retail adjustment", "money", "retail_adjustment"),
        Column("Retail now", "money", "retail_now", none="unknown"),
        Column("Adjustments", "number", "adjustments"),
        empty="No month is closed.",
        most=_ROWS,
    )
    if not changes:
        return [months]
    adjustments = listed(
        "Adjustments of closed months, the latest first",
        changes,
        Column("Travel month", "month", "period"),
        Column("Booking", "text", booking_text, href=booking_page),
        Column("Cause", "text", lambda row: CAUSES[row["cause"]]),
        Column("Net", "money", "net_adjustment"),
        Column("Retail", "money", "retail_adjustment"),
        Column("Channel", "text", "channel_name"),
        Column("Seen", "instant", "changed_at_utc", none="unknown"),
        most=_ROWS,
    )
    return [months, adjustments]
