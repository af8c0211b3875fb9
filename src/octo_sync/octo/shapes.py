"""The records of OCTO answers, as far as the tables know them: structs that msgspec fills and checks by type.

Strict about types (a count of 7.5 or a price of "10" is refused, not rounded), liberal about what OCTO services are known
to vary: ids as numbers, unknown enum values, absent optional fields, extra fields. `UNSET` is absent, `None` is null (R10).

Sources: the field lists of the OCTO specification 1.0 as published in 2026, and providers' documented deviations.
"""

from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

__all__ = [
    "AvailabilityRecord",
    "BookedAvailability",
    "BookingRecord",
    "ExtraItem",
    "ExtraRecord",
    "ExtraRestrictions",
    "HydratedProduct",
    "HydratedUnit",
    "OptionRecord",
    "Price",
    "Pricing",
    "ProductRecord",
    "SupplierRecord",
    "UnitItem",
    "UnitRecord",
    "UnitRestrictions",
]

T = TypeVar("T")
Id = str | int
Text = str | None | UnsetType
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Number | None | UnsetType
Flag = bool | None | UnsetType
Instant = datetime | None | UnsetType
_DIGITS = 14
"""Digits before the decimal point that `numeric(18,4)` holds."""
Precision = Annotated[int, Meta(ge=0, le=4)]


class _Shape(Struct, rename="camel", gc=False):
    """Fields are OCTO's, in snake_case; unset means the answer did not have the key."""


_BOUNDS = tuple(10 ** (_DIGITS + precision) for precision in range(5))
_TOO_MUCH = f"An amount has more than {_DIGITS} digits before the decimal point"


class Tax(_Shape):
    """One entry of `includedTaxes`, minor units."""

    name: Text = UNSET
    original: Count = UNSET
    retail: Count = UNSET
    net: Count = UNSET


class Price(_Shape):
    """Amounts in minor units of `currency`; decimal = amount / 10^currencyPrecision."""

    currency: str
    currency_precision: Precision
    unit_id: Id | UnsetType | None = UNSET
    original: Count = UNSET
    retail: Count = UNSET
    net: Count = UNSET

    def __post_init__(self) -> None:
        """Refuse amounts that no `numeric(18,4)` holds; cheap, because it runs for every price of every departure."""
        bound = _BOUNDS[self.currency_precision]
        for amount in (self.original, self.retail, self.net):
            if amount and not -bound < amount < bound:
                raise ValueError(_TOO_MUCH)


class Pricing(Price):
    """A price with the taxes in it, which only bookings keep."""

    included_taxes: list[Tax] | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        """The same for the taxes."""
        super().__post_init__()
        for part in ("original", "retail", "net") if self.included_taxes else ():
            # They are added up, by name and all together.
            if (
                sum(abs(getattr(tax, part) or 0) for tax in self.included_taxes or ())
                >= _BOUNDS[self.currency_precision]
            ):
                raise ValueError(_TOO_MUCH)


class OpeningHours(_Shape):
    """Wall clock `HH:MM` at the venue."""

    from_: Text = msgspec.field(default=UNSET, name="from")
    to: Text = UNSET


class AvailabilityRecord(_Shape):
    """One departure or one day of an option. There is no product or option id in it: the caller remembers them."""

    id: Id
    local_date_time_start: datetime
    local_date_time_end: Instant = UNSET
    utc_cutoff_at: Instant = UNSET
    all_day: Flag = UNSET
    available: Flag = UNSET
    status: Text = UNSET
    vacancies: Count = UNSET
    capacity: Count = UNSET
    max_units: Count = UNSET
    opening_hours: list[OpeningHours] | OpeningHours | UnsetType | None = UNSET
    unit_pricing: list[Price] | UnsetType | None = UNSET
    pricing: Price | UnsetType | None = UNSET


class SupplierContact(_Shape):
    """How a traveller reaches the supplier; a company's data, not a person's."""

    website: Text = UNSET
    email: Text = UNSET
    telephone: Text = UNSET
    address: Text = UNSET


class SupplierRecord(_Shape):
    """The company behind the token."""

    id: Id
    name: Text = UNSET
    endpoint: Text = UNSET
    contact: SupplierContact | UnsetType | None = UNSET


class UnitRestrictions(_Shape):
    """Who may buy the unit, and how many."""

    min_age: Count = UNSET
    max_age: Count = UNSET
    id_required: Flag = UNSET
    min_quantity: Count = UNSET
    max_quantity: Count = UNSET
    pax_count: Count = UNSET
    accompanied_by: list[Id] | UnsetType | None = UNSET


class ExtraRestrictions(_Shape):
    """How many of an extra may or must be bought."""

    required: Flag = UNSET
    min_quantity: Count = UNSET
    max_quantity: Count = UNSET


class ExtraRecord(_Shape):
    """An addon (capability `extras`)."""

    id: Id
    internal_name: Text = UNSET
    reference: Text = UNSET
    title: Text = UNSET
    restrictions: ExtraRestrictions | UnsetType | None = UNSET


class UnitRecord(_Shape):
    """A ticket type of an option; its id is unique inside the option only."""

    id: Id
    internal_name: Text = UNSET
    reference: Text = UNSET
    type: Text = UNSET
    title: Text = UNSET
    restrictions: UnitRestrictions | UnsetType | None = UNSET
    pricing_from: list[Price] | UnsetType | None = UNSET
    extras: list[ExtraRecord] | UnsetType | None = UNSET


