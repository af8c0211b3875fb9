"""What a service really does, held against what the copy would wish: each difference with its consequence. Pure.

`conformance_probe` asks; here is what its answers mean. A check passes, differs, or cannot be told from what was seen; the
score counts those that can. Nothing of it stops a sync: it says where the copy is as good as the service lets it be.
"""

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any, Literal

from octo_sync.errors import (
    AuthenticationRefused,
    NotFound,
    OctoSyncError,
    RateLimited,
    ServiceError,
    ServiceUnavailable,
)
from octo_sync.flows.doctor.advice import NONE, Fix, advise
from octo_sync.model import Connection, Horizon, Window, zone_of
from octo_sync.octo import checking, quirks
from octo_sync.octo.answer import Answer

__all__ = [
    "NO_SUCH_PATH",
    "Check",
    "Kept",
    "Result",
    "Seen",
    "checks",
    "fruitful_spelling",
    "ignored",
    "quick_checks",
    "score",
]

Result = Literal["passed", "differs", "unknown"]

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Check:
    """One thing a service may do otherwise: what was seen, what follows for the copy, and what to do about it, if anything."""

    name: str
    result: Result
    text: str
    consequence: str = ""
    fix: Fix = NONE


@dataclass(frozen=True, slots=True)
class Kept:
    """What of the pipeline file decides whether a habit of a service matters."""

    bookings: Horizon
    availability: Horizon
    pulls: bool = False
    """Whether [schedule] pulls bookings."""


@dataclass(slots=True)
class Seen:
    """What was asked and answered; None where it was not asked, or not answered."""

    products: Answer | None = None
    respelled: Answer | None = None
    """The products with the other spelling of capabilities, where one of them seems to be ignored."""
    offered: Answer | None = None
    """What the service says it can do, where something is missing."""
    availability: list[tuple[Answer, Window]] = field(default_factory=list)
    """Of one option each, over whole days."""
    far: tuple[Answer, Window] | None = None
    """Of the first of these options, the last days of the horizon."""
    bookings: list[tuple[Answer, Window]] = field(default_factory=list)
    """Lists by date, the first one being the widest."""
    halves: list[Answer] = field(default_factory=list)
    """The first list again, as two smaller ones that were both answered, where it had exactly 100 records."""
    cancelled: tuple[str, Answer, Answer] | None = None
    """A booking that the copy knows as cancelled: its uuid, its own answer, and the list of its day or days."""
    lapsed: Answer | ServiceError | None = None
    """A lapsed hold of a list, by its own id."""
    stranger: Answer | ServiceError | None = None
    """What was said to a token that nobody has."""
    unknown: Mapping[str, ServiceError | None] = field(default_factory=dict)
    """What was said of a product and of a booking that nobody has; None: it was shown as if it were there."""
    subscriptions: Answer | None = None
    no_subscriptions: ServiceError | None = None


def score(found: Sequence[Check]) -> tuple[int, int]:
    """How many checks passed, of how many that could be told."""
    results = Counter(check.result for check in found)
    return results["passed"], results["passed"] + results["differs"]


def quick_checks(seen: Seen, connection: Connection, kept: Kept) -> list[Check]:
    """What the quick look can say."""
    return [*_capabilities(seen, connection, kept), *_notifications(seen, connection, kept)]


def checks(seen: Seen, connection: Connection, kept: Kept) -> list[Check]:
    """Everything that can be said, in a fixed order."""
    each: tuple[Callable[[Seen, Connection, Kept], Iterable[Check]], ...] = (
        _authentication,
        _echo,
        _capabilities,
        _notifications,
        _cancelled,
        _lapsed,
        _dates,
        _lengths,
        _prices,
        _closed,
        _reach,
        _vacancies,
        _not_found,
        _zones,
    )
    return [check for look in each for check in look(seen, connection, kept)]


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


def _authentication(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection, kept
    if isinstance(seen.stranger, AuthenticationRefused):
        yield Check("authentication", "passed", "a token that nobody has is refused")
    elif isinstance(seen.stranger, Answer):
        yield Check(
            "authentication",
            "differs",
            "a token that nobody has is accepted",
            "Whoever knows the address may read there, and a wrong token of ours is not noticed.",
            advise("open"),
        )
    else:
        yield Check("authentication", "unknown", "a token that nobody has was neither accepted nor refused")


def _echo(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del kept
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


_MEANINGS = {
    "pricing": "Prices and revenue stay empty, and amounts that were known are kept and marked as old.",
    "content": "Titles and texts stay empty; reports show internal names.",
    "extras": "Extras that guests booked along are not in the copy.",
}


def _asked(connection: Connection) -> tuple[str, ...]:
    """The capabilities that are asked for with products, and can be seen there."""
    chosen = connection.capability_overrides.get("products", connection.capabilities) or ()
    asked = {quirks.spell_capability(name, "short") for name in chosen}
    return tuple(name for name in _MEANINGS if name in asked)


def ignored(answer: Answer, connection: Connection) -> frozenset[str]:
    """The capabilities without any field in an answer to `products`, whatever its header says; none without a product."""
    bare = replace(answer, headers={k: v for k, v in answer.headers.items() if k != "octo-capabilities"})
    return quirks.ignored_capabilities(_asked(connection), bare) if _rows(answer) else frozenset()


def fruitful_spelling(seen: Seen, connection: Connection) -> str:
    """The other spelling, if it was tried and brings more than this one and loses nothing; else nothing."""
    if seen.products is None or seen.respelled is None or not _rows(seen.respelled):
        return ""
    better = ignored(seen.respelled, connection) < ignored(seen.products, connection)
    return quirks.other_spelling(connection.capability_spelling) if better else ""


def _capabilities(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    """By their fields, whatever the answer's header says."""
    del kept
    if seen.products is None:
        return
    asked, some = _asked(connection), bool(_rows(seen.products))
    lacking, spelling = ignored(seen.products, connection), fruitful_spelling(seen, connection)
    absent = ignored(seen.respelled, connection) if spelling and seen.respelled else lacking
    for name, meaning in _MEANINGS.items():
        if name not in asked and name not in connection.capabilities:
            continue
        if name not in asked:
            yield Check(f"capability {name}", "unknown", "is not asked for with products (capability_overrides)")
        elif not some:
            yield Check(f"capability {name}", "unknown", "cannot be seen without a product")
        elif name not in lacking:
            yield Check(f"capability {name}", "passed", "its fields are there")
        elif spelling and name not in absent:
            fix = advise(
                "spelling",
                {f"connections.{connection.name}.capability_spelling": spelling},
                spelling=spelling,
                name=connection.name,
            )
            text = f"none of its fields is sent; asked for in the {spelling} spelling they are there"
            yield Check(f"capability {name}", "differs", text, meaning, fix)
        else:
            yield _lacking(name, meaning, absent, seen, connection)


def _lacking(name: str, meaning: str, absent: Collection[str], seen: Seen, connection: Connection) -> Check:
    """A capability that neither spelling brings."""
    check, text = f"capability {name}", "none of its fields is sent, in either spelling"
    if seen.respelled is None:
        return Check(check, "differs", "none of its fields is sent", meaning)
    listed = _listed(seen)
    if listed is not None and name in listed:
        return Check(check, "differs", f"{text}, though GET /capabilities lists it", meaning, advise("listed"))
    if "products" in connection.capability_overrides:
        return Check(check, "differs", text, meaning)
    # All that are absent at once, so that two findings do not say two things.
    out = {c for c in absent if listed is None or c not in listed}
    left = [c for c in connection.capabilities if quirks.spell_capability(c, "short") not in out]
    fix = advise(
        "perhaps absent" if listed is None else "absent",
        {f"connections.{connection.name}.capabilities": left},
        capability=name,
        capabilities=json.dumps(left),
        name=connection.name,
    )
    return Check(check, "differs", text + ("" if listed is None else ", and GET /capabilities has none"), meaning, fix)


def _listed(seen: Seen) -> frozenset[str] | None:
    """The capabilities that the service says it has, in short spelling; None where it does not say."""
    if seen.offered is None:
        return None
    return frozenset(quirks.spell_capability(str(row.get("id")), "short") for row in _rows(seen.offered))


NO_SUCH_PATH = frozenset({404, 405, 410, 501})
_OFTEN = "15 * * * *"


def _notifications(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection
    name, meaning = "subscriptions", "No webhook tells of changes: the copy is as fresh as its pulls."
    error = seen.no_subscriptions
    if seen.subscriptions is not None:
        readable = False
        with contextlib.suppress(OctoSyncError):
            readable = quirks.normalise_list(seen.subscriptions.json()) is not None
        if readable:
            yield Check(name, "passed", "subscriptions can be read")
        else:
            text = "subscriptions are answered with something else than a list"
            yield Check(name, "differs", text, meaning, advise("subscriptions"))
    elif error is None or (isinstance(error, ServiceUnavailable | RateLimited) and error.status not in NO_SUCH_PATH):
        yield Check(name, "unknown", "subscriptions were not answered")
    elif isinstance(error, AuthenticationRefused):
        text = f"the token may not read subscriptions ({error.status})"
        yield Check(name, "differs", text, meaning, advise("abilities"))
    elif error.status not in NO_SUCH_PATH:
        yield Check(name, "differs", f"cannot be read ({error.status or 'refused'})", meaning, advise("subscriptions"))
    elif "notifications" in (_listed(seen) or ()):
        text = f"nothing is at their path ({error.status}), though GET /capabilities lists notifications"
        yield Check(name, "differs", text, meaning, advise("subscriptions"))
    elif kept.pulls:
        yield Check(name, "passed", f"the service has none ({error.status}); [schedule] pulls")
    else:
        fix = advise("pull", {"schedule.near": _OFTEN}, near=_OFTEN)
        yield Check(name, "differs", f"the service has none ({error.status})", meaning, fix)


# -- lists ------------------------------------------------------------------------------------------------------------


def _cancelled(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection, kept
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


def _lapsed(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection, kept
    name = "lapsed holds"
    if isinstance(seen.lapsed, Answer):
        yield Check(name, "passed", "one that is listed is found by its own id")
    elif isinstance(seen.lapsed, NotFound):
        yield Check(
            name,
            "differs",
            "one that is listed is not found by its own id",
            "They stay in the copy as the list shows them, and are not asked for one by one.",
        )
    else:
        yield Check(name, "unknown", "none is listed" if seen.lapsed is None else "one that is listed was not answered")


def _dates(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    name, fits = "dates of lists", {"travel": False, "creation": False}
    ahead: list[int] = []
    for answer, window in seen.bookings:
        try:
            checked = checking.check_bookings(answer.body)
        except OctoSyncError:
            continue
        dates = list(zip(checked.travel_dates, checked.created_dates, strict=True))
        ahead += [(travel - made).days for travel, made in dates if travel and made]
        means = quirks.booking_dates_mean(dates, window)
        if means in fits:
            fits[means] = True
    configured = connection.booking_date_means
    meant = next((means for means, is_so in fits.items() if is_so), None)
    if fits["travel"] == fits["creation"] or meant is None:
        yield Check(
            name, "unknown", "too few bookings to tell whether localDate is the travel date or the day of booking"
        )
        return
    if configured not in ("auto", meant):
        fix = advise(
            "date meaning",
            {f"connections.{connection.name}.booking_date_means": meant},
            means=meant,
            name=connection.name,
        )
        meaning = "Windows are asked for with the wrong days: bookings are missing, and those outside of the window look gone."
        yield Check(name, "differs", f'localDate is the {_MEANS[meant]}, the file says "{configured}"', meaning, fix)
    else:
        yield Check(name, "passed", f"localDate is the {_MEANS[meant]}")
    if meant == "creation":
        yield _look_back(kept.bookings, max(ahead, default=0))


def _look_back(horizon: Horizon, ahead: int) -> Check:
    """Whether the days of booking that are asked for begin early enough; guests booked up to `ahead` days before travel."""
    name, wanted = "look back", max(_LOOK_BACK, ahead)
    seen = f"guests booked up to {ahead} days ahead"
    if -horizon.before >= wanted:
        return Check(name, "passed", f"bookings are asked for by day of booking, {-horizon.before} days back; {seen}")
    wider = Horizon(-max(wanted, _LOOK_BACK + 35), horizon.after)
    return Check(
        name,
        "differs",
        f"bookings are asked for by day of booking, only {-horizon.before} days back; {seen}",
        "A booking made before horizon.bookings begins is not in the copy, however late its travel date.",
        advise("look back", {"horizon.bookings": str(wider)}, horizon=wider),
    )


_LOOK_BACK = 365
"""Days: few guests book earlier than that."""
_MEANS = {"travel": "travel date", "creation": "day of booking"}


def _lengths(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection, kept
    name = "length of lists"
    counts = [
        ("products", len(_rows(seen.products))),
        *(("bookings", len(_rows(answer))) for answer, _ in seen.bookings),
    ]
    longest = max(count for _, count in counts)
    fix = advise("page size")
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


def _prices(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    """Bookings of no price, though their tickets have one; or all of them, though their products have one."""
    del kept
    if "pricing" not in connection.capabilities:
        return
    name, priced = "prices of bookings", _priced_options(seen.products)
    rows = {
        row.get("uuid"): row
        for answer, _ in seen.bookings
        for row in _rows(answer)
        if _amount(row) is not None and row.get("status") not in ("CANCELLED", "EXPIRED")
    }
    free = [row for row in rows.values() if not _amount(row)]
    sold = [row for row in free if any(_amount(item) for item in _objects(row.get("unitItems")))]
    of_priced = [row for row in free if (str(row.get("productId")), str(row.get("optionId"))) in priced]
    wrong = sold or (of_priced if len(free) == len(rows) else [])
    if not rows:
        if seen.products is None or "pricing" not in ignored(seen.products, connection):
            yield Check(name, "unknown", "no booking with a price was seen")
    elif wrong:
        what = "tickets" if sold else "products"
        yield Check(
            name,
            "differs",
            f"{len(wrong)} of {len(rows)} bookings have a price of 0, though their {what} have one",
            "Revenue and what is owed are too low by these bookings: amounts are those of the booking.",
            advise("prices"),
        )
    else:
        yield Check(
            name, "passed", "bookings have the prices of their tickets" if not free else "only free ones have none"
        )


def _amount(record: Mapping[str, Any]) -> int | None:
    """The largest amount of a record's pricing; None where it has none."""
    pricing = record.get("pricing")
    if not isinstance(pricing, dict):
        return None
    amounts = [a for part in ("original", "retail", "net") if isinstance(a := pricing.get(part), int)]
    return max(amounts, default=None)


def _objects(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _priced_options(products: Answer | None) -> set[tuple[str, str]]:
    """Product and option ids of which something costs something."""
    found = set()
    for product in _rows(products):
        for option in _objects(product.get("options")):
            prices = [*_objects(option.get("pricingFrom")), *_objects(option.get("pricing"))]
            for unit in _objects(option.get("units")):
                prices += [*_objects(unit.get("pricingFrom")), *_objects(unit.get("pricing"))]
            if any(_amount({"pricing": price}) for price in prices):
                found.add((str(product.get("id")), str(option.get("id"))))
    return found


# -- availability -----------------------------------------------------------------------------------------------------


def _closed(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection, kept
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


def _reach(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection
    name = "days ahead"
    near = {day for answer, _ in seen.availability[:1] for row in _rows(answer) if (day := _day(row)) is not None}
    if not near or seen.far is None:
        yield Check(
            name, "unknown", "no departure was seen" if not near else "the end of the horizon was not asked for"
        )
        return
    answer, window = seen.far
    if any((day := _day(row)) is not None and window.start <= day <= window.end for row in _rows(answer)):
        yield Check(name, "passed", f"departures up to the end of horizon.availability ({kept.availability})")
    else:
        yield Check(
            name,
            "differs",
            f"none in the last days of horizon.availability ({window}); of the days before, {max(near)} is the last one seen",
            "Days that the service does not show yet are without departures in the copy, and count as verified.",
        )


def _day(row: Mapping[str, Any]) -> date | None:
    text = row.get("localDate") or row.get("localDateTimeStart")
    if isinstance(text, str) and re.match(r"\d{4}-\d\d-\d\d", text):
        try:
            return date.fromisoformat(text[:10])
        except ValueError:
            return None
    return None


def _vacancies(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection, kept
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


def _not_found(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection, kept
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


def _zones(seen: Seen, connection: Connection, kept: Kept) -> Iterable[Check]:
    del connection, kept
    rows = _rows(seen.products)
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


def days_ahead(today: date, days: int) -> Window:
    """So many days from tomorrow on."""
    return Window(today + timedelta(days=1), today + timedelta(days=days))
