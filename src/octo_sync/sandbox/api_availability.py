"""POST /availability and POST /availability/calendar."""

import datetime as dt
from typing import Any

import msgspec

from octo_sync.sandbox import zones
from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.errors import (
    bad_request,
    invalid_availability,
    invalid_option,
    invalid_product,
    invalid_unit,
)
from octo_sync.sandbox.messages import Answer, Call, ok
from octo_sync.sandbox.money import level_of, priced, total
from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Money, Option, Product
from octo_sync.sandbox.render_products import Json, money
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.slots import Facts

MISSING_DATES = "either localDate, localDateStart/localDateEnd or availabilityIds is required"
_RANK = {"FREESALE": 4, "AVAILABLE": 3, "LIMITED": 2, "SOLD_OUT": 1, "CLOSED": 0}


def named(service: Service, body: dict[str, Any]) -> tuple[Product, Option]:
    """The product and option a body names."""
    product = service.store.product(text_of(body.get("productId")))
    if product is None:
        raise invalid_product(body.get("productId"))
    option = product.option(text_of(body.get("optionId")))
    if option is None:
        raise invalid_option(body.get("optionId"))
    return product, option


def text_of(value: object) -> str:
    """An id as text; ids sent as numbers are accepted, like they may be shown."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def date_of(body: dict[str, Any], key: str) -> int:
    """A date of a body as an ordinal."""
    value = body.get(key)
    try:
        return dt.date.fromisoformat(value).toordinal()  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise bad_request(f"{key} is not a date (YYYY-MM-DD).") from error


def _range(service: Service, body: dict[str, Any]) -> tuple[int, int]:
    first, last = date_of(body, "localDateStart"), date_of(body, "localDateEnd")
    if last < first:
        raise bad_request("localDateEnd is before localDateStart")
    limit = int(service.quirks["range_limit_days"])
    if last - first > limit:
        span = "1 year" if limit == 366 else f"{limit} days"  # noqa: PLR2004 - the longest year
        raise bad_request(f"cannot request more than {span} of availability")
    return first, last


def _clipped(service: Service, product: Product, first: int) -> int:
    if not service.quirks["past_dates_empty"]:
        return first
    return max(first, zones.local_ordinal(product.time_zone, service.clock.seconds()))


def _bare_400(service: Service, product: Product, option: Option) -> bool:
    return f"{product.id}/{option.id}" in service.quirks["option_bare_400"]


def check(service: Service, call: Call) -> Answer:
    """The slots of an option on dates or of ids; relative to a party when `units` is given."""
    body = call.json()
    product, option = named(service, body)
    if _bare_400(service, product, option):
        return Answer(400, b"", None)
    check_currency(body, product)
    party = _party(body, option)
    if body.get("availabilityIds") is not None:
        rows = _by_ids(service, body["availabilityIds"], product, option, call.view)
    else:
        if body.get("localDateStart") is not None or body.get("localDateEnd") is not None:
            first, last = _range(service, body)
        elif body.get("localDate") is not None:
            first = last = date_of(body, "localDate")
        else:
            raise bad_request(MISSING_DATES)
        first = _clipped(service, product, first)
        rows = service.slots.body(product, option, first, last, call.view)
    if party:
        rows = _relative(rows, party, product, option, call.view)
    return ok(rows)


def check_currency(body: dict[str, Any], product: Product) -> None:
    """Refuse a currency the product is not sold in."""
    if body.get("currency") not in (None, product.currency):
        raise bad_request(f"currency is not available; the product is sold in {product.currency}")


def _by_ids(service: Service, ids: object, product: Product, option: Option, view: View) -> bytes:
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
        raise bad_request("availabilityIds is not a list of strings.")
    rows: list[str] = []
    for text in ids:
        number = zones.find_slot(service.slots.style(product), product, option, text)
        if number is None or not service.store.exists(option, number):
            raise invalid_availability(text)
        rows.append(service.slots.row(product, option, number, view))
    return ("[" + ",".join(rows) + "]").encode()


def _party(body: dict[str, Any], option: Option) -> dict[str, int]:
    units = body.get("units") or []
    if not isinstance(units, list):
        raise bad_request("units is not a list.")
    known = {unit.id for unit in option.units}
    party: dict[str, int] = {}
    for entry in units:
        unit_id = text_of(entry.get("id")) if isinstance(entry, dict) else ""
        if unit_id not in known:
            raise invalid_unit(unit_id)
        quantity = entry.get("quantity")
        if not isinstance(quantity, int) or quantity < 0:
            raise bad_request("units[].quantity is not a whole number.")
        party[unit_id] = party.get(unit_id, 0) + quantity
    return party


def _relative(rows: bytes, party: dict[str, int], product: Product, option: Option, view: View) -> bytes:
    """Status, vacancies and price as they are for this party."""
    units = {unit.id: unit for unit in option.units}
    pax = sum(units[unit_id].pax_count * count for unit_id, count in party.items())
    slots: list[Json] = msgspec.json.decode(rows)
    prices: dict[int, Json] = {}
    for slot in slots:
        vacancies = slot["vacancies"]
        if slot["available"] and vacancies is not None and pax > vacancies:
            slot.update(available=False, status="SOLD_OUT", vacancies=0, maxUnits=0)
        if view.pricing and product.pricing_per == "UNIT":
            level = level_of(dt.date.fromisoformat(slot["localDateTimeStart"][:10]).toordinal())
            if level not in prices:
                parts: list[Money] = []
                for unit_id, count in party.items():
                    parts.extend([priced(product, units[unit_id].base_price, level)] * count)
                prices[level] = money(total(parts, with_net=product.with_net), product)
            slot["pricing"] = prices[level]
    return msgspec.json.encode(slots)


def calendar(service: Service, call: Call) -> Answer:
    """One row per day."""
    body = call.json()
    product, option = named(service, body)
    if _bare_400(service, product, option):
        return Answer(400, b"", None)
    check_currency(body, product)
    if body.get("localDateStart") is None or body.get("localDateEnd") is None:
        raise bad_request("localDateStart and localDateEnd are required")
    party = _party(body, option)
    units = {unit.id: unit for unit in option.units}
    pax = sum(units[unit_id].pax_count * count for unit_id, count in party.items())
    first, last = _range(service, body)
    first = max(_clipped(service, product, first), service.store.first)
    prices = [_price_from(product, option, level, call.view) for level in (0, 1)]
    rows = [
        {**_day(service, product, option, ordinal, pax), **prices[level_of(ordinal)]}
        for ordinal in range(first, min(last, service.store.last) + 1)
    ]
    return ok(rows)


def _day(service: Service, product: Product, option: Option, ordinal: int, pax: int) -> Json:
    states = [
        service.store.facts(product, option, number) for number in service.store.slot_numbers(option, ordinal, ordinal)
    ]
    best = max(states, key=lambda state: (_RANK[_status(state, pax)], state.vacancies or 0))
    status = _status(best, pax)
    return {
        "localDate": dt.date.fromordinal(best.number // SLOTS_PER_DAY).isoformat(),
        "available": status not in {"SOLD_OUT", "CLOSED"},
        "status": status,
        "vacancies": 0 if status == "SOLD_OUT" else best.vacancies,
        "capacity": best.capacity,
        "openingHours": [{"from": opens, "to": closes} for opens, closes in product.opening_hours],
    }


def _status(state: Facts, pax: int) -> str:
    if state.available and state.vacancies is not None and pax > state.vacancies:
        return "SOLD_OUT"
    return state.status


def _price_from(product: Product, option: Option, level: int, view: View) -> Json:
    if not view.pricing:
        return {}
    if product.pricing_per == "UNIT":
        return {
            "unitPricingFrom": [
                {"unitId": unit.id, **money(priced(product, unit.base_price, level), product)} for unit in option.units
            ]
        }
    return {"pricingFrom": money(priced(product, option.base_price, level), product)}
