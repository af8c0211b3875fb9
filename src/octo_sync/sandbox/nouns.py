"""The sandbox's own nouns. Instants are whole seconds since 1970 UTC, dates are ordinals, money is minor units."""

import dataclasses
from typing import Annotated

import msgspec

Texts = dict[str, str]
"""A text per language."""


@dataclasses.dataclass(frozen=True, slots=True)
class Tax:
    """An included tax: its share of the price that carries it."""

    name: str
    original: int
    retail: int
    net: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Money:
    """A price in minor units of the product's currency; retail includes the taxes."""

    original: int
    retail: int
    net: int | None
    taxes: tuple[Tax, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Named:
    """What products, options, units and extras all have."""

    id: str
    internal_name: str
    reference: str | None = None
    titles: Texts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Extra(Named):
    """An addon that can be bought with a unit or a booking."""

    descriptions: Texts
    default: bool
    required: bool = False
    min_quantity: int | None = 0
    max_quantity: int | None
    price: Money


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Unit(Named):
    """A kind of ticket."""

    type: str
    min_age: int
    max_age: int
    id_required: bool
    min_quantity: int | None = None
    max_quantity: int | None
    pax_count: int
    accompanied_by: tuple[str, ...]
    required_contact_fields: tuple[str, ...]
    base_price: int
    extras: tuple[Extra, ...] = ()
    min_height: int | None = None


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Option(Named):
    """A variant of a product; capacity is per slot."""

    default: bool
    start_times: tuple[int, ...]  # minutes after local midnight; empty for OPENING_HOURS
    duration_minutes: int
    cutoff_text: str
    cutoff_amount: int
    cutoff_unit: str
    required_contact_fields: tuple[str, ...]
    min_units: int | None = 1
    max_units: int | None
    capacity: int
    closed_weekdays: tuple[int, ...]
    base_price: int
    units: tuple[Unit, ...]
    extras: tuple[Extra, ...] = ()
    room: int = 0  # places of an open slot that nobody else sells
    salt: int = 0  # seeds the arithmetic of its slots


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Offer:
    """What a product has from its archetype as it is."""

    short_descriptions: Texts
    city: Texts
    latitude: float
    longitude: float
    time_zone: str
    currency: str
    precision: int
    locale: str
    availability_type: str
    id_style: str
    categories: tuple[str, ...]
    opening_hours: tuple[tuple[str, str], ...] = ()
    pricing_per: str = "UNIT"
    tax_rates: tuple[tuple[str, int], ...] = ()  # name, per mille included in the price
    with_net: bool = True
    freesale: bool = False
    delivery_methods: tuple[str, ...] = ("TICKET", "VOUCHER")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Product(Offer, Named):
    """Something that can be booked. `revision` grows with every change an administrator makes."""

    instant_confirmation: bool
    instant_delivery: bool
    availability_required: bool
    delivery_formats: tuple[str, ...]
    redemption_method: str
    options: tuple[Option, ...]
    descriptions: Texts
    revision: int = 0

    def option(self, option_id: str) -> Option | None:
        """The option of this id."""
        return next((option for option in self.options if option.id == option_id), None)


class Contact(msgspec.Struct, frozen=True, rename="camel"):
    """Who a booking or a ticket is for; in JSON it is the Contact object, every key present."""

    full_name: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    email_address: Annotated[str, msgspec.Meta(pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    phone_number: str | None = None
    locales: tuple[str, ...] = ()
    postal_code: str | None = None
    country: str | None = None
    notes: str | None = None


NOBODY = Contact()


@dataclasses.dataclass(frozen=True, slots=True)
class ExtraItem:
    """One extra bought."""

    id: str
    extra_id: str
    price: Money


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sold:
    """What a booking and each of its tickets have."""

    uuid: str
    status: str
    reseller_reference: str | None
    supplier_reference: str | None
    contact: Contact
    redeemed: int | None = None
    extra_items: tuple[ExtraItem, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UnitItem(Sold):
    """One ticket of a booking; price is None when the product is priced per booking."""

    unit_id: str
    price: Money | None


@dataclasses.dataclass(frozen=True, slots=True)
class Cancellation:
    """How a booking was cancelled."""

    refund: str
    reason: str | None
    at: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Booking(Sold):
    """A booking as it stands; a change makes a new one. `slot` is None when it was sold without availability."""

    id: str
    token: str
    test: bool
    product_id: str
    option_id: str
    slot: int | None
    local_date: int
    created: int
    updated: int
    expires: int | None
    confirmed: int | None = None
    cancellation: Cancellation | None = None
    notes: str | None
    unit_items: tuple[UnitItem, ...]
    price: Money
    decide_at: int | None = None  # when the supplier decides about a PENDING booking
    decision: str | None = None

    @property
    def takes_capacity(self) -> bool:
        """Whether its tickets occupy places."""
        return not self.test and self.slot is not None and self.status in TAKING


@dataclasses.dataclass(frozen=True, slots=True)
class Subscription:
    """A webhook subscription of one token."""

    id: str
    token: str
    url: str
    types: tuple[str, ...]
    headers: dict[str, str]


TAKING = frozenset({"ON_HOLD", "CONFIRMED", "PENDING", "REDEEMED"})
OPEN = frozenset({"ON_HOLD", "CONFIRMED", "PENDING"})
SLOTS_PER_DAY = 1_024
"""A slot's number is `date ordinal * SLOTS_PER_DAY + index of its start time`."""
