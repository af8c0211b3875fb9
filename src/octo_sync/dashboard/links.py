"""What pages say of a booking and a departure in a row, and the addresses of their own pages."""

from collections.abc import Callable, Mapping
from datetime import MAXYEAR, MINYEAR, date, datetime
from typing import Any
from urllib.parse import urlencode

from octo_sync.dashboard.days import month_days
from octo_sync.flows import wording
from octo_sync.model import zone_of

_FIELDS = {
    "status": "status",
    "local_date": "day",
    "product_id": "product",
    "option_id": "option",
    "retail_amount": "price",
    "net_amount": "net price",
    "currency": "currency",
    "pax_count": "guests",
    "is_deleted": "deleted at the service",
}

_FILTERED = {"channel": "connection_id", "currency": "currency", "product": "product_key"}
"""A filter → the column that it is of."""
_LAST_MONTH = date(2200, 12, 1)
"""Filters take no later one."""


def address(page: str, place: str = "", **fields: object) -> str:
    """The address of a page, at one of its places; fields without a value are left out."""
    asked = urlencode({name: value for name, value in fields.items() if value})
    return page + (f"?{asked}" if asked else "") + (f"#{place}" if place else "")


def booking_page(row: Mapping[str, Any]) -> str:
    """The address of the page of a row's booking; of its uuid alone where the connection is not known."""
    found = row.get("booking_key") or "|".join(
        filter(None, (row.get("connection_id"), row.get("booking_uuid") or None))
    )
    return f"booking?{urlencode({'find': found})}" if row.get("booking_key") or row.get("booking_uuid") else ""


def columns_of(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The channel, currency and product that are chosen, as the columns of rows that are of them alone."""
    return {name: chosen[field] for field, name in _FILTERED.items() if chosen.get(field)}


def bookings_page(row: Mapping[str, Any], kind: str, first: date, last: date, /, **more: date | str) -> str:
    """The address of the list of the bookings behind a row: those of its channel, currency and product on these days.

    `more` are the days of the kind `books`, and `only`: which of them alone.

    '' where the row is of bookings without one of these: no list is of those alone.
    """
    chosen = {field: row[name] for field, name in _FILTERED.items() if name in row}
    if None in chosen.values():
        return ""
    return f"bookings?{urlencode({'kind': kind, 'first': first, 'last': last, **more, **chosen})}"


def month_page(number: str, kind: str, month: str, **only: date | str) -> Callable[[Mapping[str, Any]], str]:
    """The list behind a row of one month, where its `number` is not 0; no list has those without a month, or far off."""

    def page(row: Mapping[str, Any]) -> str:
        known = row[number] and row[month] and row[month] <= _LAST_MONTH
        return bookings_page(row, kind, *month_days(row[month]), **only) if known else ""

    return page


def occupancy_page(first: date, last: date, product: str | None, place: str) -> str:
    """The address of the page Occupancy of these days, and of a product alone, at one of its places."""
    return address("occupancy", place, first=first, last=last, product=product)


def difference_page(row: Mapping[str, Any]) -> str:
    """The address of the page of a row's difference."""
    return f"difference?{urlencode({'name': row['recon_name'], 'key': row['recon_key']})}"


def booking_text(row: Mapping[str, Any]) -> str:
    """What a booking is called: the supplier's reference, else the reseller's, else its uuid."""
    return str(row.get("supplier_reference") or row.get("reseller_reference") or row["booking_uuid"])


def departure_page(row: Mapping[str, Any]) -> str:
    """The address of the page of a row's departure: its key, and the day, which makes it quick to find."""
    if row["slot_key"] is None or row["travel_date"] is None:
        return ""
    return f"departure?{urlencode({'key': row['slot_key'], 'day': row['travel_date']})}"


def status_text(status: str | None) -> str:
    """`ON_HOLD` → `on hold`."""
    return (status or wording.UNKNOWN).replace("_", " ").lower()


def _is_all_day(row: Mapping[str, Any]) -> bool:
    """Whether a departure spans its day; where nobody says (`is_all_day` null), one that starts at midnight does."""
    at, told = row["local_start_at"], row["is_all_day"]
    return at.time() == at.min.time() if told is None else bool(told)


def start_text(row: Mapping[str, Any], day: Callable[[date], str] | None = wording.short_day) -> str:
    """When a departure starts, by the venue's clock: `Fri 20 Nov, 09:30`; without `day` `09:30`, or `all day`.

    Where the row has an end later on the same day that too: `09:30` and `11:00` with an en dash between.
    """
    at, end = row["local_start_at"], row.get("local_end_at")
    if at is None:
        return "any time"
    time = "" if _is_all_day(row) else f"{at:%H:%M}"
    if time and end and end.date() == at.date() and end > at:
        time += f"\N{EN DASH}{end:%H:%M}"
    return ", ".join(filter(None, (day(at.date()), time))) if day else time or "all day"


def travel_text(row: Mapping[str, Any]) -> str | None:
    """The day of a row's travel, and its start where it has one: `2026-11-20 09:30`; None where it is open."""
    at, day = row["local_start_at"], row["travel_date"]
    return wording.instant(at, timed=not _is_all_day(row)) if at else day and str(day)


def free_text(status: str | None, vacancies: int | None, capacity: int | None) -> str:
    """Free places in words: what the service says of them comes before a number."""
    if status in ("SOLD_OUT", "CLOSED"):
        return status_text(status)
    if vacancies is None:
        return "not limited" if status == "FREESALE" else wording.UNKNOWN
    return f"{vacancies:,}" + (f" of {capacity:,}" if capacity is not None else "")


def has_left(row: Mapping[str, Any], now: datetime) -> bool:
    """Whether a departure has started; what has no time of its own is there all day."""
    start = row["utc_start_at"]
    return bool(start and row["local_start_at"] and not _is_all_day(row) and start <= now)


def ended_text(row: Mapping[str, Any]) -> str:
    """`sale ended Thu 26 Nov, 19:30` of a departure that is sold no more; '' of any other, also sold out or closed."""
    at = row["sold_until"]
    if not at or row["status"] in ("SOLD_OUT", "CLOSED"):
        return ""
    day = "" if at.date() == row["travel_date"] else f"{wording.short_day(at)}, "
    return f"sale ended {day}{at:%H:%M}"


def full_text(row: Mapping[str, Any]) -> str | None:
    """How full a departure is, with a decimal: beside a limit, 19.6 % is not 20."""
    return None if row["fill_rate"] is None else f"{100 * row['fill_rate']:.1f} %"


def venue_time(name: str) -> Callable[[Mapping[str, Any]], str | None]:
    """An instant of a row by the clock at its venue; of a row without a zone, in UTC, which it says."""

    def told(row: Mapping[str, Any]) -> str | None:
        moment, zone = row[name], zone_of(row["time_zone"] or "")
        # At the ends of the calendar no other clock can be told.
        if moment is None or zone is None or not MINYEAR < moment.year < MAXYEAR:
            return wording.instant(moment) if moment else None
        return f"{moment.astimezone(zone):%Y-%m-%d %H:%M}"

    return told


def fields_text(changed: str | None, *, but: str = "") -> str:
    """What changed beside `but`, from the names of columns: `day, guests`."""
    names = {name for name in (changed or "").split(",") if name not in ("", but)}
    return ", ".join(sorted(_FIELDS.get(name, name) for name in names))
