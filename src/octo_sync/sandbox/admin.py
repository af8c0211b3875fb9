"""An administrator's changes: bookings, products, availability, subscriptions."""

import dataclasses
import datetime as dt
from typing import Any

from octo_sync.sandbox import bookings, sales
from octo_sync.sandbox.api_availability import date_of, named
from octo_sync.sandbox.bookings import HOLD_MINUTES
from octo_sync.sandbox.catalog import seeded_uuid
from octo_sync.sandbox.errors import bad_request, invalid, invalid_booking, not_found, unprocessable
from octo_sync.sandbox.nouns import Booking, Cancellation, Option, Product, Subscription
from octo_sync.sandbox.parts import contact_of, field
from octo_sync.sandbox.render_products import camel
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.store import with_status

Json = dict[str, Any]
_AIM = frozenset({"product_id", "option_id", "availability_id"})
STATUSES = frozenset({"CONFIRMED", "REJECTED", "REDEEMED", "CANCELLED", "EXPIRED", "PENDING", "ON_HOLD"})


class Admin:
    """Changes from behind the counter. `silent: true` in a body suppresses the notification.

    Args:
        service: the service behind.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def booking(self, uuid: str, body: Json) -> Booking:
        """Change notes, contact, references, status, tickets or the slot of a booking, whatever its state."""
        service = self._service
        booking = service.store.bookings.get(uuid)
        if booking is None:
            raise invalid_booking(uuid)
        now = service.clock.whole()
        texts = _texts(body, "notes", "supplier_reference", "reseller_reference")
        booking = dataclasses.replace(booking, **texts, contact=contact_of(body.get("contact"), booking.contact))
        if "move" in body:
            booking = self._moved(booking, body["move"])
        if "add_units" in body or "remove_unit_items" in body:
            booking = self._party(booking, body)
        if "status" in body:
            booking = self._status(booking, body, now)
        return service.change(dataclasses.replace(booking, updated=now), notify=body.get("silent") is not True)

    def _moved(self, booking: Booking, aim: object) -> Booking:
        if not isinstance(aim, dict):
            raise bad_request("move is an object with availability_id, and optionally product_id and option_id.")
        said = {camel(key): value for key, value in aim.items() if key in _AIM}
        return bookings.moved(self._service, booking, said)

    def _party(self, booking: Booking, body: Json) -> Booking:
        service = self._service
        product, option, _, _ = bookings.target(service, booking, {})
        units = {unit.id: unit for unit in option.units}
        gone = set(body.get("remove_unit_items") or ())
        items = [item for item in booking.unit_items if item.uuid not in gone]
        for unit_id in body.get("add_units") or ():
            if unit_id not in units:
                raise invalid("unitId", unit_id)
            items.append(sales.ticket(service.rng, product, units[unit_id], booking.local_date, status=booking.status))
        if not items:
            raise unprocessable("A booking keeps at least one unit item.")
        changed = dataclasses.replace(
            booking,
            unit_items=tuple(items),
            price=sales.booking_price(product, option, booking.local_date, items, booking.extra_items),
        )
        self._room(booking, changed)
        return changed

    def _room(self, before: Booking, after: Booking) -> None:
        """Refuse a change that takes more places than are left."""
        if after.slot is None or not after.takes_capacity:
            return
        store = self._service.store
        more = store.places(after) - (store.places(before) if before.takes_capacity else 0)
        product, option, _, _ = bookings.target(self._service, after, {})
        left = store.facts(product, option, after.slot).vacancies
        if left is not None and more > left:
            raise unprocessable("There are not enough vacancies.")

    def _status(self, booking: Booking, body: Json, now: int) -> Booking:
        status = body["status"]
        if status not in STATUSES:
            raise bad_request(f"status is one of {', '.join(sorted(STATUSES))}.")
        settled = dict.fromkeys(("expires", "decide_at", "decision", "cancellation"))
        changed = with_status(booking, status, now, **settled)
        self._room(booking, changed)
        if status == "ON_HOLD":
            return dataclasses.replace(changed, expires=now + HOLD_MINUTES * 60)
        if status == "EXPIRED":
            return dataclasses.replace(changed, expires=booking.expires or now)
        if status in {"CONFIRMED", "REDEEMED"}:
            changed = dataclasses.replace(changed, confirmed=booking.confirmed or now)
        if status == "REDEEMED":
            items = tuple(dataclasses.replace(item, redeemed=now) for item in changed.unit_items)
            return dataclasses.replace(changed, redeemed=now, unit_items=items)
        if status == "CANCELLED":
            refund = body.get("refund", "FULL")
            return dataclasses.replace(changed, cancellation=Cancellation(str(refund), body.get("reason"), now))
        return changed

    def create_product(self, body: Json) -> Product:
        """A new product like another one."""
        store = self._service.store
        original = store.products.get(str(body.get("copy_of"))) or next(iter(store.products.values()), None)
        if original is None:
            raise unprocessable("There is no product to copy.")
        product_id = body.get("id") or seeded_uuid(self._service.rng)
        if not isinstance(product_id, str) or product_id in store.products:
            raise bad_request("id is not a text, or taken.")
        name = str(body.get("internal_name") or f"{original.internal_name} (new)")
        titles = dict.fromkeys(original.titles, name)
        revision = store.deleted[product_id].revision + 1 if product_id in store.deleted else 0
        product = dataclasses.replace(original, id=product_id, internal_name=name, titles=titles, revision=revision)
        store.put_product(product)
        self._tell(product.id, body)
        return product

    def update_product(self, product_id: str, body: Json) -> Product:
        """Change a product's texts, its titles ({language: text}) or its prices (price_percent)."""
        product = self._product_of(product_id)
        fields = _texts(body, "internal_name", "reference", "locale")
        if isinstance(body.get("title"), dict):
            fields["titles"] = {**product.titles, **{str(key): str(text) for key, text in body["title"].items()}}
        if "price_percent" in body:
            fields["options"] = tuple(_repriced(option, int(body["price_percent"])) for option in product.options)
        product = dataclasses.replace(product, revision=product.revision + 1, **fields)
        self._service.store.put_product(product)
        self._tell(product.id, body)
        return product

    def delete_product(self, product_id: str, *, silent: bool = False) -> None:
        """Stop selling a product; its bookings stay."""
        self._service.store.drop_product(self._product_of(product_id))
        self._tell(product_id, {"silent": silent})

    def _product_of(self, product_id: object) -> Product:
        product = self._service.store.products.get(str(product_id))
        if product is None:
            raise invalid("productId", product_id)
        return product

    def _tell(self, product_id: str, body: Json) -> None:
        if body.get("silent") is not True:
            self._service.events.product(product_id)

    def availability(self, body: Json) -> Json:
        """Close, open, reset or resize the slots of a range; all options when none is named."""
        service = self._service
        product = self._product_of(body.get("product_id"))
        options = list(product.options)
        if body.get("option_id") is not None:
            options = [named(service, {"productId": product.id, "optionId": body["option_id"]})[1]]
        first, last = date_of(body, "from"), date_of(body, "to")
        action = body.get("action")
        if action not in {"close", "open", "reset", "capacity"}:
            raise bad_request("action is one of close, open, reset, capacity.")
        capacity = body.get("capacity")
        if action == "capacity" and (not isinstance(capacity, int) or capacity < 0):
            raise bad_request("capacity is a whole number from 0.")
        count = 0
        for option in options:
            ledger = service.store.ledgers[product.id, option.id]
            for number in service.store.slot_numbers(option, first, last):
                count += 1
                if action == "reset":
                    ledger.closed.pop(number, None)
                    ledger.capacity.pop(number, None)
                elif action == "capacity":
                    ledger.capacity[number] = int(capacity or 0)
                else:
                    ledger.closed[number] = action == "close"
            ledger.version += 1
        if body.get("silent") is not True:
            service.events.availability(product, options, first, last)
        return {
            "product_id": product.id,
            "option_ids": [option.id for option in options],
            "from": dt.date.fromordinal(first).isoformat(),
            "to": dt.date.fromordinal(last).isoformat(),
            "action": action,
            "slots": count,
        }

    def lose_subscription(self, subscription_id: str) -> None:
        """Forget a subscription behind its owner's back."""
        if self._service.store.subscriptions.pop(subscription_id, None) is None:
            raise not_found("The subscription")

    def double_subscription(self, subscription_id: str) -> str:
        """A second subscription like this one, under a new id."""
        known = self._service.store.subscriptions
        if subscription_id not in known:
            raise not_found("The subscription")
        twin: Subscription = dataclasses.replace(known[subscription_id], id=seeded_uuid(self._service.rng))
        known[twin.id] = twin
        return twin.id


def _texts(body: Json, *keys: str) -> Json:
    return {key: field(body, key, str) for key in keys if key in body}


def _repriced(option: Option, percent: int) -> Option:
    return dataclasses.replace(
        option,
        base_price=option.base_price * percent // 100,
        units=tuple(dataclasses.replace(unit, base_price=unit.base_price * percent // 100) for unit in option.units),
    )
