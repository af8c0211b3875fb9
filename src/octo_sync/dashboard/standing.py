"""What the copy is worth, for the line and the band that stand on every page."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from octo_sync.dashboard.days import month_start
from octo_sync.dashboard.source import Source
from octo_sync.dashboard.view import Filters
from octo_sync.flows import wording

_AS_THEY_ARE = (
    *("bookings_from", "bookings_to", "booked_from", "begins", "availability_from", "availability_to"),
    *("never_verified", "test_bookings"),
)
"""Columns of the row that have the names of fields."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The copy of now. `today` is the day on which something was last verified, in the business time zone."""

    today: date | None
    last_verified: datetime | None
    oldest_verified: datetime | None
    bookings_from: date | None
    bookings_to: date | None
    booked_from: date | None
    begins: date | None
    """The first day of booking of which any connection knows."""
    availability_from: date | None
    availability_to: date | None
    time_zone: str
    open_subjects: int
    missed_rows: int
    never_verified: int
    test_bookings: int
    age: timedelta | None
    """How long ago the part verified longest ago was verified."""
    is_stale: bool
    is_complete: bool
    """Whether every connection was heard of and nothing is open, as `marts.sync_freshness` has it."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever pulled."""
        return self.today is None

    def since(self, filters: Filters, back: int) -> date:
        """A page's first day: the one chosen, or the month so many back; where no day is chosen, none before the copy's."""
        if filters.first:
            return filters.first
        first = month_start(filters.last or self.today or date.min, -back)
        return max(first, month_start(self.begins)) if self.begins and not filters.last else first

    @property
    def trouble(self) -> str:
        """What a reader of any number has to know, as sentences; '' when there is nothing."""
        if self.is_empty:
            return "Nothing was pulled yet, so there is nothing to show. `octo-sync sync` fetches everything."
        said = []
        if self.is_stale and self.oldest_verified and self.age is not None:
            said.append(
                f"This copy is stale: its oldest part was verified {wording.age(self.age)} ago, "
                f"{wording.instant(self.oldest_verified)}. Later changes may be missing."
            )
        if not self.is_complete:
            parts = [
                f"{number:,} {what}"
                for number, what in (
                    (self.never_verified, "connections never answered"),
                    (self.open_subjects, "pending fetches"),
                    (self.missed_rows, "missing rows, deletion not confirmed yet"),
                )
                if number
            ]
            said.append(f"This copy is incomplete: {', '.join(parts) or 'some answers are only partly stored'}.")
        return " ".join(said)


def known_from(source: Source, channel: str | None = None, *, made: bool = False) -> date | None:
    """The day since when bookings are complete: of the connection `channel`, or of all, by the one known least far back.

    It is a day of travel, `date.max` where a service lists by day of booking, or a day of booking (`made`).

    Raises:
        WarehouseError: The copy cannot be read.
    """
    rows = source.rows("channels")
    known = [row for row in rows if channel in (None, row["connection_id"]) and row["booked_from"]]
    return max((row["booked_from"] if made else row["bookings_from"] or date.max for row in known), default=None)


def known_to(source: Source, channel: str | None = None) -> date | None:
    """The last day of travel that was asked for: of the connection `channel`, or of all, by the one asked least far ahead."""
    asked = [row["bookings_to"] for row in source.rows("channels") if channel in (None, row["connection_id"])]
    return min(filter(None, asked), default=None)


def standing(source: Source) -> Standing:
    """The standing of the copy, as of now.

    Raises:
        WarehouseError: The copy cannot be read.
    """
    (row,) = source.rows("standing")
    oldest: datetime | None = row["oldest_verified_at_utc"]
    age = source.now() - oldest if oldest else None
    return Standing(
        today=row["as_of_date"],
        last_verified=row["last_verified_at_utc"],
        oldest_verified=oldest,
        time_zone=str(row["time_zone"] or "UTC") if row["time_zones"] == 1 else "several time zones",
        open_subjects=int(row["open_subjects"] or 0),
        missed_rows=int(row["missed_rows"] or 0),
        age=age,
        is_stale=age is None or age > timedelta(seconds=source.stale_after),
        is_complete=bool(row["is_complete"]) and not row["never_verified"],
        **{name: row[name] for name in _AS_THEY_ARE},
    )
