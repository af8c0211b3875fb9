"""Asks a service what tells how it behaves, beyond what a first look has seen: few calls, each for a reason.

Every call is one that a sync makes too, so a service sees nothing unusual; two of them ask for what nobody has.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from octo_sync.errors import ServiceError
from octo_sync.flows.doctor.seen import Seen, days_ahead, options_of, rows_of, said_in
from octo_sync.model import Horizon, Window
from octo_sync.octo import endpoints, quirks
from octo_sync.octo.answer import Answer
from octo_sync.octo.endpoints import Call

Ask = Callable[[Call[Any]], Awaitable[Answer | ServiceError]]

NOBODYS_BOOKING, NOBODYS_PRODUCT = "00000000-0000-4000-8000-0000000d0c70", "octo-sync-doctor-asks"
"""Ids that no service has given out."""
_RESERVED = 2
"""Calls that are kept for the last two questions."""
_DAYS, _WEEK = 31, 7


@dataclass(frozen=True, slots=True)
class KnownBooking:
    """A booking that the copy knows: its uuid, its travel date, and the day (UTC) on which it was made."""

    uuid: str
    travel: date
    created: date


async def probe(
    ask: Ask, seen: Seen, *, today: date, calls: int, cancelled: KnownBooking | None, availability: Horizon | None
) -> None:
    """Complete what was `seen` with at most so many `calls`.

    `availability` is the horizon that is to be kept; without it only what a first look needs is asked.
    """
    questions = _Questions(ask, seen, today, calls)
    if seen.bookings:
        await questions.is_it_cut()
    if availability is None:
        return
    if seen.bookings:
        await questions.another_month()
        await questions.is_it_there()
    if cancelled is not None:
        await questions.is_it_listed(cancelled)
    await questions.how_far(availability)
    await questions.another_option()
    await questions.whose_is_it()


class _Questions:
    """The questions that are left, each asked only where the answers so far do not tell."""

    def __init__(self, ask: Ask, seen: Seen, today: date, calls: int) -> None:
        self._ask, self._seen, self._today, self._left = ask, seen, today, calls

    async def _take(self, call: Call[Any], *, reserved: int = _RESERVED) -> Answer | ServiceError | None:
        if self._left <= reserved:
            return None
        self._left -= 1
        return await self._ask(call)

    async def another_month(self) -> None:
        """Bookings of a while ago: each was made before its travel date, or on it, and some were cancelled."""
        if _has_cancelled(self._seen) and _means(self._seen) != "unknown":
            return
        window = Window(self._today - timedelta(days=60), self._today - timedelta(days=30))
        answer = await self._take(endpoints.bookings(start=window.start, end=window.end))
        if isinstance(answer, Answer):
            self._seen.bookings.append((answer, window))

    async def is_it_cut(self) -> None:
        """The first list again in two halves, where it had exactly as many records as some services cut at."""
        first, window = self._seen.bookings[0]
        if not quirks.looks_capped(len(rows_of(first))):
            return
        halves = []
        for half in window.halves():
            answer = await self._take(endpoints.bookings(start=half.start, end=half.end))
            if not isinstance(answer, Answer) or not isinstance(said_in(answer), list):
                return  # one half alone says nothing
            halves.append(answer)
        self._seen.halves = halves

    async def is_it_there(self) -> None:
        """A hold that lapsed and is listed, by its own id."""
        for row in self._seen.listed:
            lapsed = row.get("status") == "EXPIRED" or (
                row.get("status") == "ON_HOLD" and str(row.get("utcExpiresAt") or "9") < self._today.isoformat()
            )
            if lapsed and isinstance(uuid := row.get("uuid"), str) and uuid:
                self._seen.lapsed = await self._take(endpoints.booking(uuid))
                return

    async def how_far(self, horizon: Horizon) -> None:
        """The first option's last days of the horizon, unless they were seen."""
        if not self._seen.availability:
            return
        first, near = self._seen.availability[0]
        end = horizon.window(self._today).end
        if end <= near.end:
            # Of a short horizon the last week, as far as it was asked for.
            self._seen.far = first, Window(max(near.start, end - timedelta(days=_WEEK)), max(near.start, end))
            return
        window = Window(max(near.end + timedelta(days=1), end - timedelta(days=_DAYS)), end)
        asked = first.call.json or {}
        product, option = str(asked["productId"]), str(asked["optionId"])
        answer = await self._take(endpoints.availability(product, option, window.start, window.end))
        if isinstance(answer, Answer):
            self._seen.far = answer, window

    async def is_it_listed(self, cancelled: KnownBooking) -> None:
        """A booking that is known as cancelled: by its own id, and in the list of its day."""
        if _has_cancelled(self._seen):
            return
        own = await self._take(endpoints.booking(cancelled.uuid), reserved=_RESERVED + 1)
        if not isinstance(own, Answer):
            return
        days = Window(cancelled.travel, cancelled.travel)
        if _means(self._seen) == "creation":
            # The service counts days in a zone of its own, which is not UTC.
            days = Window(cancelled.created - quirks.SLACK, cancelled.created + quirks.SLACK)
        listed = await self._take(endpoints.bookings(start=days.start, end=days.end))
        if isinstance(listed, Answer):
            self._seen.cancelled = cancelled.uuid, own, listed

    async def another_option(self) -> None:
        """Another product's availability, where no closed day was met."""
        # Of the last product: another kind than the first one, most likely.
        products = reversed(rows_of(self._seen.products)[1:])
        other = next((option for product in products for option in options_of(product)), None)
        if other is None or any(row.get("status") == "CLOSED" for row in self._seen.departures):
            return
        window = days_ahead(self._today, _DAYS)
        answer = await self._take(endpoints.availability(*other, window.start, window.end))
        if isinstance(answer, Answer):
            self._seen.availability.append((answer, window))

    async def whose_is_it(self) -> None:
        """What nobody has: how it is told decides whether a deletion can ever be proven."""
        calls: tuple[tuple[str, Call[Any]], ...]
        calls = ("booking", endpoints.booking(NOBODYS_BOOKING)), ("product", endpoints.product(NOBODYS_PRODUCT))
        for what, call in calls:
            if (said := await self._take(call, reserved=0)) is not None:
                self._seen.unknown[what] = said if isinstance(said, ServiceError) else None


def _has_cancelled(seen: Seen) -> bool:
    return any(row.get("status") == "CANCELLED" for row in seen.listed)


def _means(seen: Seen) -> str:
    return next((means for means, _ in seen.dates() if means in ("travel", "creation")), "unknown")
