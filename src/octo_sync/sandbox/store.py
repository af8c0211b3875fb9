"""The sandbox's truth: products, slots, bookings and subscriptions, and the only functions that change them."""

import bisect
import collections
import dataclasses
import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from octo_sync.sandbox import slots
from octo_sync.sandbox.nouns import SLOTS_PER_DAY, Booking, Option, Product, Subscription

HISTORY = 16


class Store:
    """Everything the service knows; not thread-safe, one event loop owns it.

    Args:
        products: the seeded catalogue.
        first: ordinal of the first date with availability.
        last: ordinal of the last one.
    """

    def __init__(self, products: Iterable[Product], first: int, last: int) -> None:
        self.products = {product.id: product for product in products}
        self.deleted: dict[str, Product] = {}
        self.first = first
        self.last = last
        # What changed an option's slots, by the ids of product and option.
        self.ledgers: dict[tuple[str, str], slots.Ledger] = collections.defaultdict(slots.Ledger)
        self.bookings: dict[str, Booking] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.history: dict[str, collections.deque[tuple[float, Booking]]] = collections.defaultdict(
            lambda: collections.deque(maxlen=HISTORY)
        )
        self._by_date: dict[int, dict[str, None]] = collections.defaultdict(dict)
        self._dates: list[int] = []
        self._due: list[tuple[int, str]] = []

    def any_product(self, product_id: str) -> Product:
        """A product, also one deleted since: bookings keep pointing at it."""
        return self.products.get(product_id) or self.deleted[product_id]

    def facts(self, product: Product, option: Option, number: int) -> slots.Facts:
        """A slot as it stands."""
        return slots.facts(option, self.ledgers[product.id, option.id], number, freesale=product.freesale)

    def slot_numbers(self, option: Option, first: int, last: int) -> Iterator[int]:
        """The slots of an option between two dates, inside the horizon."""
        times = max(1, len(option.start_times))
        for ordinal in range(max(first, self.first), min(last, self.last) + 1):
            base = ordinal * SLOTS_PER_DAY
            yield from range(base, base + times)

    def exists(self, option: Option, number: int) -> bool:
        """Whether a slot number lies inside the horizon and the option's plan."""
        ordinal, index = divmod(number, SLOTS_PER_DAY)
        return self.first <= ordinal <= self.last and index < max(1, len(option.start_times))

    def put_product(self, product: Product) -> None:
        """Create or replace a product."""
        self.deleted.pop(product.id, None)
        self.products[product.id] = product
        for option in product.options:
            self.ledgers[product.id, option.id].version += 1

    def drop_product(self, product: Product) -> None:
        """Stop selling a product."""
        self.deleted[product.id] = self.products.pop(product.id)

    def put_booking(self, booking: Booking, changed_at: float | None = None) -> None:
        """Store a booking's new state, its places and its index entries. `changed_at` keeps the state for read lag."""
        before = self.bookings.get(booking.uuid)
        if before is not None:
            self._take(before, -1)
            if before.local_date != booking.local_date:
                del self._by_date[before.local_date][booking.uuid]
        self._take(booking, 1)
        self.bookings[booking.uuid] = booking
        if booking.local_date not in self._by_date:
            bisect.insort(self._dates, booking.local_date)
        self._by_date[booking.local_date][booking.uuid] = None
        if changed_at is not None:
            past = self.history[booking.uuid]
            if before is not None and not past:
                past.append((float("-inf"), before))
            past.append((changed_at, booking))
        due = booking.expires if booking.status == "ON_HOLD" else booking.decide_at
        if due is not None and booking.status in {"ON_HOLD", "PENDING"}:
            heapq.heappush(self._due, (due, booking.uuid))

    def _take(self, booking: Booking, sign: int) -> None:
        if not booking.takes_capacity or booking.slot is None:
            return
        ledger = self.ledgers[booking.product_id, booking.option_id]
        ledger.taken[booking.slot] += sign * self.places(booking)
        ledger.version += 1

    def places(self, booking: Booking) -> int:
        """How many places a booking's tickets take."""
        option = self.any_product(booking.product_id).option(booking.option_id)
        pax = {unit.id: unit.pax_count for unit in option.units} if option else {}
        return sum(pax.get(item.unit_id, 1) for item in booking.unit_items)

    def between(self, first: int, last: int) -> list[Booking]:
        """The bookings travelling between two dates, oldest first."""
        low = bisect.bisect_left(self._dates, first)
        high = bisect.bisect_right(self._dates, last)
        found = [self.bookings[uuid] for date in self._dates[low:high] for uuid in self._by_date[date]]
        found.sort(key=_age)
        return found

    def ordered(self) -> list[Booking]:
        """All bookings, oldest first."""
        return sorted(self.bookings.values(), key=_age)

    def as_of(self, booking: Booking, instant: float) -> Booking | None:
        """A booking as it was at an instant; None when it did not exist yet."""
        past = self.history.get(booking.uuid)
        if past is None:
            return booking
        known = [state for changed_at, state in past if changed_at <= instant]
        if known:
            return known[-1]
        return past[0][1] if len(past) == HISTORY else None

    def due(self, now: float) -> Iterator[Booking]:
        """Bookings whose hold has lapsed or whose decision is due, each once."""
        while self._due and self._due[0][0] <= now:
            instant, uuid = heapq.heappop(self._due)
            booking = self.bookings[uuid]
            if instant == (booking.expires if booking.status == "ON_HOLD" else booking.decide_at):
                yield booking


def _age(booking: Booking) -> tuple[int, str]:
    return booking.created, booking.uuid


def with_status(booking: Booking, status: str, now: int, **also: Any) -> Booking:  # noqa: ANN401 - any of its fields
    """The booking in another state, its tickets alike, and what else of it changes."""
    items = tuple(dataclasses.replace(item, status=status) for item in booking.unit_items)
    return dataclasses.replace(booking, status=status, updated=now, unit_items=items, **also)
