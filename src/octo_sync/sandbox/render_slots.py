"""Availability as OCTO shows it, written as text: millions of slots must not be the bottleneck of a benchmark."""

import collections
import dataclasses
import datetime as dt
import functools
from typing import Any

import msgspec

from octo_sync.sandbox import zones
from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.clock import DAY, utc_text
from octo_sync.sandbox.money import LEVELS, level_of
from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Option, Product
from octo_sync.sandbox.quirks import Quirks
from octo_sync.sandbox.render_products import prices_of
from octo_sync.sandbox.slots import Facts, closed_by_plan, sold_elsewhere
from octo_sync.sandbox.store import Store

_MARGIN = 8
_MINUTE = 60
_DAY_MINUTES = 1_440
_FREESALE = -1
_CLOSED = -2
_WIDTH = 1_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class _Piece:
    """The fixed texts of one start time under one UTC offset; dates go in between."""

    id_tail: str
    id_end: str | None  # what follows the end date, for ids made of start and end
    start: str
    end: str
    end_days: int
    cutoff: str
    cutoff_days: int


class SlotWriter:
    """Writes and keeps the bodies of POST /availability."""

    def __init__(self, store: Store, quirks: Quirks, cache_bytes: int) -> None:
        self._store = store
        self._quirks = quirks
        self._limit = cache_bytes
        self._kept: collections.OrderedDict[tuple[Any, ...], tuple[tuple[int, int, str], bytes]] = (
            collections.OrderedDict()
        )
        self._size = 0
        low, high = store.first - _MARGIN, store.last + _MARGIN
        self._base = low
        self._dates = [dt.date.fromordinal(ordinal).isoformat() for ordinal in range(low, high + 1)]
        self._compact = [date.replace("-", "") for date in self._dates]
        self._levels = [level_of(ordinal) for ordinal in range(low, high + 1)]
        self._offsets: dict[str, list[int | None]] = {}
        self._pieces: dict[tuple[Any, ...], list[_Piece]] = {}
        self._tails: dict[tuple[str, str, int], dict[int, str]] = {}

    def style(self, product: Product) -> str:
        """How the product's availability ids are spelled now."""
        return str(self._quirks["availability_id_style"] or product.id_style)

    def body(self, product: Product, option: Option, first: int, last: int, view: View) -> bytes:
        """The JSON array of an option's slots between two dates."""
        first, last = max(first, self._store.first), min(last, self._store.last)
        key = (product.id, option.id, first, last, view.shape)
        ledger = self._store.ledger(product.id, option.id)
        style = self.style(product)
        version = (ledger.version, product.revision, style)
        found = self._kept.get(key)
        if found is not None and found[0] == version:
            self._kept.move_to_end(key)
            return found[1]
        body = ("[" + ",".join(self.rows(product, option, first, last, view)) + "]").encode()
        self._keep(key, version, body)
        return body

    def _keep(self, key: tuple[Any, ...], version: tuple[int, int, str], body: bytes) -> None:
        old = self._kept.pop(key, None)
        self._size += len(body) - (len(old[1]) if old else 0)
        self._kept[key] = (version, body)
        while self._size > self._limit and self._kept:
            self._size -= len(self._kept.popitem(last=False)[1][1])

    def rows(self, product: Product, option: Option, first: int, last: int, view: View) -> list[str]:
        """The JSON text of each slot between two dates inside the horizon."""
        ledger = self._store.ledger(product.id, option.id)
        taken, closures, capacities = ledger.taken, ledger.closed, ledger.capacity
        style, base, dates = self.style(product), self._base, self._dates
        offsets = self._zone_offsets(product.time_zone)
        stems = self._compact if style == "compact" else dates
        prices = [self._price(product, option, level, view) for level in LEVELS]
        tails = self._tails.setdefault((product.id, option.id, product.revision), {})
        hours = "true" if not option.start_times else "false"
        middle = f'","allDay":{hours},"openingHours":{_opening_hours(product)},"utcCutoffAt":"'
        freesale = product.freesale
        rows: list[str] = []
        for ordinal in range(first, last + 1):
            position = ordinal - base
            offset = offsets[position]
            if offset is None:
                rows.extend(self._slow_rows(product, option, ordinal, view))
                continue
            date, stem, price = dates[position], stems[position], prices[self._levels[position]]
            plan_closed = closed_by_plan(option, ordinal)
            number = ordinal * SLOTS_PER_DAY
            for piece in self._plan(product, option, offset, style):
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
                end = dates[position + piece.end_days]
                ident = piece.id_tail if piece.id_end is None else f"{piece.id_tail}{end}{piece.id_end}"
                rows.append(
                    f'{{"id":"{stem}{ident}","localDateTimeStart":"{date}{piece.start}","localDateTimeEnd":"{end}{piece.end}'
                    f"{middle}{dates[position + piece.cutoff_days]}{piece.cutoff}{tail}{price}"
                )
                number += 1
        return rows

    def row(self, product: Product, option: Option, number: int, view: View) -> str:
        """The JSON text of one slot."""
        times = zones.slot_times(product, option, number)
        ident = zones.availability_id(self.style(product), product, option, number)
        hours = "true" if not option.start_times else "false"
        price = self._price(product, option, level_of(number // SLOTS_PER_DAY), view)
        return (
            f'{{"id":"{ident}","localDateTimeStart":"{zones.iso(times.start)}","localDateTimeEnd":"{zones.iso(times.end)}'
            f'","allDay":{hours},"openingHours":{_opening_hours(product)},"utcCutoffAt":"{utc_text(times.cutoff)}"'
            f"{self._tail(self._store.facts(product, option, number), option)[1:]}{price}"
        )

    def _slow_rows(self, product: Product, option: Option, ordinal: int, view: View) -> list[str]:
        """The slots of a day on which the clocks change, or are about to."""
        return [
            self.row(product, option, number, view) for number in self._store.slot_numbers(option, ordinal, ordinal)
        ]

    def _tail(self, state: Facts, option: Option) -> str:
        most: int | None = option.max_units
        if state.vacancies is not None:
            most = state.vacancies if most is None else min(most, state.vacancies)
        return (
            f'","available":{"true" if state.available else "false"},"status":"{state.status}"'
            f',"vacancies":{_null(state.vacancies)},"capacity":{_null(state.capacity)},"maxUnits":{_null(most)}'
        )

    def _price(self, product: Product, option: Option, level: int, view: View) -> str:
        """The end of a slot: prices and texts."""
        fields = prices_of(product, option, level, view)
        if view.content:
            fields["title"] = option.titles[view.language]
            fields["shortDescription"] = product.short_descriptions[view.language]
        return "," + msgspec.json.encode(fields).decode()[1:] if fields else "}"

    def _zone_offsets(self, name: str) -> list[int | None]:
        """Per date the UTC offset in seconds; None where it changes within two days."""
        found = self._offsets.get(name)
        if found is None:
            count = len(self._dates)
            at = [_offset(name, self._base + position) for position in range(count + 2)]
            found = [at[i] if at[i] == at[i + 1] == at[i + 2] else None for i in range(count)]
            self._offsets[name] = found
        return found

    def _plan(self, product: Product, option: Option, offset: int, style: str) -> list[_Piece]:
        key = (product.id, option.id, product.revision, offset, style)
        found = self._pieces.get(key)
        if found is None:
            minutes = option.start_times or (0,)
            found = self._pieces[key] = [_piece(option, minute, offset, style) for minute in minutes]
        return found


def _piece(option: Option, minute: int, offset: int, style: str) -> _Piece:
    zone = _offset_text(offset)
    start = f"T{minute // _MINUTE:02d}:{minute % _MINUTE:02d}:00{zone}"
    length = option.duration_minutes if option.start_times else _DAY_MINUTES
    end_days, end_minute = divmod(minute + length, _DAY_MINUTES)
    end = f"T{end_minute // _MINUTE:02d}:{end_minute % _MINUTE:02d}:00{zone}"
    cutoff = minute * _MINUTE - offset - option.cutoff_amount * zones.CUTOFF_SECONDS[option.cutoff_unit]
    cutoff_days, rest = divmod(cutoff, DAY)
    cutoff_text = f"T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}Z"
    id_tail, id_end = start, None
    if style == "pipe":
        id_tail, id_end = f"{start}|", end
    elif style == "compact":
        id_tail = f"{minute // _MINUTE:02d}{minute % _MINUTE:02d}00_{length}_{option.salt:08x}"
    elif style == "date" and not option.start_times:
        id_tail = ""
    return _Piece(id_tail, id_end, start, end, end_days, cutoff_text, cutoff_days)


def _offset(name: str, ordinal: int) -> int:
    offset = zones.local(name, ordinal, 0).utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def _offset_text(offset: int) -> str:
    sign = "-" if offset < 0 else "+"
    minutes = abs(offset) // _MINUTE
    return f"{sign}{minutes // _MINUTE:02d}:{minutes % _MINUTE:02d}"


@functools.lru_cache(maxsize=4_096)
def _hours(hours: tuple[tuple[str, str], ...]) -> str:
    return msgspec.json.encode([{"from": opens, "to": closes} for opens, closes in hours]).decode()


def _opening_hours(product: Product) -> str:
    return _hours(product.opening_hours)


def _null(value: int | None) -> str:
    return "null" if value is None else str(value)
