"""One pure function per OCTO endpoint: arguments in, a `Call` out. Nothing here touches the network.

Paths, bodies and answers: the brief for subscriptions and `GET /products`, the public OCTO specification for the rest.
A parameter that is not given is not sent; `None` is sent as `null`. Longer than most modules, because it is a list.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import date
from typing import Any, Generic, TypedDict, TypeVar, Unpack, get_origin
from urllib.parse import quote

import msgspec
from msgspec import UNSET, UnsetType

from octo_sync.errors import RequestRefused
from octo_sync.octo import records

T = TypeVar("T")
Json = Mapping[str, object]
Missing = dict[str, tuple[str, tuple[str, ...]]]
SUBSCRIPTIONS = "/notifications/subscriptions"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request, described. Two equal calls ask for the same thing.

    `answers` is the type of the record in its answer, for `Typed.ask`. `operation` names it in messages and in
    `Connection.capability_overrides`. `missing` maps the error codes that prove "this id does not exist" to the error
    object's context key and the ids that were asked for. `opens_with` are the bytes a JSON answer may begin with, empty
    when the answer has no body. `needs` are capabilities without which the operation does not exist. `params` and `json`
    may hold personal data: `repr` leaves them out.
    """

    operation: str
    method: str
    path: str
    _: KW_ONLY
    params: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    json: Json | None = field(default=None, repr=False)
    safe_to_retry: bool = False
    missing: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    opens_with: bytes = b"{"
    answers: Any = None
    needs: tuple[str, ...] = ()
    language: str | None = None

    @property
    def body(self) -> bytes | None:
        """What is sent: `json` encoded, None without it."""
        return None if self.json is None else msgspec.json.encode(self.json)


class Remarks(TypedDict, total=False):
    """What is said of a booking."""

    contact: Json
    currency: str
    email_receipt: bool
    expiration_minutes: int
    notes: str | None
    reseller_reference: str | None


class Changes(Remarks, total=False):
    """The same, and what was booked."""

    availability_id: str
    option_id: str
    product_id: str
    unit_items: Sequence[Json]


def supplier() -> Call[records.Supplier]:
    """`GET /supplier`."""
    return _ask("supplier", "/supplier", records.Supplier)


def products(*, language: str | None = None) -> Call[list[records.Product]]:
    """`GET /products`."""
    return _ask("products", "/products", list[records.Product], language=language)


def product(product_id: str, *, language: str | None = None) -> Call[records.Product]:
    """`GET /products/{id}`."""
    missing = {"INVALID_PRODUCT_ID": ("productId", (product_id,))}
    return _ask("product", f"/products/{_segment(product_id)}", records.Product, missing=missing, language=language)


def availability(
    product_id: str,
    option_id: str,
    start: date | None = None,
    end: date | None = None,
    *,
    local_date: date | None = None,
    availability_ids: Sequence[str] | None = None,
    units: Sequence[Json] | UnsetType = UNSET,
) -> Call[list[records.Availability]]:
    """`POST /availability` for whole days at the venue (both included), for one day, or for known availability ids.

    With `units` status and vacancies become relative to the party (Q21); a copy of the calendar has none.
    """
    if ((start is not None) + (local_date is not None) + (availability_ids is not None)) != 1 or (
        (start is None) != (end is None)
    ):
        raise ValueError("availability needs exactly one of: start and end, local_date, availability_ids")
    asked: dict[str, object] = {"product_id": product_id, "option_id": option_id, **_days(start, end, local_date)}
    if availability_ids is not None:
        asked["availability_ids"] = availability_ids
    missing = _no_option(product_id, option_id, availability_ids)
    return _post("availability", "", list[records.Availability], missing, **asked, units=units)


def calendar(
    product_id: str, option_id: str, start: date, end: date, *, units: Sequence[Json] | UnsetType = UNSET
) -> Call[list[records.AvailabilityCalendar]]:
    """`POST /availability/calendar`: one object per day. Not every service has it (Q22)."""
    asked = {"product_id": product_id, "option_id": option_id, **_days(start, end)}
    missing = _no_option(product_id, option_id)
    return _post("calendar", "/calendar", list[records.AvailabilityCalendar], missing, **asked, units=units)


