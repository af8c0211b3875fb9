"""What real services do differently, as pure functions; each names its quirk, docs/internals/client.md explains them all."""

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Literal

from octo_sync.model import Connection, Window
from octo_sync.octo.answer import Answer

CAP = 100
SLACK = timedelta(days=1)
SPELLINGS = ("/notifications/subscriptions", "/notifications/subcriptions")

# What each capability adds, for the operations where it always adds something.
_PRODUCT_PRICES = ("pricingFrom", "pricing", "defaultCurrency", "availableCurrencies", "pricingPer")
_PRODUCT_TEXTS = ("title", "shortDescription", "description", "features", "media", "coverImageUrl")
_MARKS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "pricing": {
        "products": _PRODUCT_PRICES,
        "product": _PRODUCT_PRICES,
        "availability": ("unitPricing", "pricing"),
        "calendar": ("unitPricingFrom", "pricingFrom", "unitPricing", "pricing"),
        "bookings": ("pricing",),
        "booking": ("pricing",),
    },
    "content": dict.fromkeys(("products", "product"), _PRODUCT_TEXTS),
    "extras": dict.fromkeys(("products", "product"), ("extras",)),
}


def spell_capability(name: str, spelling: str) -> str:
    """`name` in the `prefixed` or `short` spelling (Q5). Names of another vendor, like `ventrata/x`, stay."""
    short = name.removeprefix("octo/")
    return short if spelling == "short" or "/" in short else f"octo/{short}"


def other_spelling(spelling: str) -> str:
    """The one of `prefixed` and `short` that `spelling` is not."""
    return "short" if spelling == "prefixed" else "prefixed"


def capability_header(connection: Connection, operation: str, needs: Iterable[str] = ()) -> str | None:
    """The `Octo-Capabilities` header for one operation (Q4, Q5).

    It is sent even when empty, because its absence is an error at some services. None, by an override, leaves it out.
    """
    if operation in connection.capability_overrides:
        chosen = connection.capability_overrides[operation]
        if chosen is None:
            return None
        names = [*chosen]
    else:
        names = [*connection.capabilities, *needs]
    return ", ".join(dict.fromkeys(spell_capability(name, connection.capability_spelling) for name in names))


def ignored_capabilities(requested: Iterable[str], answer: Answer) -> frozenset[str]:
    """The capabilities of `requested` that the service silently left out, in short spelling (Q5, Q6, R10).

    An `Octo-Capabilities` header in the answer decides. Without it a capability counts as ignored when the operation
    always shows it, the answer has records, and not one of its fields is there, null or not. An answer without records
    proves nothing.
    """
    wanted = {spell_capability(name.strip(), "short") for name in requested if name.strip()}
    echo = answer.headers.get("octo-capabilities")
    if echo is not None:
        return frozenset(wanted - {spell_capability(name.strip(), "short") for name in echo.split(",")})
    if b"{" not in answer.body:
        return frozenset()
    return frozenset(
        name
        for name in wanted
        if (marks := _MARKS.get(name, {}).get(answer.call.operation))
        and not re.search(rb'"(?:%b)"\s*:' % "|".join(marks).encode(), answer.body)
    )


def looks_capped(count: int) -> bool:
    """Exactly 100 rows are the mark of a service that cuts lists silently (Q3): warn, and ask for smaller windows."""
    return count == CAP


def may_be_cut(count: int) -> bool:
    """Whether a service that gives so many records may have stopped there: sizes of pages are round numbers."""
    return count > 0 and (count % 10 == 0 or count % 25 == 0)


def is_continued(headers: Mapping[str, str]) -> bool:
    """Whether a service says that a list goes on elsewhere (RFC 8288), which OCTO has no word for."""
    return re.search(r"rel\s*=\s*\"?next\b", headers.get("link", ""), re.IGNORECASE) is not None


def shrink(window: Window) -> tuple[Window, ...]:
    """Two smaller windows to try after one was refused, timed out or was too large (Q16, Q18); none below one day.

    Each part answers for its own days only.
    """
    return window.halves() if window.days > 1 else ()


def other_path_spelling(path: str) -> str | None:
    """The path to try after 404 or 405: the official page misspells the path that creates subscriptions (Q30)."""
    for this, other in (SPELLINGS, SPELLINGS[::-1]):
        if path.startswith(this):
            return other + path.removeprefix(this)
    return None


def languages_offered(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The languages content exists in, by either name of the header (Q35); empty when nothing is said."""
    said = headers.get("octo-available-languages") or headers.get("available-languages") or ""
    return tuple(dict.fromkeys(name.strip() for name in said.split(",") if name.strip()))


def booking_dates_mean(
    dates: Iterable[tuple[date | None, date | None]], window: Window
) -> Literal["travel", "creation", "either", "unknown"]:
    """What the service took the window's days for (Q9), from each booking's (travel date, date of creation in UTC).

    One meaning must fit every booking and the other fail for at least one; `either` when both fit (as in a month whose few
    bookings were made in it), `unknown` when neither does. A day's slack covers the zone in which the service counts days.
    """
    first, last = window.start - SLACK, window.end + SLACK
    travel_fits = creation_fits = True
    for travel, created in dates:
        if travel is None or created is None:
            continue
        travel_fits = travel_fits and first <= travel <= last
        creation_fits = creation_fits and first <= created <= last
    if travel_fits == creation_fits:
        return "either" if travel_fits else "unknown"
    return "travel" if travel_fits else "creation"
