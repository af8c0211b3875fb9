"""What a webhook's body says: bytes in, identifiers and dates out. Pure, and nothing raises.

A body is a hint about what to look at again, never data (R4). So it is read as generously as is safe: whatever can be
concluded is, and what is odd is said beside it. Three envelopes are known:

- the service's: `subscriptionId`, `notificationType`, `data`
- the official one: the same with `id` and `utcCreatedAt`
- the older `octo/webhooks`: `webhook` with its `event` in lower case, and whole objects (`booking`, `availability`)
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import msgspec

_LONGEST = 255
_TWICE = "a key twice"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_UTF8_BOM = b"\xef\xbb\xbf"
_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?:T.*)?", re.ASCII | re.DOTALL)

_SAID = frozenset({
    "subscriptionId", "notificationType", "type", "event", "id", "uuid", "bookingUuid", "productId", "optionId",
    "utcCreatedAt", "localDate", "localDateStart", "localDateEnd", "localDateTimeStart",
})  # fmt: skip
"""Where identifiers, dates and types stand."""
_TABLES = frozenset({"data", "webhook", "booking", "availability", "product"})
_DEEPEST = 2
"""Tables inside of tables of the envelope, e.g. the product of an availability."""

_decode = msgspec.json.Decoder().decode


class About(StrEnum):
    """What is to be looked at again."""

    BOOKING = "booking"
    PRODUCT = "product"
    AVAILABILITY = "availability"
    NOTHING = ""
    """Nothing can be concluded."""


_TYPES = {
    "BOOKING_UPDATE": About.BOOKING,
    "PRODUCT_UPDATE": About.PRODUCT,
    "AVAILABILITY_UPDATE": About.AVAILABILITY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What a body says. Every text is printable, of 1 to 255 characters, and an opaque identifier."""

    about: About = About.NOTHING
    type: str = ""
    """As it calls itself, in capitals; empty when it does not say."""
    subscription: str = ""
    booking: str | None = None
    product: str | None = None
    option: str | None = None
    """None: all options."""
    first: date | None = None
    last: date | None = None
    """Days at the venue, both included, `first` not after `last`; None: all days."""
    reading: str = ""
    """Empty when it is as agreed, otherwise what is odd, in words of our own."""


def read(body: bytes) -> Notification:
    """Read a body of bounded size; whatever the bytes are, the answer is a notification."""
    return parted(body)[0]


def parted(body: bytes) -> tuple[Notification, bytes | None]:
    """The notification, and what of the body may be kept: who reads that understands the same.

    That is the body itself when it holds nothing but identifiers, dates and types, and otherwise only these: an older
    envelope brings whole bookings with their contacts. None when it is no JSON object, so that nobody knows what it holds.
    """
    odd: list[str] = []
    envelope = _object(body, odd)
    if envelope is None:
        return Notification(reading="; ".join(odd)), None
    reduced = _reduced(envelope)
    # Of a key that is there twice only the last value was seen.
    is_agreed = reduced == envelope and _TWICE not in odd
    return _notification(envelope, odd), body if is_agreed else _encode(reduced)


def _reduced(table: Mapping[str, object], deeper: int = _DEEPEST) -> dict[str, object]:
    """Only what is read. What cannot be an identifier becomes an empty text: an impossible date is not a missing one."""
    kept: dict[str, object] = {}
    for key, value in table.items():
        if key in _TABLES and isinstance(value, dict) and deeper:
            kept[key] = _reduced(value, deeper - 1)
        elif key in _SAID or key in _TABLES:
            kept[key] = value if key in _SAID and _fits(value) else ""
    return kept


def _fits(value: object) -> bool:
    """Whether it can be an identifier, a date or a type, or is nothing at all."""
    if isinstance(value, str):
        return len(value) <= _LONGEST and value.isprintable()
    return value is None or (isinstance(value, int) and _first((value,)) is not None)


def _encode(table: Mapping[str, object]) -> bytes:
    return json.dumps(table, ensure_ascii=False, separators=(",", ":")).encode()


