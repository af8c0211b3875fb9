"""The booking flow: reserve, confirm, update, cancel, extend. Every rule of the state machine is here."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from octo_sync.sandbox import sales, zones
from octo_sync.sandbox.api_availability import check_currency, named, text_of
from octo_sync.sandbox.catalog import seeded_uuid
from octo_sync.sandbox.config import Token
from octo_sync.sandbox.errors import bad_request, invalid, invalid_booking, unprocessable
from octo_sync.sandbox.nouns import NOBODY, OPEN, SLOTS_PER_DAY, Booking, Cancellation, Option, Product, UnitItem
from octo_sync.sandbox.parts import check_party, chosen_extras, contact_of, field
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.store import with_status
from octo_sync.sandbox.zones import slot_times

Json = dict[str, Any]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
HOLD_MINUTES = 30
_HOLD_MINUTES_MAX = 4_320
_ACCEPTED = 0.8


class _Aim(NamedTuple):
    """What a booking is for; `slot` is None where it is sold without availability."""

    product: Product
    option: Option
    slot: int | None
    ordinal: int


def find(service: Service, uuid: str, token: Token) -> Booking:
    """A booking this token may see.

    Raises:
        OctoError: INVALID_BOOKING_UUID.
    """
    known = uuid.lower() if service.quirks["uuid_uppercase"] else uuid
    booking = service.store.bookings.get(known)
    if booking is None or not service.visible(booking, token):
        raise invalid_booking(uuid)
    return booking


def reserve(service: Service, body: Json, token: Token, *, test: bool = False, with_extras: bool = True) -> Booking:
    """Hold places. The same uuid of the same token gives the same booking."""
    uuid = body.get("uuid")
    if uuid is not None:
        if not isinstance(uuid, str) or not UUID.fullmatch(uuid):
            raise bad_request("uuid is not a UUID in lower-case hexadecimal.")
        if uuid in service.store.bookings:
            return find(service, uuid, token)
    product, option = named(service, body)
    slot = _slot(service, body, product, option)
    check_currency(body, product)
    now = service.clock.whole()
    ordinal = slot // SLOTS_PER_DAY if slot is not None else zones.local_ordinal(product.time_zone, now)
    aim = _Aim(product, option, slot, ordinal)
    items = _items(service, body, aim, "ON_HOLD", with_extras=with_extras)
    _room(service, aim, items, freed=0, test=test)
    extras = chosen_extras(body, option.extras) if with_extras else ()
    uuid = uuid or seeded_uuid(service.rng)
    extra_items = sales.bought(service.rng, extras)
    booking = Booking(
        uuid=uuid,
        id=f"BK-S{len(service.store.bookings):06d}",
        token=token.name,
        status="ON_HOLD",
        test=test,
        product_id=product.id,
        option_id=option.id,
        slot=slot,
        local_date=ordinal,
        created=now,
        updated=now,
        expires=now + _hold(body) * 60,
        reseller_reference=field(body, "resellerReference", str),
        supplier_reference=f"S{uuid[:6].upper()}",
        contact=contact_of(body.get("contact"), NOBODY),
        notes=field(body, "notes", str),
        unit_items=items,
        extra_items=extra_items,
        price=sales.booking_price(product, option, ordinal, items, extra_items),
    )
    return service.change(booking, notify=True)


def confirm(service: Service, booking: Booking, body: Json, *, with_extras: bool = True) -> Booking:
    """Turn a hold into a sale, or into a request when the product is not confirmed at once."""
    _on_hold(booking, "confirmed")
    if not isinstance(body.get("contact"), dict):
        raise bad_request("contact is required.")
    booking = _changed(service, booking, body, with_extras=with_extras)
    now = service.clock.whole()
    product = service.store.any_product(booking.product_id)
    if product.instant_confirmation:
        sold = with_status(booking, "CONFIRMED", now, confirmed=now, expires=None)
    else:
        minutes = service.config.pending_minutes
        due = None if minutes is None else now + minutes * 60
        decision = "CONFIRMED" if service.rng.random() < _ACCEPTED else "REJECTED"
        sold = with_status(booking, "PENDING", now, expires=None, decide_at=due, decision=decision)
    return service.change(sold, notify=True)


def update(
    service: Service, booking: Booking, body: Json, *, with_extras: bool = True, notify: bool = False
) -> Booking:
    """Change an open booking: references, notes, contact, tickets, or when and what."""
    if booking.status not in OPEN:
        raise unprocessable(f"The booking is {booking.status} and can no longer be changed.")
    changed = _changed(service, booking, body, with_extras=with_extras)
    now = service.clock.whole()
    if "expirationMinutes" in body and booking.status == "ON_HOLD":
        changed = dataclasses.replace(changed, expires=now + _hold(body) * 60)
    return service.change(dataclasses.replace(changed, updated=now), notify=notify)


def extend(service: Service, booking: Booking, body: Json, *, notify: bool = False) -> Booking:
    """Hold the places longer."""
    _on_hold(booking, "extended")
    now = service.clock.whole()
    extended = dataclasses.replace(booking, expires=now + _hold(body) * 60, updated=now)
    return service.change(extended, notify=notify)


def cancel(service: Service, booking: Booking, body: Json) -> Booking:
    """Give the places back. The refund depends on the cut-off; after the start only `force` cancels."""
    forced = field(body, "force", bool)
    if booking.status not in OPEN:
        raise unprocessable(f"The booking is {booking.status} and cannot be cancelled.")
    now = service.clock.whole()
    refund = "FULL"
    product = service.store.any_product(booking.product_id)
    option = product.option(booking.option_id)
    if booking.slot is not None and option is not None:
        times = slot_times(product, option, booking.slot)
        if now >= times.start_epoch and not forced:
            raise unprocessable("The booking has started; it can only be cancelled with force.")
        refund = "FULL" if now < times.cutoff else "NONE"
    status = "CANCELLED"
    if booking.status == "ON_HOLD" and service.quirks["cancelled_hold_is_expired"]:
        status = "EXPIRED"
    cancellation = Cancellation(refund, field(body, "reason", str), now)
    cancelled = with_status(booking, status, now, expires=None, decide_at=None, cancellation=cancellation)
    return service.change(cancelled, notify=True)


def moved(service: Service, booking: Booking, body: Json) -> Booking:
    """The booking at another availability, places checked; not yet stored."""
    return _changed(service, booking, body, with_extras=False, judge_cutoff=False)


def _changed(
    service: Service, booking: Booking, body: Json, *, with_extras: bool, judge_cutoff: bool = True
) -> Booking:
    """The booking with what a body says, places checked; not yet stored."""
    field(body, "emailReceipt", bool)  # nobody is written to, and yet it must be one
    aim = target(service, booking, body)
    product, option, slot, ordinal = aim
    moved = (product.id, option.id, slot) != (booking.product_id, booking.option_id, booking.slot)
    before, extra_items = booking.unit_items, booking.extra_items
    if product.id != booking.product_id:  # extras are one product's, in one product's money
        before, extra_items = tuple(dataclasses.replace(item, extra_items=()) for item in before), ()
    items = sales.repriced(product, option, ordinal, before) if moved else before
    if body.get("unitItems") is not None:
        items = _items(service, body, aim, booking.status, with_extras=with_extras, before=before)
    repriced = moved or body.get("unitItems") is not None
    if repriced:
        freed = 0 if moved or not booking.takes_capacity else service.store.places(booking)
        _room(service, aim, items, freed=freed, test=booking.test, judge_cutoff=moved and judge_cutoff)
    return dataclasses.replace(
        booking,
        product_id=product.id,
        option_id=option.id,
        slot=slot,
        local_date=ordinal,
        unit_items=items,
        extra_items=extra_items,
        price=sales.booking_price(product, option, ordinal, items, extra_items) if repriced else booking.price,
        contact=contact_of(body.get("contact"), booking.contact),
        notes=field(body, "notes", str) if "notes" in body else booking.notes,
        reseller_reference=field(body, "resellerReference", str)
        if "resellerReference" in body
        else booking.reseller_reference,
    )


def target(service: Service, booking: Booking, body: Json) -> _Aim:
    """What a changed booking is for: as before, or as the body says."""
    product = service.store.any_product(booking.product_id)
    option = product.option(booking.option_id)
    slot = booking.slot
    if any(key in body for key in ("productId", "optionId", "availabilityId")):
        shown = booking.product_id + service.quirks["product_id_suffix"]
        aim = {"productId": shown, "optionId": booking.option_id, **body}
        product, option = named(service, aim)
        other = (product.id, option.id) != (booking.product_id, booking.option_id)
        slot = _slot(service, body, product, option) if "availabilityId" in body or other else booking.slot
    if option is None:
        raise unprocessable("The booking's option is no longer sold.")
    return _Aim(product, option, slot, slot // SLOTS_PER_DAY if slot is not None else booking.local_date)


def _slot(service: Service, body: Json, product: Product, option: Option) -> int | None:
    text = body.get("availabilityId")
    if text is None and not product.availability_required:
        return None
    style = service.slots.style(product)
    number = zones.find_slot(style, product, option, text) if isinstance(text, str) else None
    if number is None or not service.store.exists(option, number):
        raise invalid("availabilityId", text)
    return number


def _items(
    service: Service, body: Json, aim: _Aim, status: str, *, with_extras: bool, before: Sequence[UnitItem] = ()
) -> tuple[UnitItem, ...]:
    asked = body.get("unitItems")
    if not isinstance(asked, list) or not asked:
        raise unprocessable("unitItems is missing or empty.")
    units = {unit.id: unit for unit in aim.option.units}
    known = {item.uuid: item for item in before}
    items: list[UnitItem] = []
    for entry in asked:
        unit = units.get(text_of(entry.get("unitId"))) if isinstance(entry, dict) else None
        if unit is None:
            raise invalid("unitId", entry.get("unitId") if isinstance(entry, dict) else None)
        old = known.get(text_of(entry.get("uuid")))
        uuid = entry.get("uuid")
        if uuid is not None and (not isinstance(uuid, str) or not UUID.fullmatch(uuid)):
            raise bad_request("unitItems[].uuid is not a UUID in lower-case hexadecimal.")
        contact = contact_of(entry.get("contact"), old.contact if old else NOBODY)
        made = sales.ticket(
            service.rng,
            aim.product,
            unit,
            aim.ordinal,
            status=status,
            uuid=uuid,
            contact=contact,
            reseller_reference=field(entry, "resellerReference", str) or (old.reseller_reference if old else None),
            extras=chosen_extras(entry, unit.extras) if with_extras else (),
        )
        if old is not None:
            kept = made.extra_items if "extraItems" in entry else old.extra_items
            made = dataclasses.replace(made, supplier_reference=old.supplier_reference, extra_items=kept)
        items.append(made)
    if len({item.uuid for item in items}) < len(items):
        raise bad_request("unitItems[].uuid occurs twice.")
    return tuple(items)


def _room(
    service: Service, aim: _Aim, items: Sequence[UnitItem], *, freed: int, test: bool, judge_cutoff: bool = True
) -> None:
    """Refuse what does not fit.

    Raises:
        OctoError: UNPROCESSABLE_ENTITY.
    """
    product, option, slot, _ = aim
    check_party(option, items)
    if slot is None:
        return
    state = service.store.facts(product, option, slot)
    if state.closed:
        raise unprocessable("The venue is closed on this date.")
    if judge_cutoff and service.clock.seconds() >= slot_times(product, option, slot).cutoff:
        raise unprocessable("The cut-off of this availability has passed.")
    pax = {unit.id: unit.pax_count for unit in option.units}
    wanted = sum(pax[item.unit_id] for item in items)
    if not test and state.vacancies is not None and wanted > state.vacancies + freed:
        raise unprocessable("There are not enough vacancies.")


def _hold(body: Json) -> int:
    minutes = body.get("expirationMinutes")
    if minutes is None:
        return HOLD_MINUTES
    if not isinstance(minutes, int) or isinstance(minutes, bool) or minutes < 1:
        raise bad_request("expirationMinutes is not a whole number from 1.")
    return min(minutes, _HOLD_MINUTES_MAX)


def _on_hold(booking: Booking, what: str) -> None:
    if booking.status == "EXPIRED":
        raise invalid_booking(booking.uuid)
    if booking.status != "ON_HOLD":
        raise unprocessable(f"The booking is {booking.status}; only a booking ON_HOLD can be {what}.")
