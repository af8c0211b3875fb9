"""What a service really does, held against what the copy would wish: each difference with its consequence. Pure.

`conformance_probe` asks; here is what its answers mean. A check passes, differs, or cannot be told from what was seen; the
score counts those that can. Nothing of it stops a sync: it says where the copy is as good as the service lets it be.
"""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from octo_sync.errors import NotFound, OctoSyncError, ServiceError, ServiceUnavailable
from octo_sync.model import Connection, Window
from octo_sync.octo import checking, quirks
from octo_sync.octo.answer import Answer

__all__ = ["Check", "Result", "Seen", "checks", "score"]

Result = Literal["passed", "differs", "unknown"]

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a service may do otherwise: what was seen, what follows for the copy, and what to do about it, if anything."""

    name: str
    result: Result
    text: str
    consequence: str = ""
    fix: str = ""


@dataclass(slots=True)
class Seen:
    """What was asked and answered; None where it was not asked, or not answered."""

    products: Answer | None = None
    availability: list[tuple[Answer, Window]] = field(default_factory=list)
    """Of one option each, over whole days."""
    bookings: list[tuple[Answer, Window]] = field(default_factory=list)
    """Lists by date, the first one being the widest."""
    halves: list[Answer] = field(default_factory=list)
    """The first list again, as two smaller ones that were both answered, where it had exactly 100 records."""
    cancelled: tuple[str, Answer, Answer] | None = None
    """A booking that the copy knows as cancelled: its uuid, its own answer, and the list of its day or days."""
    unknown: Mapping[str, ServiceError | None] = field(default_factory=dict)
    """What was said of a product and of a booking that nobody has; None: it was shown as if it were there."""
    subscriptions: Answer | None = None
    no_subscriptions: ServiceError | None = None


def score(found: Sequence[Check]) -> tuple[int, int]:
    """How many checks passed, of how many that could be told."""
    results = Counter(check.result for check in found)
    return results["passed"], results["passed"] + results["differs"]


def checks(seen: Seen, connection: Connection) -> list[Check]:
    """Everything that can be said, in a fixed order."""
    each: tuple[Callable[[Seen, Connection], Iterable[Check]], ...] = (
        _echo,
        _capabilities,
        _notifications,
        _cancelled,
        _dates,
        _lengths,
        _closed,
        _vacancies,
        _not_found,
        _zones,
    )
    return [check for look in each for check in look(seen, connection)]


def _rows(answer: Answer | None) -> list[dict[str, Any]]:
    """The records of a list; none of an answer that is no list."""
    if answer is None:
        return []
    try:
        body = answer.json()
    except OctoSyncError:
        return []
    return [row for row in body if isinstance(row, dict)] if isinstance(body, list) else []


# -- capabilities -----------------------------------------------------------------------------------------------------


def _echo(seen: Seen, connection: Connection) -> Iterable[Check]:
    if seen.products is None or not connection.capabilities:
        return
    if "octo-capabilities" in seen.products.headers:
        yield Check("echo", "passed", "answers say which capabilities are on")
        return
    yield Check(
        "echo",
        "differs",
        "no answer says which capabilities are on (no Octo-Capabilities header)",
        "Whether one is on is told by its fields: where an answer has no record, it cannot be told.",
    )


def _capabilities(seen: Seen, connection: Connection) -> Iterable[Check]:
    """By their fields, whatever the answer's header says."""
    if seen.products is None:
        return
    bare = replace(seen.products, headers={k: v for k, v in seen.products.headers.items() if k != "octo-capabilities"})
    some = bool(_rows(seen.products))
    ignored = quirks.ignored_capabilities(connection.capabilities, bare) if some else frozenset()
    meanings = {
        "pricing": "Prices and revenue stay empty, and amounts that were known are kept and marked as old.",
        "content": "Titles and texts stay empty; reports show internal names.",
        "extras": "Extras that guests booked along are not in the copy.",
    }
    for name, meaning in meanings.items():
        if name not in connection.capabilities:
            continue
        if not some:
            yield Check(f"capability {name}", "unknown", "cannot be seen without a product")
        elif name in ignored:
            other = "short" if connection.capability_spelling == "prefixed" else "prefixed"
            fix = f'capability_spelling = "{other}" in [connections.{connection.name}], or leave it out'
            yield Check(f"capability {name}", "differs", "none of its fields is sent", meaning, fix)
        else:
            yield Check(f"capability {name}", "passed", "its fields are there")


