"""The sandbox's own truth in its own shape, made from the store alone: a serialiser's mistake must show."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import msgspec

from octo_sync.sandbox import zones
from octo_sync.sandbox.catalog import SUPPLIER_ID, SUPPLIER_TEXTS
from octo_sync.sandbox.clock import utc_text, utc_text_or_none
from octo_sync.sandbox.config import Token
from octo_sync.sandbox.money import level_of, priced
from octo_sync.sandbox.nouns import (
    SLOTS_PER_DAY,
    Booking,
    Contact,
    Extra,
    ExtraItem,
    Money,
    Option,
    Product,
    Unit,
    UnitItem,
)
from octo_sync.sandbox.service import Service

Json = dict[str, Any]


def whole(service: Service, token: Token | None = None) -> Json:
    """Everything but availability; bookings of what a token may see."""
    store = service.store
    return {
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


def bookings(service: Service, token: Token | None = None) -> list[Booking]:
    """The bookings a token may see, oldest first."""
    return [one for one in service.store.ordered() if token is None or service.visible(one, token)]


def _product(product: Product) -> Json:
    return {
        "id": product.id,
        "internal_name": product.internal_name,
        "reference": product.reference,
        "locale": product.locale,
        "time_zone": product.time_zone,
        "allow_freesale": product.allow_freesale,
        "instant_confirmation": product.instant_confirmation,
        "instant_delivery": product.instant_delivery,
        "availability_required": product.availability_required,
        "availability_type": product.availability_type,
        "delivery_formats": list(product.delivery_formats),
        "delivery_methods": list(product.delivery_methods),
        "redemption_method": product.redemption_method,
        "default_currency": product.currency,
        "currency_precision": product.precision,
        "pricing_per": product.pricing_per,
        "opening_hours": [list(pair) for pair in product.opening_hours],
        "title": product.titles,
        "short_description": product.short_descriptions,
        "description": product.descriptions,
        "category_labels": list(product.categories),
        "options": [_option(option, product) for option in product.options],
    }


def _option(option: Option, product: Product) -> Json:
    return {
        "id": option.id,
        "default": option.default,
        "internal_name": option.internal_name,
        "reference": option.reference,
        "title": option.titles,
        "start_times": [f"{minute // 60:02d}:{minute % 60:02d}" for minute in option.start_times],
        "duration_minutes": option.duration_minutes,
        "cancellation_cutoff": option.cutoff_text,
        "cancellation_cutoff_amount": option.cutoff_amount,
        "cancellation_cutoff_unit": option.cutoff_unit,
        "required_contact_fields": list(option.required_contact_fields),
        "min_units": option.min_units,
        "max_units": option.max_units,
        "price_from": _money(priced(product, option.base_price, 0)) if product.pricing_per == "BOOKING" else None,
        "units": [_unit(unit, product) for unit in option.units],
        "extras": [_extra(extra) for extra in option.extras],
    }


def _unit(unit: Unit, product: Product) -> Json:
    return {
        "id": unit.id,
        "internal_name": unit.internal_name,
        "reference": unit.reference,
        "type": unit.type,
        "title": unit.titles,
        "min_age": unit.min_age,
        "max_age": unit.max_age,
        "id_required": unit.id_required,
        "min_quantity": unit.min_quantity,
        "max_quantity": unit.max_quantity,
        "pax_count": unit.pax_count,
        "accompanied_by": list(unit.accompanied_by),
        "required_contact_fields": list(unit.required_contact_fields),
        "price_from": _money(priced(product, unit.base_price, 0)) if product.pricing_per == "UNIT" else None,
        "extras": [_extra(extra) for extra in unit.extras],
    }


def _extra(extra: Extra) -> Json:
    return {
        "id": extra.id,
        "internal_name": extra.internal_name,
        "reference": extra.reference,
        "title": extra.titles,
        "description": extra.descriptions,
        "default": extra.default,
        "required": extra.required,
        "min_quantity": extra.min_quantity,
        "max_quantity": extra.max_quantity,
        "price_from": _money(extra.price),
    }


def _money(price: Money) -> Json:
    return {
        "original": price.original,
        "retail": price.retail,
        "net": price.net,
        "taxes": [
            {"name": tax.name, "original": tax.original, "retail": tax.retail, "net": tax.net} for tax in price.taxes
        ],
    }


def booking_json(service: Service, booking: Booking) -> Json:
    """One booking in the sandbox's own shape."""
    product = service.store.any_product(booking.product_id)
    option = product.option(booking.option_id)
    times = None
    if booking.slot is not None and option is not None:
        times = zones.slot_times(product, option, booking.slot)
    cancellation = booking.cancellation
    return {
        "uuid": booking.uuid,
        "id": booking.id,
        "token": booking.token,
        "status": booking.status,
        "test": booking.test,
        "product_id": booking.product_id,
        "option_id": booking.option_id,
        "availability_id": zones.availability_id(service.slots.style(product), product, option, booking.slot)
        if booking.slot is not None and option is not None
        else None,
        "freesale": booking.slot is None,
        "local_start": times.start.isoformat() if times else None,
        "local_end": times.end.isoformat() if times else None,
        "local_date": dt.date.fromordinal(booking.local_date).isoformat(),
        "time_zone": product.time_zone,
        "utc_start": utc_text(times.start_epoch) if times else None,
        "utc_created_at": utc_text(booking.created),
        "utc_updated_at": utc_text(booking.updated),
        "utc_expires_at": utc_text_or_none(booking.expires),
        "utc_confirmed_at": utc_text_or_none(booking.confirmed),
        "utc_redeemed_at": utc_text_or_none(booking.redeemed),
        "utc_cancelled_at": utc_text(cancellation.at) if cancellation else None,
        "refund": cancellation.refund if cancellation else None,
        "cancel_reason": cancellation.reason if cancellation else None,
        "reseller_reference": booking.reseller_reference,
        "supplier_reference": booking.supplier_reference,
        "currency": product.currency,
        "precision": product.precision,
        **_money(booking.price),
        "unit_items": [_unit_item(item) for item in booking.unit_items],
        "extra_items": [_extra_item(item) for item in booking.extra_items],
        "contact": _contact(booking.contact),
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
        "uuid": item.uuid,
        "unit_id": item.unit_id,
        "status": item.status,
        "reseller_reference": item.reseller_reference,
        "supplier_reference": item.supplier_reference,
        "utc_redeemed_at": utc_text_or_none(item.redeemed),
        "price": _money(item.price) if item.price is not None else None,
        "total": total,
        "extra_items": [_extra_item(extra) for extra in item.extra_items],
        "contact": _contact(item.contact),
    }


