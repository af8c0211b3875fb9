"""The service as one object: clock, store, switches and writers, wired from a configuration."""

import asyncio
import datetime as dt
import functools
import random
from collections.abc import Iterator

from octo_sync.sandbox import catalog, render_products
from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.clock import UTC, Clock
from octo_sync.sandbox.config import BASE_PATH, SandboxConfig, Token
from octo_sync.sandbox.deliveries import Outbox, Sleep, Transport
from octo_sync.sandbox.errors import bad_request, invalid
from octo_sync.sandbox.events import Events
from octo_sync.sandbox.faults import Faults
from octo_sync.sandbox.nouns import Booking, Product
from octo_sync.sandbox.quirks import Quirks
from octo_sync.sandbox.render_bookings import BookingWriter
from octo_sync.sandbox.render_slots import SlotWriter
from octo_sync.sandbox.seeding import Seeder
from octo_sync.sandbox.store import Store, with_status

NOON = 12
_ENCODED = 20_000  # products, options and units kept as JSON, in each view that was asked for


class Service:
    """Everything behind the routes. One event loop owns it.

    Args:
        config: size, seed and behaviour.
        clock: the clock to live by; when None, real time, or noon of `config.today`.
        base_url: shown as the supplier's endpoint.
        transport: the httpx transport webhooks go through; the network when None.
        sleep: how deliveries and faults wait.
    """

    def __init__(
        self,
        config: SandboxConfig,
        clock: Clock | None = None,
        *,
        base_url: str = f"http://sandbox.test{BASE_PATH}",
        transport: Transport | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        start = None if config.today is None else dt.datetime.combine(config.today, dt.time(NOON), UTC)
        self.config = config
        self.clock = clock = clock or Clock(start=start, frozen=config.frozen)
        self.sleep = sleep
        self.quirks = Quirks(config.quirks)
        self.faults = Faults(random.Random(f"{config.seed}/faults"), config.faults)
        self.outbox = Outbox(self, transport)
        self.tokens = {token.secret: token for token in config.tokens}
        self.today = config.today or clock.now().date()
        self.base_url = base_url
        self.build()

    def build(self) -> None:
        """Make the seeded data; also the way back to it."""
        config = self.config
        today = self.today.toordinal()
        self.rng = random.Random(f"{config.seed}/service")
        self.store = Store(catalog.build(config), today - config.past, today + config.days)
        Seeder(config, self.store, today, config.tokens).run()
        self.encoded = functools.lru_cache(maxsize=_ENCODED)(render_products.encoded)
        self.slots = SlotWriter(self.store, self.quirks, config.cache_bytes)
        self.booking_bytes = BookingWriter(self.store, self.encoded, self.slots)
        self.events = Events(self, self.outbox)
        self.tick()

    def warm(self) -> None:
        """Where asked for, encode every calendar month before anybody asks: a benchmark must not measure the sandbox."""
        if not self.config.warm:
            return
        view = View(pricing=True)
        for product in self.store.products.values():
            for option in product.options:
                for first, last in _months(self.store.first, self.store.last):
                    self.slots.body(product, option, first, last, view)
        for booking in self.store.bookings.values():
            self.booking_bytes.body(booking, view)

    def tick(self) -> None:
        """Let lapsed holds expire and due decisions fall. Called before every request and by the server's ticker."""
        now = self.clock.seconds()
        for booking in self.store.due(now):
            if booking.status == "ON_HOLD" and booking.expires is not None:
                lapsed = with_status(booking, "EXPIRED", booking.expires)
                self.change(lapsed, notify=self.quirks["hold_expiry_notifies"])
            elif booking.decide_at is not None:
                self.decide(booking, booking.decision or "CONFIRMED", booking.decide_at)

    def decide(self, booking: Booking, status: str, at: int) -> Booking:
        """The supplier accepts or rejects a PENDING booking."""
        confirmed = at if status == "CONFIRMED" else booking.confirmed
        decided = with_status(booking, status, at, decide_at=None, decision=None, confirmed=confirmed)
        return self.change(decided, notify=True)

    def change(self, booking: Booking, *, notify: bool) -> Booking:
        """Store a booking's new state and, when asked, tell its creator's subscriptions."""
        self.store.put_booking(booking, self.clock.seconds())
        if notify:
            self.events.booking(booking)
        return booking

    def product_id(self, shown: str) -> str:
        """The id of a product by the id it has outside; empty when no product is shown so."""
        suffix: str = self.quirks["product_id_suffix"]
        return shown.removesuffix(suffix) if shown.endswith(suffix) else ""

    def product(self, shown: str) -> Product:
        """A product that is still sold, by the id it has outside."""
        product = self.store.products.get(self.product_id(shown))
        if product is None:
            raise invalid("productId", shown)
        return product

    def visible(self, booking: Booking, token: Token) -> bool:
        """Whether a token may see a booking."""
        return token.sees_all or booking.token == token.name

    def token_named(self, text: str) -> Token:
        """A token by its name or its secret."""
        for token in self.config.tokens:
            if text in {token.name, token.secret}:
                return token
        raise bad_request("There is no such token.")


def _months(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The whole calendar months a range of dates touches."""
    month = dt.date.fromordinal(first).replace(day=1)
    while month.toordinal() <= last:
        following = (month.replace(day=28) + dt.timedelta(days=4)).replace(day=1)
        yield month.toordinal(), following.toordinal() - 1
        month = following
