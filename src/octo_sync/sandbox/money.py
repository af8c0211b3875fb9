"""Prices: integer arithmetic in minor units, one rule for weekdays and one for weekends."""

import datetime as dt
from collections.abc import Sequence

from octo_sync.sandbox.nouns import Money, Product, Tax

SATURDAY = 5
WEEKEND_PERCENT = 120
NET_PERCENT = 80
ORIGINAL_PERCENT = 110
PER_MILLE = 1_000
LEVELS = (0, 1)


def level_of(ordinal: int) -> int:
    """The price level of a travel date: 0 on weekdays, 1 on weekends."""
    return 1 if dt.date.fromordinal(ordinal).weekday() >= SATURDAY else 0


def priced(product: Product, base: int, level: int) -> Money:
    """The price of something whose weekday retail price is `base`."""
    retail = base * WEEKEND_PERCENT // 100 if level else base
    original = retail * ORIGINAL_PERCENT // 100 if level == 0 and product.with_net else retail
    net = retail * NET_PERCENT // 100 if product.with_net else None
    taxes = tuple(
        Tax(name, _included(original, rate), _included(retail, rate), None if net is None else _included(net, rate))
        for name, rate in product.tax_rates
    )
    return Money(original, retail, net, taxes)


def _included(amount: int, rate: int) -> int:
    return amount * rate // (PER_MILLE + rate)


def total(parts: Sequence[Money], *, with_net: bool) -> Money:
    """The sum of prices of one product, its taxes added up by name."""
    alike = zip(*(part.taxes for part in parts), strict=True)  # those of one product are the same, in the same order
    taxes = tuple(Tax(same[0].name, *_added(same, with_net=with_net)) for same in alike)
    return Money(*_added(parts, with_net=with_net), taxes)


def _added(parts: Sequence[Money | Tax], *, with_net: bool) -> tuple[int, int, int | None]:
    net = sum(part.net or 0 for part in parts) if with_net else None
    return sum(part.original for part in parts), sum(part.retail for part in parts), net
