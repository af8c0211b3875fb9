"""The sandbox's own truth in its own shape, made from the store alone: a serialiser's mistake must show."""

import collections
import dataclasses
import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from octo_sync.sandbox import zones
from octo_sync.sandbox.catalog import SUPPLIER_ID, SUPPLIER_TEXTS
from octo_sync.sandbox.clock import utc_text, utc_text_or_none
from octo_sync.sandbox.config import Token
from octo_sync.sandbox.money import level_of, priced
from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Booking, Extra, ExtraItem, Money, Option, Product, Unit, UnitItem
from octo_sync.sandbox.service import Service

Json = dict[str, Any]
_SPELLED = {
    "freesale": "allow_freesale",
    "currency": "default_currency",
    "precision": "currency_precision",
    "titles": "title",
    "short_descriptions": "short_description",
    "descriptions": "description",
    "categories": "category_labels",
    "cutoff_text": "cancellation_cutoff",
    "cutoff_amount": "cancellation_cutoff_amount",
    "cutoff_unit": "cancellation_cutoff_unit",
    "base_price": "price_from",
    "price": "price_from",
}
"""Fields of products, options, units and extras that are called otherwise here."""
_OWN = frozenset({
    "with_net", "tax_rates", "id_style", "city", "latitude", "longitude", "revision", "options", "capacity",
    "closed_weekdays", "room", "salt", "min_height",
})  # fmt: skip
"""Fields that only make the data."""
_INSTANTS = ("created", "updated", "expires", "confirmed", "redeemed")


def whole(service: Service, token: Token | None = None) -> Json:
    """Everything but availability; bookings of what a token may see."""
    store = service.store
    found = {
        "today": service.today.isoformat(),
        "now": utc_text(service.clock.whole()),
        "seed": service.config.seed,
        "horizon": {
            "first": dt.date.fromordinal(store.first).isoformat(),
            "last": dt.date.fromordinal(store.last).isoformat(),
        },
        "supplier": {
            "id": SUPPLIER_ID,
            "name": "Sandbox Tours",
            "endpoint": service.base_url,
            "website": "https://sandbox.example.com",
            "email": "office@example.com",
            "telephone": "+447700900123",
            "address": None,
            "short_description": SUPPLIER_TEXTS,
        },
        "products": [_product(product) for product in store.products.values()],
        "deleted_products": list(store.deleted),
        "bookings": [booking_json(service, one) for one in bookings(service, token)],
        "subscriptions": [
            {"id": one.id, "token": one.token, "url": one.url, "notification_types": list(one.types)}
            for one in store.subscriptions.values()
        ],
    }
    # As JSON has it, also for whoever asks without a socket in between: its lists are no tuples.
    plain: Json = msgspec.json.decode(msgspec.json.encode(found))
    return plain


def bookings(service: Service, token: Token | None = None) -> list[Booking]:
    """The bookings a token may see, oldest first."""
    return [one for one in service.store.ordered() if token is None or service.visible(one, token)]


def _same(row: object, names: Iterable[str]) -> Json:
    """Fields that are called alike here."""
    return {name: getattr(row, name) for name in names}


def _fields(row: Product | Option | Unit | Extra) -> Json:
    return {
        _SPELLED.get(field.name, field.name): getattr(row, field.name)
        for field in dataclasses.fields(row)
        if field.name not in _OWN
    }


def _product(product: Product) -> Json:
    return {**_fields(product), "options": [_option(option, product) for option in product.options]}


def _option(option: Option, product: Product) -> Json:
    return {
        **_fields(option),
        "start_times": [f"{minute // 60:02d}:{minute % 60:02d}" for minute in option.start_times],
        "price_from": priced(product, option.base_price, 0) if product.pricing_per == "BOOKING" else None,
        "units": [_unit(unit, product) for unit in option.units],
        "extras": [_fields(extra) for extra in option.extras],
    }


def _unit(unit: Unit, product: Product) -> Json:
    return {
        **_fields(unit),
        "price_from": priced(product, unit.base_price, 0) if product.pricing_per == "UNIT" else None,
        "extras": [_fields(extra) for extra in unit.extras],
    }


def _money(price: Money) -> Json:
    """A price's amounts and taxes, to stand among other fields."""
    return _same(price, ("original", "retail", "net", "taxes"))


