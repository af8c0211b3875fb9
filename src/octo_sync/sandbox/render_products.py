"""Supplier, products, options, units and extras as OCTO shows them."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.catalog import SUPPLIER_ID, SUPPLIER_TEXTS
from octo_sync.sandbox.money import LEVELS, priced
from octo_sync.sandbox.nouns import Extra, Money, Option, Product, Unit
from octo_sync.sandbox.themes import texts

Json = dict[str, Any]
MINUTES_PER_HOUR = 60
_DEFAULT_PLACES = 6
_UNIT_RESTRICTIONS = [
    "min_age", "max_age", "id_required", "min_quantity", "max_quantity", "pax_count", "accompanied_by",
]  # fmt: skip
_PLACE_IDS = [
    "googlePlaceId", "applePlaceId", "tripadvisorLocationId", "yelpPlaceId", "facebookPlaceId",
    "foursquarePlaceId", "baiduPlaceId", "amapPlaceId",
]  # fmt: skip
_FEATURES = {
    "HIGHLIGHT": texts("Small groups", "Grupos pequenos", "少人数"),
    "INCLUSION": texts("Guide included", "Guia incluído", "ガイド付き"),
    "EXCLUSION": texts("Transport not included", "Transporte não incluído", "交通費別"),
    "REDEMPTION_INSTRUCTION": texts("Show the code at the door", "Mostre o código à entrada", "入口でコードを提示"),
    "CANCELLATION_TERM": texts("Free until the cut-off", "Grátis até ao limite", "期限まで無料"),
}
_QUESTION = texts("Is it accessible?", "É acessível?", "バリアフリーですか")
_ANSWER = texts("Yes, by ramp", "Sim, por rampa", "はい、スロープがあります")


def spelled(row: object, names: Iterable[str]) -> Json:
    """Fields of a record under OCTO's names: `pax_count` is `paxCount`."""
    return {camel(name): getattr(row, name) for name in names}


