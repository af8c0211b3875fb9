"""Which change tells which subscription what (brief, section 6)."""

import datetime as dt
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from octo_sync.sandbox.clock import utc_text
from octo_sync.sandbox.deliveries import Outbox
from octo_sync.sandbox.nouns import Booking, Option, Product, Subscription

if TYPE_CHECKING:
    from octo_sync.sandbox.service import Service

TYPES = ("BOOKING_UPDATE", "PRODUCT_UPDATE", "AVAILABILITY_UPDATE")


class Events:
    """Turns changes into deliveries."""

    def __init__(self, service: "Service", outbox: Outbox) -> None:
        self._service = service
        self._outbox = outbox
        self._rng = random.Random(f"{service.config.seed}/events")
        self.counts = dict.fromkeys(TYPES, 0)

    def booking(self, booking: Booking) -> None:
        """A booking was reserved, confirmed, cancelled or updated: only its creator's subscriptions hear of it."""
        if booking.test and not self._service.quirks["test_bookings_in_feed"]:
            return
        data: dict[str, Any] = {"uuid": booking.uuid}
        if self._rng.random() >= self._service.config.uuid_only_share:
            data |= {"id": booking.id, "utcCreatedAt": utc_text(booking.created)}
        self._send("BOOKING_UPDATE", data, booking.token)

    def product(self, product_id: str) -> None:
        """A product was created, updated or deleted."""
        self._send("PRODUCT_UPDATE", {"productId": product_id})

    def availability(self, product: Product, options: Sequence[Option], first: int, last: int) -> None:
        """Schedules or closeouts changed; a sale is not such a change."""
        quirks = self._service.quirks
        data: dict[str, Any]
        if quirks["update_with_availability_ids"]:
            for option in options:
                numbers = self._service.store.slot_numbers(option, first, last)
                ids = [self._service.slots.id(product, option, number) for number in numbers]
                data = {"productId": product.id, "optionId": option.id, "availabilityIds": ids}
                self._send("AVAILABILITY_UPDATE", data)
            return
        data = {"productId": product.id}
        if not quirks["update_without_dates"]:
            data["localDateStart"] = dt.date.fromordinal(first).isoformat()
            data["localDateEnd"] = dt.date.fromordinal(last).isoformat()
        self._send("AVAILABILITY_UPDATE", data)

    def _send(self, kind: str, data: dict[str, Any], token: str | None = None) -> None:
        self.counts[kind] += 1
        for subscription in self._service.store.subscriptions.values():
            if kind in subscription.types and token in {None, subscription.token}:
                self._outbox.put(subscription, kind, self._envelope(subscription, kind, data))

    def _envelope(self, subscription: Subscription, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        if "productId" in data:
            data = {**data, "productId": data["productId"] + self._service.quirks["product_id_suffix"]}
        body: dict[str, Any] = {"subscriptionId": subscription.id, "notificationType": kind, "data": data}
        if self._service.quirks["delivery_extra_fields"]:
            body["id"] = f"ntf_{self._rng.getrandbits(64):016x}"
            body["utcCreatedAt"] = utc_text(self._service.clock.whole())
        return body
