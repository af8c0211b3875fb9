"""How full a slot is: computed from the seed, corrected by what bookings took and administrators changed."""

import collections
import dataclasses

from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Option

_MASK = 0xFFFF_FFFF
_SOLD_OUT_BELOW = 9
_LIMITED_BELOW = 35
_CLOSED_ONE_IN = 29


@dataclasses.dataclass(slots=True)
class Ledger:
    """What changed an option's slots; `version` grows with each change."""

    taken: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    closed: dict[int, bool] = dataclasses.field(default_factory=dict)
    capacity: dict[int, int] = dataclasses.field(default_factory=dict)
    version: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """A slot as it stands. Capacity and vacancies are None when it is sold without limit."""

    number: int
    capacity: int | None
    vacancies: int | None
    taken: int
    closed: bool

    @property
    def status(self) -> str:
        """The availability status of the OCTO specification."""
        if self.closed:
            return "CLOSED"
        if self.capacity is None or self.vacancies is None:
            return "FREESALE"
        if self.vacancies == 0:
            return "SOLD_OUT"
        return "LIMITED" if self.vacancies * 2 < self.capacity else "AVAILABLE"

    @property
    def available(self) -> bool:
        """Whether it can be booked."""
        return self.status not in {"CLOSED", "SOLD_OUT"}


def mix(value: int) -> int:
    """A 32-bit integer hash: the seedable stand-in for a table of millions of rows."""
    value &= _MASK
    value ^= value >> 16
    value = value * 0x85EB_CA6B & _MASK
    value ^= value >> 13
    value = value * 0xC2B2_AE35 & _MASK
    return value ^ value >> 16


def closed_by_plan(option: Option, ordinal: int) -> bool:
    """Whether the venue is closed on this date: a weekday off, or a day now and then."""
    # Ordinal 1 was a Monday.
    return (ordinal + 6) % 7 in option.closed_weekdays or mix(option.salt + ordinal) % _CLOSED_ONE_IN == 0


def sold_elsewhere(option: Option, number: int) -> int:
    """Places other sales channels took."""
    value = mix(option.salt * 31 + number)
    roll = value % 100
    if roll < _SOLD_OUT_BELOW:
        return option.capacity
    percent = 55 + (value >> 8) % 40 if roll < _LIMITED_BELOW else (value >> 8) % 40
    return min(option.capacity * percent // 100, option.capacity - option.room)


def facts(option: Option, ledger: Ledger, number: int, *, freesale: bool) -> Facts:
    """A slot as it stands."""
    closed = ledger.closed.get(number)
    if closed is None:
        closed = closed_by_plan(option, number // SLOTS_PER_DAY)
    taken = ledger.taken[number]
    if freesale:
        return Facts(number, None, 0 if closed else None, taken, closed)
    capacity = ledger.capacity.get(number, option.capacity)
    vacancies = 0 if closed else max(0, capacity - sold_elsewhere(option, number) - taken)
    return Facts(number, capacity, vacancies, taken, closed)
