"""The parts of a booking as a body describes them: contact, extras, the party."""

from collections.abc import Sequence
from typing import Any

import msgspec

from octo_sync.sandbox.api_availability import text_of
from octo_sync.sandbox.errors import bad_request, invalid, unprocessable
from octo_sync.sandbox.messages import T, converted
from octo_sync.sandbox.nouns import Contact, Extra, Option, UnitItem

Json = dict[str, Any]


def chosen_extras(body: Json, offered: Sequence[Extra]) -> tuple[Extra, ...]:
    """The extras a body asks for; the id raw or as `extra_<id>`."""
    asked = [] if body.get("extraItems") is None else body["extraItems"]
    if not isinstance(asked, list):
        raise bad_request("extraItems is not a list.")
    known = {extra.id: extra for extra in offered}
    found: list[Extra] = []
    for entry in asked:
        text = text_of(entry.get("extraId")) if isinstance(entry, dict) else ""
        extra = known.get(text) or known.get(text.removeprefix("extra_"))
        if extra is None:
            raise bad_request(f"extraItems[].extraId '{text}' is not offered.")
        found.append(extra)
    for extra in known.values():
        if extra.max_quantity is not None and found.count(extra) > extra.max_quantity:
            raise unprocessable(f"At most {extra.max_quantity} of extra '{extra.id}' can be bought.")
    return tuple(found)


def check_party(option: Option, items: Sequence[UnitItem]) -> None:
    """Refuse a party the option's restrictions do not allow."""
    count = len(items)
    if option.min_units is not None and count < option.min_units:
        raise unprocessable(f"At least {option.min_units} units are required.")
    if option.max_units is not None and count > option.max_units:
        raise unprocessable(f"At most {option.max_units} units are allowed.")
    present = {item.unit_id for item in items}
    unknown = present - {unit.id for unit in option.units}
    if unknown:
        raise invalid("unitId", min(unknown))
    for unit in option.units:
        quantity = sum(item.unit_id == unit.id for item in items)
        if not quantity:
            continue
        if unit.max_quantity is not None and quantity > unit.max_quantity:
            raise unprocessable(f"At most {unit.max_quantity} of unit '{unit.id}' are allowed.")
        if unit.accompanied_by and not present & set(unit.accompanied_by):
            raise unprocessable(f"Unit '{unit.id}' must be accompanied by one of {list(unit.accompanied_by)}.")


def contact_of(value: object, before: Contact) -> Contact:
    """A contact with what a body says; keys not sent stay."""
    if value is None:
        return before
    if not isinstance(value, dict):
        raise bad_request("contact is not an object.")
    said = {key: entry for key, entry in value.items() if key != "locales" or entry is not None}
    return converted({**msgspec.to_builtins(before), **said}, Contact)


def field(body: Json, key: str, kind: type[T]) -> T | None:
    """A field of this type, or null."""
    value = body.get(key)
    if value is not None and not isinstance(value, kind):
        raise bad_request(f"{key} is not a {kind.__name__}.")
    return value
