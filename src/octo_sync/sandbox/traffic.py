"""The traffic generator: random changes, now or at a rate, each told to the caller."""

import asyncio
import datetime as dt
import random
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from octo_sync.sandbox import bookings, zones
from octo_sync.sandbox.admin import Admin
from octo_sync.sandbox.config import WRITE_NOTIFICATIONS
from octo_sync.sandbox.errors import OctoError, bad_request, unprocessable
from octo_sync.sandbox.nouns import Booking, Option, Product
from octo_sync.sandbox.service import Service

Json = dict[str, Any]
_TRIES = 40
_REACH_DAYS = 60
_NOTHING = unprocessable("Nothing allows this change now.")


class Traffic:
    """Makes changes the way resellers and administrators do.

    Args:
        service: the service behind.
        admin: the administrator.
    """

    _WEIGHTS: ClassVar = {
        "reserve": 4,
        "confirm": 4,
        "book": 6,
        "cancel": 3,
        "redeem": 2,
        "note": 3,
        "decide": 1,
        "move": 1,
        "closeout": 1,
        "capacity": 1,
        "product": 1,
    }
    """How often each kind of change is made beside the others; `_reserve` and so on make them."""
    KINDS = tuple(_WEIGHTS)

    def __init__(self, service: Service, admin: Admin) -> None:
        self._service = service
        self._admin = admin
        self._runs = 0
        self._token: str | None = None
        self._task: asyncio.Task[None] | None = None
        self.made = 0

    def run(self, changes: int, kinds: object = None, seed: object = None, token: object = None) -> list[Json]:
        """Make so many changes now; fewer only when the data allows no more of these kinds.

        With `token`, or the name of one, only its bookings are made and changed, so that all of it is told to it.
        """
        self._token = self._only(token)
        rng = self._rng(seed)
        chosen = self._chosen(kinds)
        made: list[Json] = []
        failed = 0
        while len(made) < changes and failed < _TRIES:
            change = self._one(rng, chosen)
            if change is None:
                failed += 1
            else:
                failed = 0
                made.append(change)
        return made

    @property
    def running(self) -> bool:
        """Whether background traffic is on."""
        return self._task is not None and not self._task.done()

    async def start(self, rate: float, kinds: object = None, seed: object = None, token: object = None) -> None:
        """Make `rate` changes a second until stopped; `token` as for `run`."""
        if rate <= 0:
            raise bad_request("rate is a number above 0.")
        chosen, only = self._chosen(kinds), self._only(token)
        await self.stop()
        self._task = asyncio.create_task(self._background(rate, chosen, self._rng(seed), only))

    async def stop(self) -> None:
        """Stop background traffic."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _background(self, rate: float, kinds: Sequence[str], rng: random.Random, only: str | None) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += 1 / rate
            await self._service.sleep(max(0.0, due - loop.time()))
            self._service.tick()
            self._token = only
            self._one(rng, kinds)

    def _only(self, token: object) -> str | None:
        """The name of the token whose bookings alone are touched; None is all of them."""
        return None if token is None else self._service.token_named(str(token)).name

    def _rng(self, seed: object) -> random.Random:
        self._runs += 1
        if seed is None:
            seed = f"{self._service.config.seed}/traffic/{self._runs}"
        return random.Random(str(seed))

    def _chosen(self, kinds: object) -> Sequence[str]:
        if kinds is None:
            return self.KINDS
        if not isinstance(kinds, list) or not kinds or not set(kinds) <= set(self.KINDS):
            raise bad_request(f"kinds is a list of {', '.join(self.KINDS)}.")
        return kinds

    def _one(self, rng: random.Random, kinds: Sequence[str]) -> Json | None:
        kind = rng.choices(kinds, [self._WEIGHTS[kind] for kind in kinds])[0]
        make: Callable[[random.Random], Json] = getattr(self, f"_{kind}")
        try:
            change = make(rng)
        except OctoError:
            return None
        self.made += 1
        return {"kind": kind, **change}

    def _held(self, rng: random.Random) -> Booking:
        service = self._service
        names = [one.name for one in service.config.tokens if WRITE_NOTIFICATIONS in one.abilities]
        token = service.token_named(self._token or rng.choice(names or ["all"]))
        product, option = self._any_option(rng)
        first = max(zones.local_ordinal(product.time_zone, service.clock.seconds()) + 2, service.store.first)
        ordinal = first + rng.randrange(_REACH_DAYS)
        number = self._slot_on(option, ordinal, rng)
        if not service.store.facts(product, option, number).available:
            raise _NOTHING
        unit = option.units[0]
        body: Json = {
            "productId": product.id,
            "optionId": option.id,
            "availabilityId": service.slots.id(product, option, number),
            "unitItems": [{"unitId": unit.id}] * rng.choice((1, 2, 2, 3)),
            "resellerReference": f"TR-{rng.randrange(1_000_000):06d}",
            "contact": _guest(rng),
        }
        return bookings.reserve(self._service, body, token)

    def _any_option(self, rng: random.Random) -> tuple[Product, Option]:
        product = rng.choice(list(self._service.store.products.values()))
        return product, rng.choice(product.options)

    def _slot_on(self, option: Option, ordinal: int, rng: random.Random) -> int:
        numbers = list(self._service.store.slot_numbers(option, ordinal, ordinal))
        if not numbers:
            raise _NOTHING
        return rng.choice(numbers)

    def _any_booking(self, rng: random.Random, *statuses: str) -> Booking:
        found = [
            one
            for one in self._service.store.bookings.values()
            if one.status in statuses and self._token in (None, one.token)
        ]
        if not found:
            raise _NOTHING
        return rng.choice(found)

    def _reserve(self, rng: random.Random) -> Json:
        return _of(self._held(rng))

    def _book(self, rng: random.Random) -> Json:
        return _of(bookings.confirm(self._service, self._held(rng), {"contact": _guest(rng)}))

    def _confirm(self, rng: random.Random) -> Json:
        return _of(bookings.confirm(self._service, self._any_booking(rng, "ON_HOLD"), {"contact": _guest(rng)}))

    def _cancel(self, rng: random.Random) -> Json:
        booking = self._any_booking(rng, "CONFIRMED", "ON_HOLD", "PENDING")
        return _of(
            bookings.cancel(self._service, booking, {"reason": rng.choice((None, "Changed plans")), "force": True})
        )

    def _redeem(self, rng: random.Random) -> Json:
        return _of(self._admin.booking(self._any_booking(rng, "CONFIRMED").uuid, {"status": "REDEEMED"}))

    def _note(self, rng: random.Random) -> Json:
        booking = self._any_booking(rng, "CONFIRMED", "ON_HOLD", "PENDING", "REDEEMED")
        return _of(self._admin.booking(booking.uuid, {"notes": f"Note {rng.randrange(10_000)}"}))

    def _decide(self, rng: random.Random) -> Json:
        booking = self._any_booking(rng, "PENDING")
        status = rng.choice(("CONFIRMED", "CONFIRMED", "REJECTED"))
        return _of(self._service.decide(booking, status, self._service.clock.whole()))

    def _move(self, rng: random.Random) -> Json:
        booking = self._any_booking(rng, "CONFIRMED", "ON_HOLD")
        product = self._service.store.any_product(booking.product_id)
        option = product.option(booking.option_id)
        if booking.slot is None or option is None:
            raise _NOTHING
        number = self._slot_on(option, booking.local_date + rng.choice((-9, -2, 1, 3, 14)), rng)
        target = self._service.slots.id(product, option, number)
        return _of(self._admin.booking(booking.uuid, {"move": {"availability_id": target}}))

    def _closeout(self, rng: random.Random) -> Json:
        return self._ranged(rng, {"action": rng.choice(("close", "open", "reset"))})

    def _capacity(self, rng: random.Random) -> Json:
        return self._ranged(rng, {"action": "capacity", "capacity": rng.randrange(0, 60)})

    def _ranged(self, rng: random.Random, body: Json) -> Json:
        product, option = self._any_option(rng)
        first = self._service.today + dt.timedelta(rng.randrange(_REACH_DAYS))
        last = first + dt.timedelta(rng.randrange(4))
        chosen = {"option_id": option.id} if rng.random() < 0.5 else {}  # noqa: PLR2004 - half of them all options
        return self._admin.availability(
            {"product_id": product.id, "from": first.isoformat(), "to": last.isoformat(), **chosen, **body}
        )

    def _product(self, rng: random.Random) -> Json:
        product, _ = self._any_option(rng)
        name = f"{product.internal_name.split(' #')[0]} #{rng.randrange(1_000)}"
        return {"product_id": self._admin.update_product(product.id, {"internal_name": name}).id}


def _guest(rng: random.Random) -> Json:
    number = rng.randrange(100_000)
    return {
        "fullName": f"Guest {number}",
        "firstName": "Guest",
        "lastName": str(number),
        "emailAddress": f"guest{number:05d}@example.com",
    }


def _of(booking: Booking) -> Json:
    return {"uuid": booking.uuid, "id": booking.id, "status": booking.status, "token": booking.token}
