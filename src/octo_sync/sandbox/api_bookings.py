"""The bookings routes of the API."""

import datetime as dt
from collections.abc import Mapping

from octo_sync.sandbox import bookings
from octo_sync.sandbox.bookings import Json
from octo_sync.sandbox.clock import DAY
from octo_sync.sandbox.errors import bad_request, invalid_booking, not_found
from octo_sync.sandbox.messages import Answer, Call, ok
from octo_sync.sandbox.nouns import Booking
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.zones import utc_midnight

NO_FILTER = "either resellerReference, supplierReference, localDate or localDateStart/localDateEnd is required"


def route(service: Service, call: Call) -> Answer:
    """One request; the path begins with /bookings."""
    quirks, extras = service.quirks, call.view.extras
    told = bool(quirks["client_update_notifies"])
    match call.method, call.parts[1:]:
        case "GET", []:
            return _list(service, call)
        case "GET", [uuid]:
            return _get(service, uuid, call)
        case "POST", []:
            booking = bookings.reserve(service, call.json(), call.token, test=call.test, with_extras=extras)
        case "PATCH", [uuid] if not quirks["no_patch"]:
            booking = bookings.update(service, *_named(service, uuid, call), with_extras=extras, notify=told)
        case "POST", [uuid, "confirm"]:
            booking = bookings.confirm(service, *_named(service, uuid, call), with_extras=extras)
        case "POST", [uuid, "extend"] if not quirks["no_extend"]:
            booking = bookings.extend(service, *_named(service, uuid, call), notify=told)
        case ("DELETE", [uuid]) | ("POST", [uuid, "cancel"]):
            booking = bookings.cancel(service, *_named(service, uuid, call))
        case _:
            raise not_found("This path")
    return _shown(service, booking, call)


def _named(service: Service, uuid: str, call: Call) -> tuple[Booking, Json]:
    """The booking that a request is about, and what its body says of it."""
    return bookings.find(service, uuid, call.token), call.json() if call.body.strip() else {}


def _shown(service: Service, booking: Booking, call: Call) -> Answer:
    return ok(service.booking_bytes.body(booking, call.view))


def _get(service: Service, uuid: str, call: Call) -> Answer:
    booking = bookings.find(service, uuid, call.token)
    instant = _lagging(service, call)
    seen = booking if instant is None else service.store.as_of(booking, instant)
    if seen is None or (seen.status == "EXPIRED" and service.quirks["lapsed_holds_unreadable"]):
        raise invalid_booking(uuid)
    return _shown(service, seen, call)


def _lagging(service: Service, call: Call) -> float | None:
    """The instant whose state a read shows, when a fault lets it lag."""
    fault = service.faults.pick("read_lag", call.method, call.path)
    return None if fault is None else service.clock.seconds() - float(fault.params["seconds"])


def _list(service: Service, call: Call) -> Answer:
    found = _windowed(service, call)
    query = call.query
    for key, name in (
        ("resellerReference", "reseller_reference"),
        ("supplierReference", "supplier_reference"),
        ("productId", "product_id"),
        ("optionId", "option_id"),
    ):
        if query.get(key):
            wanted = service.product_id(query[key]) if key == "productId" else query[key]
            found = [booking for booking in found if getattr(booking, name) == wanted]
    found = [booking for booking in found if service.visible(booking, call.token)]
    if service.quirks["cancelled_not_listed"]:
        found = [booking for booking in found if booking.status != "CANCELLED"]
    if not service.quirks["test_bookings_in_feed"]:
        found = [booking for booking in found if booking.test == call.test]
    return ok(service.booking_bytes.array(found, call.view))


def _windowed(service: Service, call: Call) -> list[Booking]:
    query = call.query
    window: tuple[int, int] | None = None
    if "localDate" in query:
        window = (_date(query, "localDate"),) * 2
    elif "localDateStart" in query and "localDateEnd" in query:
        window = (_date(query, "localDateStart"), _date(query, "localDateEnd"))
        if window[1] < window[0]:
            raise bad_request("localDateEnd is before localDateStart")
    elif not query.get("resellerReference") and not query.get("supplierReference"):
        raise bad_request(NO_FILTER)
    store, instant = service.store, _lagging(service, call)
    by_creation = service.quirks["booking_date_is_creation"]
    if window is not None and instant is None and not by_creation:
        return store.between(*window)
    found = store.ordered()
    if instant is not None:
        found = [past for booking in found if (past := store.as_of(booking, instant)) is not None]
    if window is not None and by_creation:
        low, high = utc_midnight(window[0]), utc_midnight(window[1]) + DAY
        return [booking for booking in found if low <= booking.created < high]
    return [booking for booking in found if window is None or window[0] <= booking.local_date <= window[1]]


def _date(query: Mapping[str, str], key: str) -> int:
    """A date of the query as an ordinal; full date-times are cut, as providers' clients send them."""
    try:
        return dt.date.fromisoformat(query[key][:10]).toordinal()
    except ValueError as error:
        raise bad_request(f"{key} is not a date (YYYY-MM-DD).") from error
