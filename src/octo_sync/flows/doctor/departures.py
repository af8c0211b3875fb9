"""What a service shows of departures and products, and how it says that something is not there. Pure."""

from collections.abc import Iterator

from octo_sync.errors import NotFound, ServiceUnavailable
from octo_sync.flows.doctor.advice import advise
from octo_sync.flows.doctor.seen import Check, Kept, Seen, day_of, differs, passed, rows_of, unknown
from octo_sync.model import zone_of

_SHOWN = 3


def closed_days(seen: Seen) -> Check:
    """Whether closed days have a row."""
    name, looked = "closed days", 0
    if any(row.get("status") == "CLOSED" for row in seen.departures):
        return passed(name, "availability contains them")
    for answer, window in seen.availability:
        days = {day for row in rows_of(answer) if (day := day_of(row)) and window.start <= day <= window.end}
        if not days:
            continue
        looked += 1
        # What is not on sale yet, or no more, is absent at the ends.
        gaps = (max(days) - min(days)).days + 1 - len(days)
        if gaps > 0:
            text = f"availability leaves days out ({gaps} between {min(days)} and {max(days)})"
            meaning = "A day without a row is shown as without departures, not as closed: the two cannot be told apart."
            return differs(name, text, meaning)
    return unknown(name, "no closed day was met" if looked else "no availability was seen")


def days_shown(seen: Seen, kept: Kept) -> Check:
    """Whether departures are shown up to the end of the horizon."""
    name = "days ahead"
    near = {day for answer, _ in seen.availability[:1] for row in rows_of(answer) if (day := day_of(row))}
    if not near or seen.far is None:
        return unknown(name, "no departure was seen" if not near else "the end of the horizon was not asked for")
    answer, window = seen.far
    if any((day := day_of(row)) and window.start <= day <= window.end for row in rows_of(answer)):
        return passed(name, f"departures up to the end of horizon.availability ({kept.availability})")
    return differs(
        name,
        f"none in the last days of horizon.availability ({window}); of the days before, {max(near)} is the last one seen",
        "Days that the service does not show yet are without departures in the copy, and count as verified.",
    )


def seats(seen: Seen) -> Check:
    """Whether seats are told."""
    name = "seats"
    rows = [row for row in seen.departures if row.get("status") != "FREESALE"]
    if not rows:
        return unknown(name, "no departure with limited seats was seen")
    if any(isinstance(row.get("capacity"), int) for row in rows):
        return passed(name, "capacity and vacancies are sent")
    if any(isinstance(row.get("vacancies"), int) for row in rows):
        left = "Fill rates are unknown; seats that are left are known."
        return differs(name, "vacancies are sent, capacity is not", left)
    left = "Fill rates are unknown, and so are seats that are left."
    return differs(name, "neither capacity nor vacancies are sent", left)


def not_found(seen: Seen) -> Iterator[Check]:
    """Whether what is not there is told with its code."""
    wanted = {"booking": "INVALID_BOOKING_UUID", "product": "INVALID_PRODUCT_ID"}
    for what, code in wanted.items():
        if what not in seen.unknown:
            continue
        error, name = seen.unknown[what], f"unknown {what}"
        if isinstance(error, NotFound):
            yield passed(name, f"is told with {code}")
        elif isinstance(error, ServiceUnavailable):
            yield unknown(name, "was not answered")
        else:
            said = (
                f"{error.status or 'refused'} {error.code or 'without a code'}"
                if error
                else "shown as if it were there"
            )
            stays = f"a {what} that was deleted there stays in the copy as it was last seen."
            yield differs(name, f"is not told with {code}, but: {said}", f"Only that code proves a deletion: {stays}")


def time_zones(seen: Seen) -> Iterator[Check]:
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
        yield differs("time zones", text, meaning, advise("zones old"))
    elif lacking:
        yield differs("time zones", f"{lacking} of {len(rows)} products name none", meaning)
    else:
        more = " …" if len(named) > _SHOWN else ""
        yield passed("time zones", f"{len(rows)} products in {', '.join(sorted(named)[:_SHOWN])}{more}")