def _notifications(seen: Seen, connection: Connection) -> Iterable[Check]:
    del connection
    meaning = "No webhook tells of changes: the copy is as fresh as its pulls."
    if seen.subscriptions is not None:
        readable = False
        with contextlib.suppress(OctoSyncError):
            readable = quirks.normalise_list(seen.subscriptions.json()) is not None
        if readable:
            yield Check("subscriptions", "passed", "subscriptions can be read")
        else:
            yield Check(
                "subscriptions", "differs", "subscriptions are answered with something else than a list", meaning
            )
    elif seen.no_subscriptions is not None and not isinstance(seen.no_subscriptions, ServiceUnavailable):
        text = f"subscriptions cannot be read ({seen.no_subscriptions.status or 'refused'})"
        fix = "ask for the abilities octo:read.notifications and octo:write.notifications, or let [schedule] pull more often"
        yield Check("subscriptions", "differs", text, meaning, fix)
    else:
        yield Check("subscriptions", "unknown", "subscriptions were not answered")


# -- lists ------------------------------------------------------------------------------------------------------------


def _cancelled(seen: Seen, connection: Connection) -> Iterable[Check]:
    del connection
    name = "cancelled bookings"
    rows = [row for answer, _ in seen.bookings for row in _rows(answer)]
    if any(row.get("status") == "CANCELLED" for row in rows):
        yield Check(name, "passed", "lists contain them")
        return
    if seen.cancelled is not None:
        uuid, own, listed = seen.cancelled
        try:
            still = own.json().get("status") == "CANCELLED"
        except (OctoSyncError, AttributeError):
            still = False
        if still and not any(row.get("uuid") == uuid for row in _rows(listed)):
            yield Check(
                name,
                "differs",
                "lists leave them out, their own address shows them",
                "A booking that is missing in its list is asked for by its own id, so a cancellation is seen at the next pull; "
                "bookings that were cancelled before the first pull are not in the copy.",
            )
            return
        if still:
            yield Check(name, "passed", "lists contain one that is known as cancelled")
            return
    yield Check(name, "unknown", f"none among {len(rows)} bookings, and the copy knows none to ask for")


def _dates(seen: Seen, connection: Connection) -> Iterable[Check]:
    name, fits = "dates of lists", {"travel": False, "creation": False}
    for answer, window in seen.bookings:
        try:
            checked = checking.check_bookings(answer.body)
        except OctoSyncError:
            continue
        means = quirks.booking_dates_mean(zip(checked.travel_dates, checked.created_dates, strict=True), window)
        if means in fits:
            fits[means] = True
    configured = connection.booking_date_means
    meant = next((means for means, is_so in fits.items() if is_so), None)
    if fits["travel"] == fits["creation"] or meant is None:
        yield Check(
            name, "unknown", "too few bookings to tell whether localDate is the travel date or the day of booking"
        )
    elif configured not in ("auto", meant):
        fix = f'booking_date_means = "{meant}" or "auto" in [connections.{connection.name}]'
        meaning = "Windows are asked for with the wrong days: bookings are missing, and those outside of the window look gone."
        yield Check(name, "differs", f'localDate is the {_MEANS[meant]}, the file says "{configured}"', meaning, fix)
    elif meant == "travel":
        yield Check(name, "passed", "localDate is the travel date")
    else:
        yield Check(
            name,
            "differs",
            "localDate is the day of booking",
            "The copy asks by day of booking. A booking made before horizon.bookings begins is not in it, however late its "
            "travel date.",
            'horizon.bookings = "-400d..+0d" or how long before travel guests book',
        )


