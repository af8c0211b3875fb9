"""Making a booking's parts: tickets, prices and extras. Pure; shared by seeding, the API and the traffic generator."""

import dataclasses
import random
from collections.abc import Sequence

from octo_sync.sandbox.catalog import seeded_uuid
from octo_sync.sandbox.money import level_of, priced, total
from octo_sync.sandbox.nouns import NOBODY, Contact, Extra, ExtraItem, Money, Option, Product, Unit, UnitItem


def unit_price(product: Product, unit: Unit, ordinal: int) -> Money | None:
    """A ticket's price on a travel date; None when the product is priced per booking."""
    return priced(product, unit.base_price, level_of(ordinal)) if product.pricing_per == "UNIT" else None


def ticket(
    rng: random.Random,
    product: Product,
    unit: Unit,
    ordinal: int,
    *,
    status: str,
    uuid: str | None = None,
    contact: Contact = NOBODY,
    reseller_reference: str | None = None,
    extras: Sequence[Extra] = (),
) -> UnitItem:
    """A ticket with its own price."""
    ticket_uuid = uuid or seeded_uuid(rng)
    return UnitItem(
        uuid=ticket_uuid,
        unit_id=unit.id,
        status=status,
        reseller_reference=reseller_reference,
        supplier_reference=f"T{ticket_uuid[:8].upper()}" if rng.random() < 0.5 else None,  # noqa: PLR2004 - every second
        contact=contact,
        price=unit_price(product, unit, ordinal),
        extra_items=bought(rng, extras),
    )


def bought(rng: random.Random, extras: Sequence[Extra]) -> tuple[ExtraItem, ...]:
    """One item per extra."""
    return tuple(ExtraItem(seeded_uuid(rng), extra.id, extra.price) for extra in extras)


def booking_price(
    product: Product, option: Option, ordinal: int, unit_items: Sequence[UnitItem], extra_items: Sequence[ExtraItem]
) -> Money:
    """What a booking costs: its tickets or the option, and every extra."""
    extras = [*extra_items, *(extra for item in unit_items for extra in item.extra_items)]
    parts = [extra.price for extra in extras] + [item.price for item in unit_items if item.price is not None]
    if product.pricing_per == "BOOKING":
        parts.append(priced(product, option.base_price, level_of(ordinal)))
    return total(parts, with_net=product.with_net)


def repriced(product: Product, option: Option, ordinal: int, items: Sequence[UnitItem]) -> tuple[UnitItem, ...]:
    """The tickets at the prices of another date; units the option does not sell keep their price."""
    prices = {unit.id: unit_price(product, unit, ordinal) for unit in option.units}
    return tuple(dataclasses.replace(item, price=prices.get(item.unit_id, item.price)) for item in items)
