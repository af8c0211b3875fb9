"""Availability as OCTO shows it, written as text: millions of slots must not be the bottleneck of a benchmark."""

import datetime as dt
import functools
from collections.abc import Sequence
from typing import Any

import msgspec

from octo_sync.sandbox import zones
from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.clock import utc_text
from octo_sync.sandbox.money import LEVELS, level_of
from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Option, Product
from octo_sync.sandbox.quirks import Quirks
from octo_sync.sandbox.render_products import prices_of
from octo_sync.sandbox.slots import Facts, closed_by_plan, sold_elsewhere
from octo_sync.sandbox.store import Store

_MARGIN = 4  # days around a slot's own: until its end, since its cut-off
_FREESALE = -1
_CLOSED = -2
_WIDTH = 1_000_000


class SlotWriter:
    """Writes and keeps the bodies of POST /availability."""

    def __init__(self, store: Store, quirks: Quirks, cache_bytes: int) -> None:
        self._store = store
        self._quirks = quirks
        self._limit = cache_bytes
        self._kept: dict[tuple[Any, ...], tuple[tuple[int, int, str], bytes]] = {}
        self._size = 0
        self._base = store.first - _MARGIN
        self._dates = [_date(ordinal) for ordinal in range(self._base, store.last + _MARGIN + 1)]
        self._templates: dict[tuple[Any, ...], list[str]] = {}
        self._tails: dict[tuple[str, str, int], dict[int, str]] = {}

    def style(self, product: Product) -> str:
        """How the product's availability ids are spelled now."""
        return str(self._quirks["availability_id_style"] or product.id_style)

    def id(self, product: Product, option: Option, number: int) -> str:
        """A slot's id as it is spelled now."""
        return zones.availability_id(self.style(product), product, option, number)

    def body(self, product: Product, option: Option, first: int, last: int, view: View) -> bytes:
        """The JSON array of an option's slots between two dates."""
        first, last = max(first, self._store.first), min(last, self._store.last)
        key = (product.id, option.id, first, last, view.shape)
        version = (self._store.ledgers[product.id, option.id].version, product.revision, self.style(product))
        found = self._kept.get(key)
        if found is not None and found[0] == version:
            return found[1]
        body = ("[" + ",".join(self.rows(product, option, first, last, view)) + "]").encode()
        self._size += len(body)
        if self._size > self._limit:
            self._kept.clear()
            self._size = len(body)
        self._kept[key] = (version, body)
        return body

    def rows(self, product: Product, option: Option, first: int, last: int, view: View) -> list[str]:
        """The JSON text of each slot between two dates inside the horizon."""
        ledger = self._store.ledgers[product.id, option.id]
        taken, closures, capacities = ledger.taken, ledger.closed, ledger.capacity
        offsets = _zone_offsets(product.time_zone, self._base, len(self._dates))
        prices = [self._price(product, option, level, view) for level in LEVELS]
        tails = self._tails.setdefault((product.id, option.id, product.revision), {})
        freesale = product.freesale
        rows: list[str] = []
        for ordinal in range(first, last + 1):
            position = ordinal - self._base
            offset = offsets[position]
            if offset is None:  # the clocks change, or are about to
                numbers = self._store.slot_numbers(option, ordinal, ordinal)
                rows.extend(self.row(product, option, number, view) for number in numbers)
                continue
            dates, price = self._dates[position - _MARGIN : position + _MARGIN + 1], prices[level_of(ordinal)]
            dates.append(dates[_MARGIN].replace("-", ""))
            plan_closed = closed_by_plan(option, ordinal)
            number = ordinal * SLOTS_PER_DAY
            for template in self._day(product, option, ordinal, offset):
                if closures.get(number, plan_closed):
                    # A closed slot still says its capacity, which may have been changed for it alone.
                    state = _CLOSED - (0 if freesale else capacities.get(number, option.capacity))
                elif freesale:
                    state = _FREESALE
                else:
                    capacity = capacities.get(number, option.capacity)
                    left = capacity - sold_elsewhere(option, number) - taken.get(number, 0)
                    state = capacity * _WIDTH + max(0, left)
                tail = tails.get(state)
                if tail is None:
                    tail = tails[state] = self._tail(self._store.facts(product, option, number), option)
                rows.append(template.format(*dates) + tail + price)
                number += 1
        return rows

    def row(self, product: Product, option: Option, number: int, view: View) -> str:
        """The JSON text of one slot."""
        price = self._price(product, option, level_of(number // SLOTS_PER_DAY), view)
        tail = self._tail(self._store.facts(product, option, number), option)
        return self._head(product, option, number) + tail + price

    def _head(self, product: Product, option: Option, number: int) -> str:
        """What a slot's number alone decides: its id and its times."""
        times = zones.slot_times(product, option, number)
        fields = {
            "id": self.id(product, option, number),
            "localDateTimeStart": zones.iso(times.start),
            "localDateTimeEnd": zones.iso(times.end),
            "allDay": not option.start_times,
            "openingHours": [{"from": opens, "to": closes} for opens, closes in product.opening_hours],
            "utcCutoffAt": utc_text(times.cutoff),
        }
        return msgspec.json.encode(fields).decode()[:-1]

    def _day(self, product: Product, option: Option, ordinal: int, offset: dt.timedelta) -> list[str]:
        """The heads of a day's slots under one UTC offset, with holes for the dates around its own."""
        key = (product.id, option.id, product.revision, offset, self.style(product))
        found = self._templates.get(key)
        if found is None:
            numbers = self._store.slot_numbers(option, ordinal, ordinal)
            found = self._templates[key] = [_holed(self._head(product, option, one), ordinal) for one in numbers]
        return found

    def _tail(self, state: Facts, option: Option) -> str:
        most: int | None = option.max_units
        if state.vacancies is not None:
            most = state.vacancies if most is None else min(most, state.vacancies)
        fields = {
            "available": state.available,
            "status": state.status,
            "vacancies": state.vacancies,
            "capacity": state.capacity,
            "maxUnits": most,
        }
        return "," + msgspec.json.encode(fields).decode()[1:-1]

    def _price(self, product: Product, option: Option, level: int, view: View) -> str:
        """The end of a slot: prices and texts."""
        fields = prices_of(product, option, level, view)
        if view.content:
            fields["title"] = option.titles[view.language]
            fields["shortDescription"] = product.short_descriptions[view.language]
        return "," + msgspec.json.encode(fields).decode()[1:] if fields else "}"


@functools.cache
def _zone_offsets(name: str, first: int, count: int) -> Sequence[dt.timedelta | None]:
    """Of so many dates the UTC offset; None where it changes within two days."""
    at = [zones.local(name, first + position, 0).utcoffset() for position in range(count + 2)]
    return [at[i] if at[i] == at[i + 1] == at[i + 2] else None for i in range(count)]


def _holed(head: str, ordinal: int) -> str:
    """A head with numbered holes for the dates from `_MARGIN` days before its own on, and for its own without dashes."""
    compact = _date(ordinal).replace("-", "")
    holed = head.replace("{", "{{").replace("}", "}}").replace(f'"id":"{compact}', f'"id":"{{{2 * _MARGIN + 1}}}')
    for hole in range(2 * _MARGIN + 1):
        holed = holed.replace(_date(ordinal - _MARGIN + hole), f"{{{hole}}}")
    return holed


def _date(ordinal: int) -> str:
    return dt.date.fromordinal(ordinal).isoformat()