def reserve(
    product_id: str,
    option_id: str,
    availability_id: str | UnsetType | None = UNSET,
    *,
    unit_items: Sequence[Json],
    uuid: str | UnsetType = UNSET,
    idempotent: bool = False,
    **said: Unpack[Remarks],
) -> Call[records.Booking]:
    """`POST /bookings`: a reservation, on hold until it is confirmed or expires.

    Repeating it with the same `uuid` gives the same booking at some services only, so it is not retried unless the
    caller says `idempotent`.
    """
    ids = {"product_id": product_id, "option_id": option_id, "availability_id": availability_id}
    return Call(
        "reserve",
        "POST",
        "/bookings",
        answers=records.Booking,
        json=_body(None, uuid=uuid, **ids, unit_items=unit_items, **said),
        safe_to_retry=idempotent and isinstance(uuid, str),
        missing=_no_option(product_id, option_id, [availability_id] if isinstance(availability_id, str) else None),
    )


def bookings(
    *,
    start: date | None = None,
    end: date | None = None,
    local_date: date | None = None,
    reseller_reference: str | None = None,
    supplier_reference: str | None = None,
) -> Call[list[records.Booking]]:
    """`GET /bookings`: the bookings of this token, by days (both included), one day, or a reference.

    What the days mean differs between services (Q9); see `quirks.booking_dates_mean`.
    """
    if (start is None) != (end is None):
        raise ValueError("bookings needs start and end together")
    if all(value is None for value in (start, local_date, reseller_reference, supplier_reference)):
        raise ValueError("bookings needs start and end, local_date, reseller_reference or supplier_reference")
    given = {
        "resellerReference": reseller_reference,
        "supplierReference": supplier_reference,
        **_days(start, end, local_date),
    }
    asked = tuple((name, value) for name, value in given.items() if value is not None)
    return _ask("bookings", "/bookings", list[records.Booking], params=asked)


def booking(uuid: str) -> Call[records.Booking]:
    """`GET /bookings/{uuid}`."""
    return _ask("booking", f"/bookings/{_segment(uuid)}", records.Booking, missing=_no_booking(uuid))


def confirm(uuid: str, *, more: Json | None = None, **said: Unpack[Changes]) -> Call[records.Booking]:
    """`POST /bookings/{uuid}/confirm`. `unit_items`, when given, lists all. OCTO requires a contact, which may be empty."""
    body = _body(more, **said)
    return _change("confirm", "POST", uuid, "/confirm", body | {"contact": body.get("contact") or {}})


def update(uuid: str, *, more: Json | None = None, **said: Unpack[Changes]) -> Call[records.Booking]:
    """`PATCH /bookings/{uuid}`. Unit items left out of a sent list are removed from the booking."""
    return _change("update", "PATCH", uuid, "", _body(more, **said))


def cancel(
    uuid: str, *, reason: str | UnsetType | None = UNSET, force: bool | UnsetType = UNSET, by_delete: bool = False
) -> Call[records.Booking]:
    """`POST /bookings/{uuid}/cancel`, or `DELETE /bookings/{uuid}` at services that only know the older form."""
    method, verb = ("DELETE", "") if by_delete else ("POST", "/cancel")
    return _change("cancel", method, uuid, verb, _body(None, reason=reason, force=force))


def extend(uuid: str, *, expiration_minutes: int | UnsetType = UNSET) -> Call[records.Booking]:
    """`POST /bookings/{uuid}/extend`: keeps a reservation on hold for longer."""
    return _change("extend", "POST", uuid, "/extend", _body(None, expiration_minutes=expiration_minutes))


def capabilities() -> Call[list[records.Capability]]:
    """`GET /capabilities`: what the service offers. Not every service has it (Q23)."""
    return _ask("capabilities", "/capabilities", list[records.Capability])


def list_subscriptions(*, params: Mapping[str, str] | None = None) -> Call[Any]:
    """`GET /notifications/subscriptions`. Some services answer with pages inside an object (Q31)."""
    asked = tuple((params or {}).items())
    return _subscriptions("list_subscriptions", "GET", params=asked, safe_to_retry=True, opens_with=b"[{")


def get_subscription(subscription_id: str) -> Call[Any]:
    """`GET /notifications/subscriptions/{id}`."""
    return _subscriptions("get_subscription", "GET", subscription_id, safe_to_retry=True)