def booking_json(service: Service, booking: Booking) -> Json:
    """One booking in the sandbox's own shape."""
    product = service.store.any_product(booking.product_id)
    option = product.option(booking.option_id)
    times, slot_id = None, None
    if booking.slot is not None and option is not None:
        times = zones.slot_times(product, option, booking.slot)
        slot_id = service.slots.id(product, option, booking.slot)
    cancellation = booking.cancellation
    return {
        **_same(booking, ("uuid", "id", "token", "status", "test", "product_id", "option_id")),
        "availability_id": slot_id,
        "freesale": booking.slot is None,
        "local_start": times.start.isoformat() if times else None,
        "local_end": times.end.isoformat() if times else None,
        "local_date": dt.date.fromordinal(booking.local_date).isoformat(),
        "time_zone": product.time_zone,
        "utc_start": utc_text(times.start_epoch) if times else None,
        **{f"utc_{name}_at": utc_text_or_none(getattr(booking, name)) for name in _INSTANTS},
        "utc_cancelled_at": utc_text(cancellation.at) if cancellation else None,
        "refund": cancellation.refund if cancellation else None,
        "cancel_reason": cancellation.reason if cancellation else None,
        **_same(booking, ("reseller_reference", "supplier_reference")),
        **_same(product, ("currency", "precision")),
        **_money(booking.price),
        "unit_items": [_unit_item(item) for item in booking.unit_items],
        "extra_items": [_extra_item(item) for item in booking.extra_items],
        "contact": msgspec.structs.asdict(booking.contact),
        "notes": booking.notes,
    }


def _unit_item(item: UnitItem) -> Json:
    """A ticket; `price` is its own, `total` includes its extras, both are null when priced per booking."""
    total = None
    if item.price is not None:
        parts = [item.price, *(extra.price for extra in item.extra_items)]
        total = {
            "original": sum(part.original for part in parts),
            "retail": sum(part.retail for part in parts),
            "net": None if item.price.net is None else sum(part.net or 0 for part in parts),
        }
    return {
        **_same(item, ("uuid", "unit_id", "status", "reseller_reference", "supplier_reference")),
        "utc_redeemed_at": utc_text_or_none(item.redeemed),
        "price": item.price,
        "total": total,
        "extra_items": [_extra_item(extra) for extra in item.extra_items],
        "contact": msgspec.structs.asdict(item.contact),
    }


def _extra_item(item: ExtraItem) -> Json:
    return {"id": item.id, "extra_id": item.extra_id, **_money(item.price)}


def availability(
    service: Service, first: int, last: int, product_id: str | None = None, option_id: str | None = None
) -> Iterator[bytes]:
    """The slots between two dates, one JSON object at a time."""
    for product in list(service.store.products.values()):
        for option in product.options:
            if product_id in {None, product.id} and option_id in {None, option.id}:
                for number in service.store.slot_numbers(option, first, last):
                    yield msgspec.json.encode(slot(service, product, option, number))


def slot(service: Service, product: Product, option: Option, number: int) -> Json:
    """One slot in the sandbox's own shape."""
    times = zones.slot_times(product, option, number)
    facts = service.store.facts(product, option, number)
    level = level_of(number // SLOTS_PER_DAY)
    most = option.max_units
    if facts.vacancies is not None:
        most = facts.vacancies if most is None else min(most, facts.vacancies)
    per_unit = product.pricing_per == "UNIT"
    return {
        "product_id": product.id,
        "option_id": option.id,
        "availability_id": service.slots.id(product, option, number),
        "local_date": dt.date.fromordinal(number // SLOTS_PER_DAY).isoformat(),
        "local_start": times.start.isoformat(),
        "local_end": times.end.isoformat(),
        "utc_start": utc_text(times.start_epoch),
        "utc_end": utc_text(int(times.end.timestamp())),
        "utc_cutoff": utc_text(times.cutoff),
        "time_zone": product.time_zone,
        "all_day": not option.start_times,
        **_same(facts, ("status", "available", "closed", "capacity", "vacancies", "taken")),
        "max_units": most,
        **_same(product, ("opening_hours", "currency", "precision")),
        "price": None if per_unit else priced(product, option.base_price, level),
        "prices": [{"unit_id": unit.id, **_money(priced(product, unit.base_price, level))} for unit in option.units]
        if per_unit
        else [],
    }


def summary(service: Service, token: Token | None = None) -> Json:
    """Counts per status and totals per currency."""
    found = bookings(service, token)
    totals: dict[str, Json] = {}
    for booking in found:
        product = service.store.any_product(booking.product_id)
        row = totals.setdefault(
            product.currency,
            {"precision": product.precision, "bookings": 0, "original": 0, "retail": 0, "net": 0, "unit_items": 0},
        )
        row["bookings"] += 1
        row["unit_items"] += len(booking.unit_items)
        for name in ("original", "retail", "net"):
            row[name] += getattr(booking.price, name) or 0
    store = service.store
    slots = sum(
        (store.last - service.today.toordinal() + 1) * max(1, len(option.start_times))
        for product in store.products.values()
        for option in product.options
    )
    return {
        "products": len(store.products),
        "options": sum(len(product.options) for product in store.products.values()),
        "slots_from_today": slots,
        "bookings": len(found),
        "test_bookings": sum(booking.test for booking in found),
        "statuses": collections.Counter(booking.status for booking in found),
        "currencies": totals,
        "subscriptions": len(store.subscriptions),
    }