class OptionRestrictions(_Shape):
    """How many units one booking of the option may have."""

    min_units: Count = UNSET
    max_units: Count = UNSET


class _Content(_Shape):
    """Fields of the capability `content`; lists stay JSON, because their shapes differ between services (Q35)."""

    title: Text = UNSET
    short_description: Text = UNSET
    description: Text = UNSET
    features: Any = UNSET
    faqs: Any = UNSET
    media: Any = UNSET
    locations: Any = UNSET
    category_labels: Any = UNSET


class OptionRecord(_Content):
    """A variant of a product."""

    id: Id | UnsetType = UNSET  # required in substance: checked below, so that the path is named
    default: Flag = UNSET
    internal_name: Text = UNSET
    reference: Text = UNSET
    availability_local_start_times: list[str] | UnsetType | None = UNSET
    cancellation_cutoff: Text = UNSET
    cancellation_cutoff_amount: Count = UNSET
    cancellation_cutoff_unit: Text = UNSET
    restrictions: OptionRestrictions | UnsetType | None = UNSET
    units: list[UnitRecord] | UnsetType | None = UNSET
    pricing_from: list[Price] | UnsetType | None = UNSET
    extras: list[ExtraRecord] | UnsetType | None = UNSET


class ProductRecord(_Content):
    """A product with its options and units."""

    id: Id | UnsetType = UNSET  # as for the option
    internal_name: Text = UNSET
    reference: Text = UNSET
    locale: Text = UNSET
    time_zone: Text = UNSET
    allow_freesale: Flag = UNSET
    instant_confirmation: Flag = UNSET
    instant_delivery: Flag = UNSET
    availability_required: Flag = UNSET
    availability_type: Text = UNSET
    delivery_formats: list[str] | UnsetType | None = UNSET
    delivery_methods: list[str] | UnsetType | None = UNSET
    redemption_method: Text = UNSET
    default_currency: Text = UNSET
    available_currencies: list[str] | UnsetType | None = UNSET
    pricing_per: Text = UNSET
    options: list[OptionRecord] | UnsetType = UNSET


class Contact(_Shape):
    """A person. Goes to the private file and nowhere else."""

    full_name: Text = UNSET
    first_name: Text = UNSET
    last_name: Text = UNSET
    email_address: Text = UNSET
    phone_number: Text = UNSET
    country: Text = UNSET
    postal_code: Text = UNSET
    notes: Text = UNSET
    locales: list[str] | UnsetType | None = UNSET


class HydratedUnit(_Shape):
    """The ticket type inside a booking."""

    type: Text = UNSET
    restrictions: UnitRestrictions | UnsetType | None = UNSET


class HydratedProduct(_Shape):
    """The product inside a booking."""

    time_zone: Text = UNSET


class ExtraItem(_Shape):
    """An extra that was bought."""

    extra_id: Id | UnsetType | None = UNSET
    id: Id | UnsetType | None = UNSET
    quantity: Count = UNSET
    pricing: Pricing | UnsetType | None = UNSET


class UnitItem(_Shape):
    """One ticket of a booking."""

    uuid: str
    unit_id: Id | UnsetType | None = UNSET
    unit: HydratedUnit | UnsetType | None = UNSET
    status: Text = UNSET
    reseller_reference: Text = UNSET
    supplier_reference: Text = UNSET
    utc_redeemed_at: Instant = UNSET
    contact: Contact | UnsetType | None = UNSET
    extra_items: list[ExtraItem] | UnsetType | None = UNSET
    pricing: Pricing | UnsetType | None = UNSET


class Cancellation(_Shape):
    """Why and when a booking was cancelled."""

    refund: Text = UNSET
    reason: Text = UNSET
    utc_cancelled_at: Instant = UNSET


class BookedAvailability(_Shape):
    """The departure inside a booking."""

    id: Id | UnsetType | None = UNSET
    local_date_time_start: Instant = UNSET
    local_date_time_end: Instant = UNSET
    all_day: Flag = UNSET


class BookingRecord(_Shape):
    """A booking, keyed by `uuid`; early services send neither `id` nor the utc fields."""

    uuid: Annotated[str, Meta(min_length=1)]
    status: str
    id: Id | UnsetType | None = UNSET
    test_mode: Flag = UNSET
    reseller_reference: Text = UNSET
    supplier_reference: Text = UNSET
    utc_created_at: Instant = UNSET
    utc_updated_at: Instant = UNSET
    utc_expires_at: Instant = UNSET
    utc_redeemed_at: Instant = UNSET
    utc_confirmed_at: Instant = UNSET
    product_id: Id | UnsetType | None = UNSET
    product: HydratedProduct | UnsetType | None = UNSET
    option_id: Id | UnsetType | None = UNSET
    cancellable: Flag = UNSET
    cancellation: Cancellation | UnsetType | None = UNSET
    freesale: Flag = UNSET
    availability_id: Id | UnsetType | None = UNSET
    availability: BookedAvailability | UnsetType | None = UNSET
    contact: Contact | UnsetType | None = UNSET
    notes: Text = UNSET
    unit_items: list[UnitItem] | UnsetType | None = UNSET
    extra_items: list[ExtraItem] | UnsetType | None = UNSET
    pricing: Pricing | UnsetType | None = UNSET
