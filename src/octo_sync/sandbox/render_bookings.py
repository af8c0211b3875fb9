"""Bookings as OCTO shows them: fully hydrated, assembled from encoded parts, kept until something in them moves."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from octo_sync.sandbox import render_products
from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.clock import utc_text, utc_text_or_none
from octo_sync.sandbox.money import total
from octo_sync.sandbox.nouns import OPEN, Booking, ExtraItem, Money, Option, Product, UnitItem
from octo_sync.sandbox.render_products import Json, extra, money, spelled
from octo_sync.sandbox.render_slots import SlotWriter
from octo_sync.sandbox.store import Store

_KEPT = 60_000  # about half a gigabyte
_INSTANTS = ("created", "updated", "expires", "redeemed", "confirmed")
_DELIVERED = frozenset({"CONFIRMED", "REDEEMED"})


class BookingWriter:
    """Writes and keeps the bytes of bookings."""

    def __init__(self, store: Store, encoded: Callable[..., msgspec.Raw], slots: SlotWriter) -> None:
        self._store = store
        self._encoded = encoded
        self._slots = slots
        self._kept: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def array(self, bookings: Sequence[Booking], view: View) -> bytes:
        """A JSON array of bookings."""
        return b"[" + b",".join([self.body(booking, view) for booking in bookings]) + b"]"

    def body(self, booking: Booking, view: View) -> bytes:
        """A booking's bytes."""
        product = self._store.any_product(booking.product_id)
        option = product.option(booking.option_id)
        state = None
        if option is not None and booking.slot is not None:
            state = self._store.facts(product, option, booking.slot)
        stamp = (booking, product.revision, state, self._slots.style(product))
        key = (booking.uuid, view.shape)
        found = self._kept.get(key)
        if found is not None and found[0] is booking and found[1:4] == stamp[1:]:
            return found[4]  # type: ignore[no-any-return]
        body = msgspec.json.encode(self._booking(booking, product, option, view))
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[key] = (*stamp, body)
        return body

    def _booking(self, booking: Booking, product: Product, option: Option | None, view: View) -> Json:
        slot_id, slot = None, None
        if booking.slot is not None and option is not None:
            slot_id = self._slots.id(product, option, booking.slot)
            slot = msgspec.Raw(self._slots.row(product, option, booking.slot, view).encode())
        cancellation = booking.cancellation
        body: Json = {
            "id": booking.id,
            "uuid": booking.uuid,
            "testMode": booking.test,
            **spelled(booking, ("reseller_reference", "supplier_reference", "status")),
            **{f"utc{name.capitalize()}At": utc_text_or_none(getattr(booking, name)) for name in _INSTANTS},
            "productId": booking.product_id,
            "product": self._encoded(render_products.product, product, view, "pricing"),
            "optionId": booking.option_id,
            "option": option and self._encoded(render_products.option, option, product, view, "pricing"),
            "cancellable": booking.status in OPEN,
            "cancellation": cancellation
            and {
                "refund": cancellation.refund,
                "reason": cancellation.reason,
                "utcCancelledAt": utc_text(cancellation.at),
            },
            "freesale": booking.slot is None,
            "availabilityId": slot_id,
            "availability": slot,
            "contact": booking.contact,
            "notes": booking.notes,
            "deliveryMethods": list(product.delivery_methods),
            "voucher": self._ticket(booking, product, booking.uuid, booking.redeemed, "VOUCHER"),
            "unitItems": [self._unit_item(item, booking, product, option, view) for item in booking.unit_items],
        }
        if view.pricing:
            extras = [*booking.extra_items, *(one for item in booking.unit_items for one in item.extra_items)]
            body["pricing"] = _pricing(booking.price, extras, product, view)
        if view.extras:
            body["extraItems"] = _extra_items(booking.extra_items, option, product, view)
        return body

    def _unit_item(self, item: UnitItem, booking: Booking, product: Product, option: Option | None, view: View) -> Json:
        unit = next((one for one in option.units if one.id == item.unit_id), None) if option is not None else None
        body: Json = {
            **spelled(item, ("uuid", "reseller_reference", "supplier_reference", "unit_id")),
            "unit": unit and self._encoded(render_products.unit, unit, product, view, "pricing"),
            "status": item.status,
            "utcRedeemedAt": utc_text_or_none(item.redeemed),
            "contact": item.contact,
            "ticket": self._ticket(booking, product, item.uuid, item.redeemed, "TICKET"),
        }
        if view.pricing and item.price is not None:
            parts = [item.price, *(one.price for one in item.extra_items)]
            price = total(parts, with_net=product.with_net)
            body["pricing"] = _pricing(price, item.extra_items, product, view)
        if view.extras:
            body["extraItems"] = _extra_items(item.extra_items, option, product, view)
        return body

    def _ticket(self, booking: Booking, product: Product, uuid: str, redeemed: int | None, method: str) -> Json | None:
        if method not in product.delivery_methods:
            return None
        formats = product.delivery_formats if booking.status in _DELIVERED else ()
        return {
            "redemptionMethod": product.redemption_method,
            "utcRedeemedAt": utc_text_or_none(redeemed),
            "deliveryOptions": [
                {"deliveryFormat": name, "deliveryValue": _value(name, uuid, method)} for name in formats
            ],
        }


def _value(name: str, uuid: str, method: str) -> str:
    if name.endswith("_URL"):
        return f"https://tickets.example.com/{method.lower()}/{uuid}.pdf"
    return f"{method[0]}{uuid.replace('-', '')[:16].upper()}"


def _pricing(price: Money, extras: Sequence[ExtraItem], product: Product, view: View) -> Json:
    body = money(price, product)
    if view.extras:
        body["extraPricing"] = [{"extraId": item.extra_id, **money(item.price, product)} for item in extras]
    return body


def _extra_items(items: Sequence[ExtraItem], option: Option | None, product: Product, view: View) -> list[Json]:
    known = {}
    if option is not None:
        known = {one.id: one for unit in option.units for one in unit.extras} | {one.id: one for one in option.extras}
    rows: list[Json] = []
    for item in items:
        row: Json = {"id": item.id, "extraId": item.extra_id}
        if item.extra_id in known:
            row["extra"] = extra(known[item.extra_id], product, view, key="pricing")
        if view.pricing:
            row["pricing"] = money(item.price, product)
        rows.append(row)
    return rows
