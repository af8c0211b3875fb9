"""What a record says and no table can hold: taken out before it goes on, and noted as `rule:field`.

Entries with the same key twice, time zones that no database knows, numbers of people that nobody can count.
"""

import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from octo_sync.octo import records

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


def noted(record: Struct, notes: Sequence[str]) -> Struct | msgspec.Raw:
    """The record with what the check found in it. It is no field of the shape, or else a service could say it."""
    return msgspec.Raw(b'%b,"oddities":%b}' % (_encode(record)[:-1], _encode(notes))) if notes else record


def _text(some: records.Id | UnsetType | None) -> str:
    """An id or a name as the tables' keys have it."""
    return "" if some is None or some is UNSET else str(some)


@cache
def _zones() -> set[str]:
    """Time zones that every database knows too."""
    return zoneinfo.available_timezones() - {"localtime"}


_COUNTABLE = 10**9
"""People beyond this are nobody's number, and their sums fit no column."""
_MOST = 10**14
"""Minor units of amounts that are added up."""


class Oddities:
    """What is found in one record that no table can hold as it was said."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def once(self, path: str, entries: list[T] | UnsetType | None, key: Callable[[T], object]) -> list[T]:
        """The entries, of those with the same key the last one, as of whole records; none where there is no list."""
        if not entries:
            return []
        last = {key(entry): entry for entry in entries}
        if len(last) == len(entries):
            return entries
        self._found.add(f"stands_twice:{path}")
        return list(last.values())

    def zone(self, path: str, owner: records.Product | records.HydratedProduct) -> None:
        """A time zone that no database knows says nothing about the time, and ends a statement that asks for it."""
        if isinstance(owner.time_zone, str) and owner.time_zone not in _zones():
            owner.time_zone = None
            self._found.add(f"unknown_time_zone:{path}")

    def people(self, path: str, owner: records.Unit | records.HydratedUnit | UnsetType | None) -> None:
        """A number of people is added up."""
        restrictions = owner.restrictions if owner else None
        if restrictions and restrictions.pax_count and abs(restrictions.pax_count) > _COUNTABLE:
            restrictions.pax_count = None
            self._found.add(f"not_countable:{path}.restrictions.paxCount")

    @property
    def notes(self) -> list[str]:
        """For the record: `rule:field`."""
        return sorted(self._found)


def mend_departures(departures: Iterable[records.Availability]) -> list[Struct | msgspec.Raw]:
    """Leave one price of each unit and currency; the records to encode."""
    mended: list[Struct | msgspec.Raw] = []
    for record in departures:
        prices, own = record.unit_pricing, record.pricing
        # Cheap, because it is asked of every departure.
        if not prices or (not own and len({_text(price.unit_id) for price in prices}) == len(prices)):
            mended.append(record)
            continue
        odd = Oddities()
        left = odd.once("unitPricing", [*prices, *([own] if own else [])], lambda p: (_text(p.unit_id), p.currency))
        record.unit_pricing = [price for price in left if price is not own]
        mended.append(noted(record, odd.notes))
    return mended


def mend_booking(record: records.Booking) -> list[str]:
    """Leave each ticket once. Extras and taxes have no id of their own, and add up. What was found."""
    odd = Oddities()
    if record.unit_items:
        record.unit_items = odd.once("unitItems", record.unit_items, lambda item: item.uuid)
    _add_up(odd, "extraItems", record.extra_items)
    for item in record.unit_items or ():
        _add_up(odd, "unitItems.extraItems", item.extra_items)
        odd.people("unitItems.unit", item.unit)
    if record.pricing:
        odd.once("pricing.includedTaxes", record.pricing.included_taxes, lambda tax: _text(tax.name))
    if record.product:
        odd.zone("product.timeZone", record.product)
    return odd.notes


def _add_up(odd: Oddities, path: str, extras: list[records.ExtraItem] | UnsetType | None) -> None:
    if extras and len(odd.once(path, extras, lambda extra: _text(extra.extra_id) or _text(extra.id))) < len(extras):
        for part in ("original", "retail", "net"):
            if sum(abs(getattr(extra.pricing, part, 0) or 0) for extra in extras) >= _MOST:
                raise msgspec.ValidationError(f"The extras are too much in all to be an amount - at `$.{path}`")


def mend_product(record: records.Product) -> list[str]:
    """Leave each option, unit, extra and price once. What was found."""
    odd = Oddities()
    odd.zone("timeZone", record)
    record.options = odd.once("options", record.options, lambda option: str(option.id))
    for option in record.options:
        if option.units:
            option.units = odd.once("options.units", option.units, lambda unit: str(unit.id))
        owners: list[tuple[str, records.Option | records.Unit]] = [("options", option)]
        for unit in option.units or ():
            odd.people("options.units", unit)
            owners.append(("options.units", unit))
        for path, owner in owners:
            if owner.extras:
                owner.extras = odd.once(f"{path}.extras", owner.extras, lambda extra: str(extra.id))
            if owner.pricing_from:
                owner.pricing_from = odd.once(f"{path}.pricingFrom", owner.pricing_from, lambda price: price.currency)
    return odd.notes