_MEANS = {"travel": "travel date", "creation": "day of booking"}


def _lengths(seen: Seen, connection: Connection) -> Iterable[Check]:
    del connection
    name = "length of lists"
    counts = [
        ("products", len(_rows(seen.products))),
        *(("bookings", len(_rows(answer))) for answer, _ in seen.bookings),
    ]
    longest = max(count for _, count in counts)
    fix = "ask the service for its page size, or for a token that sees everything"
    if seen.halves:
        parts = {row.get("uuid") for answer in seen.halves for row in _rows(answer)}
        if len(parts) > quirks.CAP:
            meaning = (
                "Bookings are asked for in smaller windows until none is full; a single day of more than 100 stays cut."
            )
            yield Check(name, "differs", "lists are cut after 100 records", meaning, fix)
            return
        yield Check(name, "passed", "exactly 100 bookings, and not more in two halves")
    elif which := next((what for what, count in counts if quirks.looks_capped(count)), ""):
        meaning = f"If lists are cut at 100, further {which} are not in the copy."
        yield Check(name, "differs", f"exactly 100 {which}, which looks cut", meaning, fix)
    elif longest > quirks.CAP:
        yield Check(name, "passed", f"not cut at 100: a list of {longest} came whole")
    else:
        yield Check(name, "unknown", f"the longest list had {longest} records; some services cut at 100")


# -- availability -----------------------------------------------------------------------------------------------------


def _closed(seen: Seen, connection: Connection) -> Iterable[Check]:
    del connection
    name, looked = "closed days", 0
    for answer, _ in seen.availability:
        rows = _rows(answer)
        if any(row.get("status") == "CLOSED" for row in rows):
            yield Check(name, "passed", "availability contains them")
            return
    for answer, window in seen.availability:
        days = {day for row in _rows(answer) if (day := _day(row)) is not None and window.start <= day <= window.end}
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


def _day(row: Mapping[str, Any]) -> date | None:
    text = row.get("localDate") or row.get("localDateTimeStart")
    if isinstance(text, str) and re.match(r"\d{4}-\d\d-\d\d", text):
        try:
            return date.fromisoformat(text[:10])
        except ValueError:
            return None
    return None


def _vacancies(seen: Seen, connection: Connection) -> Iterable[Check]:
    del connection
    rows = [row for answer, _ in seen.availability for row in _rows(answer) if row.get("status") != "FREESALE"]
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


# -- what else the copy rests on --------------------------------------------------------------------------------------


def _not_found(seen: Seen, connection: Connection) -> Iterable[Check]:
    del connection
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


def _zones(seen: Seen, connection: Connection) -> Iterable[Check]:
    del connection
    rows = _rows(seen.products)
    if not rows:
        return
    named = {zone for row in rows if isinstance(zone := row.get("timeZone"), str)}
    strange = sorted(zone for zone in named if not _exists(zone))
    lacking = sum(not row.get("timeZone") for row in rows)
    meaning = "Their days are counted in UTC: months and today may be off by hours."
    if strange:
        shown = ", ".join("".join(c for c in zone if c.isprintable())[:40] for zone in strange[:_SHOWN])
        text = f"{len(strange)} of {len(named)} are not known to this machine: {shown}"
        yield Check(
            "time zones", "differs", text, meaning, "update the machine's time-zone data: uv pip install -U tzdata"
        )
    elif lacking:
        yield Check("time zones", "differs", f"{lacking} of {len(rows)} products name none", meaning)
    else:
        yield Check(
            "time zones",
            "passed",
            f"{len(rows)} products in {', '.join(sorted(named)[:_SHOWN])}{' …' if len(named) > _SHOWN else ''}",
        )


def _exists(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def days_ahead(today: date, days: int) -> Window:
    """So many days from tomorrow on."""
    return Window(today + timedelta(days=1), today + timedelta(days=days))
