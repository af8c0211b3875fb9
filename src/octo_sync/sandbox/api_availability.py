"""POST /availability and POST /availability/calendar."""

import datetime as dt
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from octo_sync.sandbox import zones
from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.errors import bad_request, invalid
from octo_sync.sandbox.messages import Answer, Call, ok
from octo_sync.sandbox.money import LEVELS, level_of, priced, total
from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Money, Option, Product
from octo_sync.sandbox.render_products import Json, money, prices_of
from octo_sync.sandbox.service import Service
from octo_sync.sandbox.slots import Facts

MISSING_DATES = "either localDate, localDateStart/localDateEnd or availabilityIds is required"
MOST_IDS = 100
_RANK = {"FREESALE": 4, "AVAILABLE": 3, "LIMITED": 2, "SOLD_OUT": 1, "CLOSED": 0}


def named(service: Service, body: dict[str, Any]) -> tuple[Product, Option]:
    """The product and option a body names."""
    product = service.product(text_of(body.get("productId")))
    option = product.option(text_of(body.get("optionId")))
    if option is None:
        raise invalid("optionId", body.get("optionId"))
    return product, option


def text_of(value: object) -> str:
    """An id as text; ids sent as numbers are accepted, like they may be shown."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def date_of(body: Mapping[str, Any], key: str) -> int:
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
    limit = service.quirks["range_limit_days"]
    if last > (_year_after(first) if limit is None else first + limit):
        span = "1 year" if limit is None else f"{limit} days"
        raise bad_request(f"cannot request more than {span} of availability")
    return first, last


def _year_after(ordinal: int) -> int:
    """The same date of the next year; 1 March after a 29 February."""
    day = dt.date.fromordinal(ordinal)
    try:
        return day.replace(year=day.year + 1).toordinal()
    except ValueError:
        return ordinal + 366


def _clipped(service: Service, product: Product, first: int, last: int) -> tuple[int, int]:
    """What of a range the service shows."""
    today = zones.local_ordinal(product.time_zone, service.clock.seconds())
    reach = service.quirks["horizon_days"]
    if service.quirks["past_dates_empty"]:
        first = max(first, today)
    return first, last if reach is None else min(last, today + reach)


def answer(service: Service, call: Call, *, by_day: bool) -> Answer:
    """What an option offers: its slots, or one row per day."""
    body = call.json()
    product, option = named(service, body)
    pair = {"product_id": product.id, "option_id": option.id}
    if not by_day and service.faults.pick("option_400", call.method, call.path, **pair):
        raise bad_request("This option cannot be asked.")
    if f"{product.id}/{option.id}" in service.quirks["option_bare_400"]:
        return Answer(400, b"", None)
    check_currency(body, product)
    rows = _calendar if by_day else _slots
    return ok(rows(service, body, product, option, call.view))


def _slots(service: Service, body: Json, product: Product, option: Option, view: View) -> bytes:
    """The slots of an option on dates or of ids; relative to a party when `units` is given."""
    party = _party(body, option)
    ids, span = _asked(service, body)
    sold = (service, product, option, view)
    rows = _between(*sold, span) if ids is None else _by_ids(*sold, ids)
    return _relative(rows, party, product, option, view) if party else rows


def _asked(service: Service, body: dict[str, Any]) -> tuple[list[str] | None, tuple[int, int]]:
    """The ids or the dates of a body: exactly one of the three ways to ask, as the published schema has it."""
    one, ids = body.get("localDate"), body.get("availabilityIds")
    ranged = body.get("localDateStart") is not None or body.get("localDateEnd") is not None
    if ids is not None and (ranged or one is not None):
        raise bad_request("cannot use localDate/localDateStart/localDateEnd and availabilityIds in the same request")
    if one is not None and ranged:
        raise bad_request("cannot use localDate and localDateStart/localDateEnd in the same request")
    if ids is not None:
        if not isinstance(ids, list) or not ids or not all(isinstance(entry, str) for entry in ids):
            raise bad_request("availabilityIds is not a list with at least one string.")
        if len(ids) > MOST_IDS:
            raise bad_request(f"cannot request more than {MOST_IDS} availability objects at a time")
        return list(dict.fromkeys(ids)), (0, 0)
    if one is not None:
        return None, (date_of(body, "localDate"),) * 2
    if not ranged:
        raise bad_request(MISSING_DATES)
    return None, _range(service, body)


def _between(service: Service, product: Product, option: Option, view: View, span: tuple[int, int]) -> bytes:
    first, last = span
    zone = service.quirks["availability_days_zone"]
    if zone is None:
        return service.slots.body(product, option, *_clipped(service, product, first, last), view)
    rows = service.slots.body(product, option, *_clipped(service, product, first - 1, last + 1), view)
    kept: list[Json] = [
        row
        for row in msgspec.json.decode(rows)
        if first <= dt.datetime.fromisoformat(row["localDateTimeStart"]).astimezone(ZoneInfo(zone)).toordinal() <= last
    ]
    return msgspec.json.encode(kept)


def check_currency(body: dict[str, Any], product: Product) -> None:
    """Refuse a currency the product is not sold in."""
    if body.get("currency") not in (None, product.currency):
        raise bad_request(f"currency is not available; the product is sold in {product.currency}")


def _by_ids(service: Service, product: Product, option: Option, view: View, ids: list[str]) -> bytes:
    low, high = _clipped(service, product, service.store.first, service.store.last)
    rows: list[str] = []
    for text in ids:
        number = zones.find_slot(service.slots.style(product), product, option, text)
        shown = number is not None and low <= number // SLOTS_PER_DAY <= high
        if number is None or not shown or not service.store.exists(option, number):
            raise invalid("availabilityId", text)
        rows.append(service.slots.row(product, option, number, view))
    return ("[" + ",".join(rows) + "]").encode()


def _party(body: dict[str, Any], option: Option) -> dict[str, int]:
    units = [] if body.get("units") is None else body["units"]
    if not isinstance(units, list):
        raise bad_request("units is not a list.")
    known = {unit.id for unit in option.units}
    party: dict[str, int] = {}
    for entry in units:
        unit_id = text_of(entry.get("id")) if isinstance(entry, dict) else ""
        if unit_id not in known:
            raise invalid("unitId", unit_id)
        quantity = entry.get("quantity")
        if not isinstance(quantity, int) or isinstance(quantity, bool) or quantity < 0:
            raise bad_request("units[].quantity is not a whole number.")
        party[unit_id] = party.get(unit_id, 0) + quantity
    return party


def _pax(party: dict[str, int], option: Option) -> int:
    return sum(unit.pax_count * party.get(unit.id, 0) for unit in option.units)


def _relative(rows: bytes, party: dict[str, int], product: Product, option: Option, view: View) -> bytes:
    """Status, vacancies and price as they are for this party."""
    units = {unit.id: unit for unit in option.units}
    pax = _pax(party, option)
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


def _calendar(service: Service, body: Json, product: Product, option: Option, view: View) -> list[Json]:
    """One row per day."""
    if body.get("localDateStart") is None or body.get("localDateEnd") is None:
        raise bad_request("localDateStart and localDateEnd are required")
    pax = _pax(_party(body, option), option)
    first, last = _clipped(service, product, *_range(service, body))
    prices = [prices_of(product, option, level, view, suffix="From") for level in LEVELS]
    return [
        {**_day(service, product, option, ordinal, pax), **prices[level_of(ordinal)]}
        for ordinal in range(max(first, service.store.first), min(last, service.store.last) + 1)
    ]


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
