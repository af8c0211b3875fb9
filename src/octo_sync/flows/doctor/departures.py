"""What a service shows of departures and products, and how it says that something is not there. Pure."""

from collections.abc import Iterable

from octo_sync.errors import NotFound, ServiceUnavailable
from octo_sync.flows.doctor.advice import advise
from octo_sync.flows.doctor.seen import Check, Kept, Seen, day_of, rows_of
from octo_sync.model import zone_of

_SHOWN = 3


def closed_days(seen: Seen) -> Iterable[Check]:
    """Whether closed days have a row."""
    name, looked = "closed days", 0
    if any(row.get("status") == "CLOSED" for row in seen.departures):
        yield Check(name, "passed", "availability contains them")
        return
    for answer, window in seen.availability:
        days = {
            day for row in rows_of(answer) if (day := day_of(row)) is not None and window.start <= day <= window.end
        }
        if not days:
            continue
        looked += 1
        # What is not on sale yet, or no more, is absent at the ends.
        gaps = (max(days) - min(days)).days + 1 - len(days)
        if gaps > 0:
            yield Check(
                name,
                "differs",
                f"availability leaves days out ({gaps} between {min(days)} and {max(days)})",
                "A day without a row is shown as without departures, not as closed: the two cannot be told apart.",
            )
            return
    yield Check(name, "unknown", "no closed day was met" if looked else "no availability was seen")


def days_shown(seen: Seen, kept: Kept) -> Iterable[Check]:
    """Whether departures are shown up to the end of the horizon."""
    name = "days ahead"
    near = {day for answer, _ in seen.availability[:1] for row in rows_of(answer) if (day := day_of(row)) is not None}
    if not near or seen.far is None:
        yield Check(
            name, "unknown", "no departure was seen" if not near else "the end of the horizon was not asked for"
        )
        return
    answer, window = seen.far
    if any((day := day_of(row)) is not None and window.start <= day <= window.end for row in rows_of(answer)):
        yield Check(name, "passed", f"departures up to the end of horizon.availability ({kept.availability})")
    else:
        yield Check(
            name,
            "differs",
            f"none in the last days of horizon.availability ({window}); of the days before, {max(near)} is the last one seen",
            "Days that the service does not show yet are without departures in the copy, and count as verified.",
        )


def seats(seen: Seen) -> Iterable[Check]:
    """Whether seats are told."""
    rows = [row for row in seen.departures if row.get("status") != "FREESALE"]
    if not rows:
        yield Check("seats", "unknown", "no departure with limited seats was seen")
    elif any(isinstance(row.get("capacity"), int) for row in rows):
        yield Check("seats", "passed", "capacity and vacancies are sent")
    else:
        some = any(isinstance(row.get("vacancies"), int) for row in rows)
        text = "vacancies are sent, capacity is not" if some else "neither capacity nor vacancies are sent"
        meaning = "Fill rates are unknown" + (
            "; seats that are left are known." if some else ", and so are seats that are left."
        )
        yield Check("seats", "differs", text, meaning)


def not_found(seen: Seen) -> Iterable[Check]:
    """Whether what is not there is told with its code."""
    wanted = {"booking": "INVALID_BOOKING_UUID", "product": "INVALID_PRODUCT_ID"}
    for what, code in wanted.items():
        if what not in seen.unknown:
            continue
        error, name = seen.unknown[what], f"unknown {what}"
        if isinstance(error, NotFound):
            yield Check(name, "passed", f"is told with {code}")
        elif isinstance(error, ServiceUnavailable):
            yield Check(name, "unknown", "was not answered")
        else:
            said = (
                "shown as if it were there"
                if error is None
                else f"{error.status or 'refused'} {error.code or 'without a code'}"
            )
            yield Check(
                name,
                "differs",
                f"is not told with {code}, but: {said}",
                f"Only that code proves a deletion: a {what} that was deleted there stays in the copy as it was last seen.",
            )


def time_zones(seen: Seen) -> Iterable[Check]:
    """Whether products name time zones that are known here."""
    rows = rows_of(seen.products)
    if not rows:
        return
    named = {zone for row in rows if isinstance(zone := row.get("timeZone"), str)}
    strange = sorted(zone for zone in named if zone_of(zone) is None)
    lacking = sum(not row.get("timeZone") for row in rows)
    meaning = "Their days are counted in UTC: months and today may be off by hours."
    if strange:
        shown = ", ".join("".join(c for c in zone if c.isprintable())[:40] for zone in strange[:_SHOWN])
        text = f"{len(strange)} of {len(named)} are not known to this machine: {shown}"
        yield Check("time zones", "differs", text, meaning, advise("zones old"))
    elif lacking:
        yield Check("time zones", "differs", f"{lacking} of {len(rows)} products name none", meaning)
    else:
        yield Check(
            "time zones",
            "passed",
            f"{len(rows)} products in {', '.join(sorted(named)[:_SHOWN])}{' …' if len(named) > _SHOWN else ''}",
        )