def create_subscription(url: str, notification_types: Iterable[str], headers: Mapping[str, str] | None) -> Call[Any]:
    """`POST /notifications/subscriptions`. Not idempotent: after any doubt, list and adopt."""
    return _subscriptions("create_subscription", "POST", json=_subscription(url, notification_types, headers))


def update_subscription(
    subscription_id: str, url: str, notification_types: Iterable[str], headers: Mapping[str, str] | None
) -> Call[Any]:
    """`PATCH /notifications/subscriptions/{id}`, always with everything, so that repeating it changes nothing."""
    body = _subscription(url, notification_types, headers)
    return _subscriptions(
        "update_subscription", "PATCH", subscription_id, json=body, safe_to_retry=True, opens_with=b""
    )


def delete_subscription(subscription_id: str) -> Call[Any]:
    """`DELETE /notifications/subscriptions/{id}`. Not retried: a second try would meet a subscription that is gone."""
    return _subscriptions("delete_subscription", "DELETE", subscription_id, opens_with=b"")


def _ask(operation: str, path: str, answers: Any, *, method: str = "GET", **more: Any) -> Call[Any]:  # noqa: ANN401 - types, and fields of a call
    """A question, which may be asked as often as one likes."""
    opens_with = b"[" if get_origin(answers) is list else b"{"
    return Call(operation, method, path, answers=answers, safe_to_retry=True, opens_with=opens_with, **more)


def _post(operation: str, part: str, answers: Any, missing: Missing, **asked: object) -> Call[Any]:  # noqa: ANN401 - the same
    """The same of what an option offers."""
    path, body = f"/availability{part}", _body(None, **asked)
    return _ask(operation, path, answers, method="POST", json=body, missing=missing)


def _change(operation: str, method: str, uuid: str, verb: str, body: Json) -> Call[records.Booking]:
    """What is done to a booking."""
    path, missing = f"/bookings/{_segment(uuid)}{verb}", _no_booking(uuid)
    return Call(operation, method, path, json=body, answers=records.Booking, missing=missing)


def _subscriptions(operation: str, method: str, one: str | None = None, **more: Any) -> Call[Any]:  # noqa: ANN401 - the same
    path = SUBSCRIPTIONS if one is None else f"{SUBSCRIPTIONS}/{_segment(one)}"
    return Call(operation, method, path, needs=("notifications",), **more)


def _subscription(url: str, notification_types: Iterable[str], headers: Mapping[str, str] | None) -> Json:
    kept = UNSET if headers is None else dict(headers)
    return _body(None, url=url, notification_types=list(notification_types), headers=kept)


def _no_option(product_id: str, option_id: str, availability_ids: Sequence[str] | None = None) -> Missing:
    missing: Missing = {"INVALID_PRODUCT_ID": ("productId", (product_id,))}
    missing["INVALID_OPTION_ID"] = ("optionId", (option_id,))
    if availability_ids is not None:
        missing["INVALID_AVAILABILITY_ID"] = ("availabilityId", tuple(availability_ids))
    return missing


def _no_booking(uuid: str) -> Missing:
    return {"INVALID_BOOKING_UUID": ("uuid", (uuid,))}


def _body(more: Json | None, **fields: object) -> dict[str, object]:
    """Fields by OCTO's names."""
    named = {re.sub("_(.)", lambda part: part[1].upper(), name): value for name, value in fields.items()}
    return {name: value for name, value in named.items() if value is not UNSET} | dict(more or {})


def _days(start: date | None, end: date | None, local_date: date | None = None) -> dict[str, str]:
    given = {"localDate": local_date, "localDateStart": start, "localDateEnd": end}
    return {name: day.isoformat() for name, day in given.items() if day is not None}


def _segment(text: str) -> str:
    """An opaque id as one path segment: it can neither leave its place nor vanish from the path."""
    if not text:
        raise RequestRefused("An empty id cannot be asked for: it would name the whole list; nothing was sent")
    try:
        quoted = quote(text, safe="")
    except UnicodeEncodeError:
        quoted = ""
    if not quoted:
        raise RequestRefused("An id that is not valid Unicode cannot be asked for; nothing was sent")
    # "." and ".." would be resolved away by every URL library, %2E is left alone by ours.
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted
