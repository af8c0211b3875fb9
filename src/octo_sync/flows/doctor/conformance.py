"""What a service really does, held against what the copy would wish: each difference with its consequence. Pure.

`probe` asks; here is what its answers mean. A check passes, differs, or cannot be told from what was seen; the score counts
those that can. Nothing of it stops a sync: it says where the copy is as good as the service lets it be.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from octo_sync.errors import NotFound, ServiceUnavailable
from octo_sync.flows.doctor.advice import advise
from octo_sync.flows.doctor.capabilities import authentication, capabilities, echo, ignored, notifications
from octo_sync.flows.doctor.seen import Check, Kept, Seen, day_of, differs, objects, passed, rows_of, said_in, unknown
from octo_sync.model import Connection, Horizon, zone_of
from octo_sync.octo import quirks
from octo_sync.octo.answer import Answer

_LOOK_BACK = 365
"""Days: few guests book earlier than that."""

_MEANS = {"travel": "travel date", "creation": "day of booking"}
_SHOWN = 3


def score(found: Sequence[Check]) -> tuple[int, int]:
    """How many checks passed, of how many that could be told."""
    results = Counter(check.result for check in found)
    return results["passed"], results["passed"] + results["differs"]


def quick_checks(seen: Seen, connection: Connection, kept: Kept) -> list[Check]:
    """What the quick look can say; of the length of lists only what there is to do."""
    cut = [check for check in [lengths(seen)] if check.fix]
    return [*capabilities(seen, connection), notifications(seen, kept), *cut]


def checks(seen: Seen, connection: Connection, kept: Kept) -> list[Check]:
    """Everything that can be said, in a fixed order."""
    return [
        authentication(seen),
        *echo(seen, connection),
        *capabilities(seen, connection),
        notifications(seen, kept),
        cancelled(seen),
        lapsed(seen),
        *dates(seen, connection, kept),
        lengths(seen),
        *prices(seen, connection),
        closed_days(seen),
        days_shown(seen, kept),
        seats(seen),
        *not_found(seen),
        *time_zones(seen),
    ]


# -- lists of bookings --------------------------------------------------------------------------------------------------


def cancelled(seen: Seen) -> Check:
    """Whether lists contain cancelled bookings."""
    name = "cancelled bookings"
    rows = seen.listed
    if any(row.get("status") == "CANCELLED" for row in rows):
        return passed(name, "lists contain them")
    if seen.cancelled is not None:
        uuid, own, listed = seen.cancelled
        booking = said_in(own)
        still = isinstance(booking, dict) and booking.get("status") == "CANCELLED"
        if still and not any(row.get("uuid") == uuid for row in rows_of(listed)):
            return differs(
                name,
                "lists leave them out, their own address shows them",
                "A booking that is missing in its list is asked for by its own id, so a cancellation is seen at the next pull; "
                "bookings that were cancelled before the first pull are not in the copy.",
            )
        if still:
            return passed(name, "lists contain one that is known as cancelled")
    return unknown(name, f"none among {len(rows)} bookings, and the copy knows none to ask for")


def lapsed(seen: Seen) -> Check:
    """Whether a lapsed hold that is listed is found by its own id."""
    name = "lapsed holds"
    if isinstance(seen.lapsed, Answer):
        return passed(name, "one that is listed is found by its own id")
    if isinstance(seen.lapsed, NotFound):
        meaning = "They stay in the copy as the list shows them, and are not asked for one by one."
        return differs(name, "one that is listed is not found by its own id", meaning)
    return unknown(name, "none is listed" if seen.lapsed is None else "one that is listed was not answered")


def dates(seen: Seen, connection: Connection, kept: Kept) -> Iterator[Check]:
    """What `localDate` means in lists of bookings."""
    name, lists = "dates of lists", list(seen.dates())
    shown = {means for means, _ in lists} & _MEANS.keys()
    if len(shown) != 1:
        yield unknown(name, "too few bookings to tell whether localDate is the travel date or the day of booking")
        return
    (meant,), configured = shown, connection.booking_date_means
    if configured not in ("auto", meant):
        fix = advise("date meaning", means=meant, name=connection.name)
        meaning = "Windows are asked for with the wrong days: bookings are missing, and those outside of the window look gone."
        yield differs(name, f'localDate is the {_MEANS[meant]}, the file says "{configured}"', meaning, fix)
    else:
        yield passed(name, f"localDate is the {_MEANS[meant]}")
    if meant == "creation":
        ahead = [(travel - made).days for _, dates in lists for travel, made in dates if travel and made]
        yield _look_back(kept.bookings, max(ahead, default=0))


def _look_back(horizon: Horizon, ahead: int) -> Check:
    """Whether the days of booking that are asked for begin early enough; guests booked up to `ahead` days before travel."""
    name, wanted = "look back", max(_LOOK_BACK, ahead)
    seen = f"guests booked up to {ahead} days ahead"
    if -horizon.before >= wanted:
        return passed(name, f"bookings are asked for by day of booking, {-horizon.before} days back; {seen}")
    wider = Horizon(-max(wanted, _LOOK_BACK + 35), horizon.after)
    return differs(
        name,
        f"bookings are asked for by day of booking, only {-horizon.before} days back; {seen}",
        "A booking made before horizon.bookings begins is not in the copy, however late its travel date.",
        advise("look back", horizon=wider),
    )


def lengths(seen: Seen) -> Check:
    """Whether lists are cut."""
    name = "length of lists"
    answers = [("products", seen.products), *(("bookings", answer) for answer, _ in seen.bookings)]
    counts = [(what, len(rows_of(answer))) for what, answer in answers]
    longest = max(count for _, count in counts)
    fix = advise("page size")
    if seen.halves:
        parts = {row.get("uuid") for answer in seen.halves for row in rows_of(answer)}
        if len(parts) > quirks.CAP:
            meaning = (
                "Bookings are asked for in smaller windows until none is full; a single day of more than 100 stays cut."
            )
            return differs(name, "lists are cut after 100 records", meaning, fix)
        return passed(name, "exactly 100 bookings, and not more in two halves")
    if which := next((what for what, count in counts if quirks.looks_capped(count)), ""):
        meaning = f"If this one is cut there, further {which} are not in the copy."
        return Check(name, "unknown", f"exactly 100 {which}; some services cut lists at 100", meaning, fix)
    if longest > quirks.CAP:
        return passed(name, f"not cut at 100: a list of {longest} came whole")
    return unknown(name, f"the longest list had {longest} records; some services cut at 100")


def prices(seen: Seen, connection: Connection) -> Iterator[Check]:
    """Bookings of no price, though their tickets have one; or all of them, though their products have one."""
    if "pricing" not in connection.capabilities:
        return
    name, priced = "prices of bookings", _priced_options(seen.products)
    rows = {
        row.get("uuid"): row
        for row in seen.listed
        if _amount(row) is not None and row.get("status") not in ("CANCELLED", "EXPIRED")
    }
    free = [row for row in rows.values() if not _amount(row)]
    sold = [row for row in free if any(_amount(item) for item in objects(row.get("unitItems")))]
    of_priced = [row for row in free if (str(row.get("productId")), str(row.get("optionId"))) in priced]
    wrong = sold or (of_priced if len(free) == len(rows) else [])
    if not rows:
        if seen.products is None or "pricing" not in ignored(seen.products, connection):
            yield unknown(name, "no booking with a price was seen")
    elif wrong:
        what = "tickets" if sold else "products"
        yield differs(
            name,
            f"{len(wrong)} of {len(rows)} bookings have a price of 0, though their {what} have one",
            "Revenue and what is owed are too low by these bookings: amounts are those of the booking.",
            advise("prices"),
        )
    else:
        yield passed(name, "bookings have the prices of their tickets" if not free else "only free ones have none")


def _amount(record: Mapping[str, Any]) -> int | None:
    """The largest amount of a record's pricing; None where it has none."""
    pricing = record.get("pricing")
    if not isinstance(pricing, dict):
        return None
    amounts = [a for part in ("original", "retail", "net") if isinstance(a := pricing.get(part), int)]
    return max(amounts, default=None)


def _priced_options(products: Answer | None) -> set[tuple[str, str]]:
    """Product and option ids of which something costs something."""
    found = set()
    for product in rows_of(products):
        for option in objects(product.get("options")):
            priced = (option, *objects(option.get("units")))
            prices = [p for each in priced for name in ("pricingFrom", "pricing") for p in objects(each.get(name))]
            if any(_amount({"pricing": price}) for price in prices):
                found.add((str(product.get("id")), str(option.get("id"))))
    return found


# -- departures, products, and what is not there -----------------------------------------------------------------------


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
            said = "shown as if it were there"
            if error:
                said = f"{error.status or 'refused'} {error.code or 'without a code'}"
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
