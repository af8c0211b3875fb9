"""Encoding every calendar month before anybody asks: a benchmark must not measure the sandbox."""

import datetime as dt
from collections.abc import Iterator

from octo_sync.sandbox.capabilities import View
from octo_sync.sandbox.service import Service


def months(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The whole calendar months a range of dates touches."""
    month = dt.date.fromordinal(first).replace(day=1)
    while month.toordinal() <= last:
        following = (month.replace(day=28) + dt.timedelta(days=4)).replace(day=1)
        yield month.toordinal(), following.toordinal() - 1
        month = following


def warm(service: Service) -> int:
    """Fill the caches when the configuration asks for it; the number of bodies made."""
    if not service.config.warm:
        return 0
    names = service.config.warm_capabilities
    view = View(pricing="pricing" in names, content="content" in names, extras="extras" in names)
    made = 0
    for product in service.store.products.values():
        for option in product.options:
            for first, last in months(service.store.first, service.store.last):
                service.slots.body(product, option, first, last, view)
                made += 1
    for booking in service.store.bookings.values():
        service.booking_bytes.body(booking, view)
    return made
