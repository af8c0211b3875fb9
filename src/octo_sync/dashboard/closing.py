"""What the page Finance says of months of travel that may be closed, and of those that are."""

from collections import Counter
from datetime import date, datetime
from typing import Any
from urllib.parse import urlencode

from octo_sync.dashboard.columns import BOOKING
from octo_sync.dashboard.days import month_days, month_end, month_start
from octo_sync.dashboard.differences import decided
from octo_sync.dashboard.links import bookings_page, month_page
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Column, Table, listed
from octo_sync.flows.periods import CAUSES, TOTALS, compared_at

_ROWS = 200
_MONTHS = 12


class Compared:
    """What comparisons with other systems say of whole months."""

    def __init__(self, source: Source) -> None:
        self._runs = source.rows("reconcile_runs")
        found, self.problem = decided(source, source.rows("differences"))
        self.is_any = bool(self._runs)
        self._open = Counter(month_start(row["day"]) for row in found if row["day"] and row["state"] == "open")

    def last(self, month: date) -> datetime | None:
        """When the end of a month was last compared; None where no comparison looked at the whole of it."""
        return compared_at(self._runs, *month_days(month))

    def open(self, month: date) -> int | None:
        """Open differences of a month's days; None where it was not compared."""
        return self._open[month] if self.last(month) else None

    def column(self, name: str) -> Column:
        """The same of the month that a row has under a name."""

        def told(row: dict[str, Any]) -> int | str:
            found = self.open(row[name])
            return "not compared" if found is None else found

        return Column(
            "Open differences",
            "number",
            told,
            href=lambda row: f"reconcile?{_days(row[name])}" if self.last(row[name]) else "",
        )


def _days(month: date) -> str:
    return urlencode(dict(zip(("first", "last"), month_days(month), strict=True)))


def ready(source: Source, compared: Compared, today: date) -> list[Table | str]:
    """What speaks against closing each month that is over; open differences where anything was ever compared."""
    rows = source.rows("finance_ready", first=month_start(today, -_MONTHS), last=month_end(today, -1))
    if not rows:
        return []
    table = listed(
        "May I close? Months that are over and not closed",
        rows,
        Column("Travel month", "month", "travel_month"),
        Column(
            "Ready",
            "yes",
            lambda row: row["is_known"] and (not compared.is_any or compared.open(row["travel_month"]) == 0),
        ),
        Column("Bookings known", "yes", "is_known"),
        compared.column("travel_month"),
        Column("Compared", "instant", lambda row: compared.last(row["travel_month"])),
        *(
            Column(title, "number", number, href=month_page(number, kind, "travel_month", only=only))
            for title, number, kind, only in (
                ("Not used", "not_used", "sold", "not_used"),
                ("Without net price", "without_net", "sold", "no_net"),
                ("Refund not stated", "refund_not_stated", "cancelled", "not_stated"),
            )
        ),
    )
    said = (
        f"The last {_MONTHS} months. Ready: all bookings are known and, where a ledger is compared, no difference of the "
        "month's days is open. Not used: sold bookings that are neither redeemed nor no-shows."
    )
    return [*filter(None, [compared.problem]), said, table]


def _totals(rows: list[dict[str, Any]]) -> Table:
    """What closings kept beside bookings; of those of an older octo-sync nothing is known of then."""

    def behind(row: dict[str, Any]) -> str:
        end = month_days(row["period"])[1]
        if row["kind"] == "deferred":
            return bookings_page(row, "deferred", month_start(end), end)
        kind, only = ("cancelled", {"only": "full"})
        if row["kind"] == "tax":
            kind, only = "sold", {"only": "tax", "name": row["tax_name"] or ""}
        return bookings_page(row, kind, month_start(end), end, **only)

    def amounts(of: str) -> list[Column]:
        return [
            Column(f"{of.capitalize()} then", "money", f"{of}_amount", none="unknown"),
            Column(f"{of.capitalize()} adjustment", "money", f"{of}_adjustment", none="unknown"),
            Column(f"{of.capitalize()} now", "money", f"{of}_now", none="unknown", href=behind),
        ]

    return listed(
        "Closed months: taxes by name, refunds due and deferred revenue, then and now",
        rows,
        Column("Month", "month", "period"),
        Column("Of", "text", lambda row: f"tax: {row['tax_name']}" if row["kind"] == "tax" else TOTALS[row["kind"]]),
        Column("Channel", "text", "channel_name"),
        Column("Kept then", "yes", "is_kept", none="no"),
        *amounts("retail"),
        *amounts("net"),
        empty="They had none, and have none now.",
        most=_ROWS,
    )


def closed(source: Source, compared: Compared, asked: dict[str, Any]) -> list[Table]:
    """Closed months, whatever months the page shows; and, where there are any, what changed in them."""
    figures, changes = source.rows("finance_closed", **asked), source.rows("finance_adjustments", **asked)
    now = month_page("connection_id", "sold", "period")
    months = listed(
        "Closed months of travel: figures then, adjustments, figures now",
        figures,
        Column("Travel month", "month", "period"),
        Column("Channel", "text", "channel_name", none="no bookings"),
        Column("Currency", "text", "currency"),
        Column("Closed", "instant", "closed_at_utc"),
        Column("Bookings known then", "yes", "was_complete"),
        Column("Net then", "amount", "net_amount", none="unknown"),
        Column("Net adjustment", "amount", "net_adjustment"),
        Column("Net now", "amount", "net_now", none="unknown", href=now),
        Column("Retail then", "amount", "retail_amount", none="unknown"),
        Column("Retail adjustment", "amount", "retail_adjustment"),
        Column("Retail now", "amount", "retail_now", none="unknown", href=now),
        Column("Adjustments", "number", "adjustments"),
        Column("Digest", "digest", "digest"),
        empty="No month is closed.",
        most=_ROWS,
    )
    tables = [months, _totals(source.rows("finance_closed_totals", **asked))] if figures else [months]
    if figures and not any(asked.values()):
        # A difference is of a month, not of a channel.
        periods = [{"period": period} for period in dict.fromkeys(row["period"] for row in figures)]
        month = Column("Travel month", "month", "period")
        tables.append(listed("Open differences of closed months", periods, month, compared.column("period")))
    if not changes:
        return tables
    adjustments = listed(
        "Adjustments of closed months, the latest first",
        changes,
        Column("Travel month", "month", "period"),
        BOOKING,
        Column("Cause", "text", lambda row: CAUSES[row["cause"]]),
        Column("Net", "money", "net_adjustment"),
        Column("Retail", "money", "retail_adjustment"),
        Column("Channel", "text", "channel_name"),
        Column("Seen", "instant", "changed_at_utc", none="unknown"),
        most=_ROWS,
    )
    return [*tables, adjustments]