@functools.cache
def camel(name: str) -> str:
    """A name as OCTO spells it."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def money(price: Money, product: Product) -> Json:
    """The Pricing object."""
    return {
        "original": price.original,
        "retail": price.retail,
        "net": price.net,
        "currency": product.currency,
        "currencyPrecision": product.precision,
        "includedTaxes": price.taxes,
    }


def prices_of(product: Product, option: Option, level: int, view: View, suffix: str = "") -> Json:
    """What an option costs on weekdays or weekends, under the keys `unitPricing` or `pricing` with a suffix."""
    if not view.pricing:
        return {}
    if product.pricing_per == "UNIT":
        units = [{"unitId": one.id, **money(priced(product, one.base_price, level), product)} for one in option.units]
        return {f"unitPricing{suffix}": units}
    return {f"pricing{suffix}": money(priced(product, option.base_price, level), product)}


def supplier(base_url: str, view: View) -> Json:
    """The Supplier object."""
    body: Json = {
        "id": SUPPLIER_ID,
        "name": "Sandbox Tours",
        "endpoint": base_url,
        "contact": {
            "website": "https://sandbox.example.com",
            "email": "office@example.com",
            "telephone": "+447700900123",
            "address": None,
        },
    }
    if view.content:
        body["shortDescription"] = SUPPLIER_TEXTS[view.language]
        body["media"] = _media("supplier", SUPPLIER_TEXTS[view.language], "LOGO")
    return body


def extra(item: Extra, product: Product, view: View, *, key: str = "pricingFrom") -> Json:
    """An Extra, its price under `key`."""
    body = spelled(item, ("id", "internal_name", "reference"))
    body["restrictions"] = spelled(item, ("default", "required", "min_quantity", "max_quantity"))
    if view.content:
        body["title"] = item.titles[view.language]
        body["shortDescription"] = item.descriptions[view.language]
        body["description"] = item.descriptions[view.language]
    if view.pricing:
        body[key] = [money(item.price, product)]
    return body


def unit(item: Unit, product: Product, view: View, key: str = "pricingFrom") -> Json:
    """A Unit; `key` is pricingFrom in products and pricing in bookings."""
    restrictions = spelled(item, _UNIT_RESTRICTIONS)
    body = spelled(item, ("id", "internal_name", "reference", "type", "required_contact_fields"))
    body["restrictions"] = restrictions
    if view.content:
        if item.min_height is not None:
            restrictions["minHeight"] = item.min_height
            restrictions["heightUnit"] = "cm"
        body["title"] = item.titles[view.language]
        body["shortDescription"] = f"{item.titles[view.language]} {item.min_age}-{item.max_age}"
        body["features"] = []
    if view.pricing and product.pricing_per == "UNIT":
        body[key] = [money(priced(product, item.base_price, LEVELS[0]), product)]
    if view.extras:
        body["extras"] = [extra(one, product, view, key=key) for one in item.extras]
    return body


def option(item: Option, product: Product, view: View, key: str = "pricingFrom") -> Json:
    """An Option with its units."""
    body: Json = {
        **spelled(item, ("id", "default", "internal_name", "reference")),
        "availabilityLocalStartTimes": [clock_text(minute) for minute in item.start_times],
        "cancellationCutoff": item.cutoff_text,
        "cancellationCutoffAmount": item.cutoff_amount,
        "cancellationCutoffUnit": item.cutoff_unit,
        "requiredContactFields": item.required_contact_fields,
        "restrictions": spelled(item, ("min_units", "max_units")),
        "units": [unit(one, product, view, key=key) for one in item.units],
    }
    if view.content:
        body["title"] = item.titles[view.language]
        body.update(_content(product, view, item.titles[view.language], item.duration_minutes))
    if view.pricing and product.pricing_per == "BOOKING":
        body[key] = [money(priced(product, item.base_price, LEVELS[0]), product)]
    if view.extras:
        body["extras"] = [extra(one, product, view, key=key) for one in item.extras]
    return body


def product(item: Product, view: View, key: str = "pricingFrom") -> Json:
    """A Product with its options."""
    body: Json = {
        **spelled(item, ("id", "internal_name", "reference", "locale", "time_zone")),
        "allowFreesale": item.freesale,
        **spelled(item, ("instant_confirmation", "instant_delivery", "availability_required", "availability_type")),
        **spelled(item, ("delivery_formats", "delivery_methods", "redemption_method")),
        "options": [option(one, item, view, key=key) for one in item.options],
    }
    if view.content:
        body["title"] = item.titles[view.language]
        body.update(_content(item, view, item.titles[view.language], item.options[0].duration_minutes))
        body["description"] = item.descriptions[view.language]
    if view.pricing:
        body["defaultCurrency"] = item.currency
        body["availableCurrencies"] = [item.currency]
        body["pricingPer"] = item.pricing_per
    return body


def clock_text(minute: int) -> str:
    """Minutes after midnight as `HH:mm`."""
    return f"{minute // MINUTES_PER_HOUR:02d}:{minute % MINUTES_PER_HOUR:02d}"


def _media(slug: str, title: str, rel: str) -> list[Json]:
    return [
        {
            "src": f"https://media.example.com/{slug}.jpg",
            "type": "image/jpeg",
            "rel": rel,
            "title": title,
            "caption": None,
            "copyright": None,
        }
    ]


def _content(item: Product, view: View, title: str, minutes: int) -> Json:
    language = view.language
    return {
        "shortDescription": item.short_descriptions[language],
        "description": item.descriptions[language],
        "features": [{"type": kind, "shortDescription": phrase[language]} for kind, phrase in _FEATURES.items()],
        "faqs": [{"question": _QUESTION[language], "answer": _ANSWER[language]}],
        "media": _media(item.id, title, "COVER"),
        "locations": [_location(item, language)],
        "categoryLabels": list(item.categories),
        "durationMinutesFrom": minutes,
        "durationMinutesTo": None,
        "commentary": [{"format": "IN_PERSON", "language": language}],
    }


def _location(item: Product, language: str) -> Json:
    return {
        "title": item.city[language],
        "shortDescription": None,
        "types": ["START"],
        "minutesTo": None,
        "minutesAt": None,
        "place": {
            "latitude": round(item.latitude, _DEFAULT_PLACES),
            "longitude": round(item.longitude, _DEFAULT_PLACES),
            "postalAddress": {
                "streetAddress": "1 Example Street",
                "addressLocality": item.city[language],
                "addressRegion": None,
                "postalCode": None,
                "addressCountry": None,
                "postOfficeBoxNumber": None,
            },
            "identifiers": dict.fromkeys(_PLACE_IDS),
            "sameAs": [],
        },
    }


def encoded(make: Callable[..., Json], item: object, *of: object) -> msgspec.Raw:
    """What one of `product`, `option` and `unit` makes, as JSON; the service keeps it while its nouns stay."""
    return msgspec.Raw(msgspec.json.encode(make(item, *of)))