def _notification(envelope: Mapping[str, object], odd: list[str]) -> Notification:
    data, webhook = _table(envelope, "data"), _table(envelope, "webhook")
    if "data" in envelope and envelope["data"] is not data:
        odd.append("data is no object")
    # The most certain first.
    names = envelope.get("notificationType"), webhook.get("event"), envelope.get("type"), envelope.get("event")
    name = next(filter(None, map(_name, names)), "")
    said = _TYPES.get(name)
    booking = _first(_bookings(envelope, data))
    product = _first(_products(envelope, data))
    # An unknown type is about what it names.
    named = About.BOOKING if booking is not None else About.PRODUCT if product is not None else About.NOTHING
    about = named if said is None else said
    if said is None:
        odd.append("unknown type" if name else "no type")
    if about is About.BOOKING:
        product = None
        if booking is None:
            odd.append("names no booking")
            about = About.NOTHING
    else:
        booking = None
    if product is None and about in {About.PRODUCT, About.AVAILABILITY}:
        odd.append("names no product")
    option, first, last = None, None, None
    if about is About.AVAILABILITY:
        option = _first(table.get("optionId") for table in (data, envelope, _table(envelope, "availability")))
        first, last = _days(envelope, data, odd)
    return Notification(
        about=about,
        type=name,
        subscription=_first((envelope.get("subscriptionId"), webhook.get("id"))) or "",
        booking=booking,
        product=product,
        option=option,
        first=first,
        last=last,
        reading="; ".join(odd),
    )


def _object(body: bytes, odd: list[str]) -> Mapping[str, object] | None:
    """The body as a JSON object, noting what is odd; None when it is none."""
    if not body.strip():
        odd.append("empty")
        return None
    if body.startswith(_UTF8_BOM):
        odd.append("begins with a byte order mark")
        body = body.removeprefix(_UTF8_BOM)
    if body.startswith(_UTF16_BOMS):
        odd.append("UTF-16")
        body = body.decode("utf-16", errors="replace").encode(errors="replace")
    document: object
    try:
        document = _decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        document = _loosely(body, odd)
    if not isinstance(document, dict):
        if document is not None or body.strip() == b"null":
            odd.append("no object")
        return None
    if _has_a_key_twice(body):
        odd.append(_TWICE)
    return document


def _loosely(body: bytes, odd: list[str]) -> object:
    """JSON as some programs write it, with NaN or half a surrogate in it; None when it is not even that."""
    try:
        document: object = json.loads(body.decode())
    except (ValueError, RecursionError):
        odd.append("not JSON")
        return None
    odd.append("not strict JSON")
    return document


def _has_a_key_twice(body: bytes) -> bool:
    found = False

    def look(pairs: list[tuple[str, object]]) -> None:
        nonlocal found
        found = found or len({key for key, _ in pairs}) < len(pairs)

    try:
        json.loads(body, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return True  # the first reader was content and this one is not: odd in any case
    return found


def _table(table: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = table.get(key)
    return found if isinstance(found, dict) else {}


def _bookings(envelope: Mapping[str, object], data: Mapping[str, object]) -> Iterator[object]:
    """Where a booking's uuid may stand."""
    for table in (data, _table(data, "booking"), _table(envelope, "booking"), envelope):
        yield table.get("uuid")
        yield table.get("bookingUuid")


def _products(envelope: Mapping[str, object], data: Mapping[str, object]) -> Iterator[object]:
    """Where a product's id may stand."""
    for table in (data, envelope, _table(envelope, "availability")):
        yield table.get("productId")
        yield _table(table, "product").get("id")


def _first(values: Iterator[object] | tuple[object, ...]) -> str | None:
    """The first of the values that can be an identifier: a text, or a whole number (some services send those)."""
    for value in values:
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if isinstance(text, str) and len(text) <= _LONGEST and text.isprintable() and text.strip():
            return text
    return None


def _name(value: object) -> str:
    return (_first((value,)) or "").strip().upper()[:_LONGEST] if isinstance(value, str) else ""


def _days(
    envelope: Mapping[str, object], data: Mapping[str, object], odd: list[str]
) -> tuple[date | None, date | None]:
    """The days it is about; None twice when it does not say or says what cannot be."""
    slot = _table(envelope, "availability").get("localDateTimeStart")

    def said(name: str) -> object:
        dates = (table.get(key) for table in (data, envelope) for key in (name, "localDate"))
        return next((value for value in dates if value is not None), slot)

    start, end = said("localDateStart"), said("localDateEnd")
    if start is None or end is None:
        return None, None
    first, last = _day(start), _day(end)
    if first is None or last is None:
        odd.append("impossible dates")
        return None, None
    if first > last:
        odd.append("reversed dates")
        return None, None
    return first, last


def _day(value: object) -> date | None:
    match = _DATE.fullmatch(value) if isinstance(value, str) else None
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None