def _extra_item(item: ExtraItem) -> Json:
    return {"id": item.id, "extra_id": item.extra_id, **_money(item.price)}


def _contact(contact: Contact) -> Json:
    return {
        "full_name": contact.full_name,
        "first_name": contact.first_name,
        "last_name": contact.last_name,
        "email_address": contact.email_address,
        "phone_number": contact.phone_number,
        "locales": list(contact.locales),
        "postal_code": contact.postal_code,
        "country": contact.country,
        "notes": contact.notes,
    }


def availability(
    service: Service, first: int, last: int, product_id: str | None = None, option_id: str | None = None
) -> Iterator[bytes]:
    """The slots between two dates, one JSON object at a time."""
    for product in list(service.store.products.values()):
        if product_id not in {None, product.id}:
            continue
        for option in product.options:
            if option_id not in {None, option.id}:
                continue
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
        "availability_id": zones.availability_id(service.slots.style(product), product, option, number),
        "local_date": dt.date.fromordinal(number // SLOTS_PER_DAY).isoformat(),
        "local_start": times.start.isoformat(),
        "local_end": times.end.isoformat(),
        "utc_start": utc_text(times.start_epoch),
        "utc_end": utc_text(int(times.end.timestamp())),
        "utc_cutoff": utc_text(times.cutoff),
        "time_zone": product.time_zone,
        "all_day": not option.start_times,
        "status": facts.status,
        "available": facts.available,
        "closed": facts.closed,
        "capacity": facts.capacity,
        "vacancies": facts.vacancies,
        "taken": facts.taken,
        "max_units": most,
        "opening_hours": [list(pair) for pair in product.opening_hours],
        "currency": product.currency,
        "precision": product.precision,
        "price": None if per_unit else _money(priced(product, option.base_price, level)),
        "prices": [{"unit_id": unit.id, **_money(priced(product, unit.base_price, level))} for unit in option.units]
        if per_unit
        else [],
    }


def summary(service: Service, token: Token | None = None) -> Json:
    """Counts per status and totals per currency."""
    found = bookings(service, token)
    statuses: dict[str, int] = {}
    totals: dict[str, Json] = {}
    for booking in found:
        statuses[booking.status] = statuses.get(booking.status, 0) + 1
        product = service.store.any_product(booking.product_id)
        row = totals.setdefault(
            product.currency,
            {"precision": product.precision, "bookings": 0, "original": 0, "retail": 0, "net": 0, "unit_items": 0},
        )
        row["bookings"] += 1
        row["unit_items"] += len(booking.unit_items)
        row["original"] += booking.price.original
        row["retail"] += booking.price.retail
        row["net"] += booking.price.net or 0
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
        "statuses": statuses,
        "currencies": totals,
        "subscriptions": len(store.subscriptions),
    }
