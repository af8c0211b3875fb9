"""OCTO's nouns as records, read generously.

Only ids are required. A field that is absent is `UNSET`, one that is null is `None`: they are different facts (R10).
Values of enumerations stay the text they are (Q34), instants and dates too. Ids sent as numbers become text (Q25). What
is not named here is ignored; the answer's bytes still have it.
"""

from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

__all__ = [
    "Availability",
    "AvailabilityCalendar",
    "Booking",
    "Cancellation",
    "Capability",
    "Contact",
    "DeliveryOption",
    "Extra",
    "Id",
    "OpeningHours",
    "Option",
    "Pricing",
    "Product",
    "Restrictions",
    "Subscription",
    "Supplier",
    "SupplierContact",
    "Tax",
    "Ticket",
    "Unit",
    "UnitItem",
    "decode",
]

T = TypeVar("T")


class Id(str):
    """An opaque identifier: text, also when it was sent as a number."""

    __slots__ = ()


Text = str | UnsetType | None
Flag = bool | UnsetType | None
Whole = int | UnsetType | None
SomeId = Id | UnsetType | None
Texts = tuple[str, ...] | UnsetType | None


class Record(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What all records share: camelCase names outside, frozen inside."""


class Tax(Record, frozen=True):
    """One tax inside a price."""

    name: Text = UNSET
    original: Whole = UNSET
    retail: Whole = UNSET
    net: Whole = UNSET


class Pricing(Record, frozen=True):
    """Money in minor units: the amount is `retail / 10**currency_precision`, whatever the currency."""

    original: Whole = UNSET
    retail: Whole = UNSET
    net: Whole = UNSET
    currency: Text = UNSET
    currency_precision: Whole = UNSET
    included_taxes: tuple[Tax, ...] | UnsetType | None = UNSET
    unit_id: SomeId = UNSET


Prices = tuple[Pricing, ...] | UnsetType | None


class SupplierContact(Record, frozen=True):
    """How to reach a supplier."""

    website: Text = UNSET
    email: Text = UNSET
    telephone: Text = UNSET
    address: Text = UNSET


class Supplier(Record, frozen=True):
    """Who sells."""

    id: Id
    name: Text = UNSET
    endpoint: Text = UNSET
    contact: SupplierContact | UnsetType | None = UNSET
    short_description: Text = UNSET
    country: Text = UNSET


class Restrictions(Record, frozen=True):
    """Whom and how many an option or a unit admits."""

    min_units: Whole = UNSET
    max_units: Whole = UNSET
    min_age: Whole = UNSET
    max_age: Whole = UNSET
    id_required: Flag = UNSET
    min_quantity: Whole = UNSET
    max_quantity: Whole = UNSET
    pax_count: Whole = UNSET
    accompanied_by: tuple[Id, ...] | UnsetType | None = UNSET
    default: Flag = UNSET
    required: Flag = UNSET


class Extra(Record, frozen=True):
    """An addon product of an option or a unit (capability `extras`)."""

    id: Id
    internal_name: Text = UNSET
    reference: Text = UNSET
    title: Text = UNSET
    description: Text = UNSET
    restrictions: Restrictions | UnsetType | None = UNSET
    pricing_from: Prices = UNSET
    pricing: Prices | Pricing = UNSET


class Unit(Record, frozen=True):
    """A kind of ticket: adult, child, family."""

    id: Id
    internal_name: Text = UNSET
    reference: Text = UNSET
    type: Text = UNSET
    title: Text = UNSET
    short_description: Text = UNSET
    required_contact_fields: Texts = UNSET
    restrictions: Restrictions | UnsetType | None = UNSET
    pricing_from: Prices = UNSET
    pricing: Prices = UNSET
    extras: tuple[Extra, ...] | UnsetType | None = UNSET


class Option(Record, frozen=True):
    """A variant of a product; most products have one, `DEFAULT`."""

    id: Id
    default: Flag = UNSET
    internal_name: Text = UNSET
    reference: Text = UNSET
    title: Text = UNSET
    short_description: Text = UNSET
    availability_local_start_times: Texts = UNSET
    cancellation_cutoff: Text = UNSET
    cancellation_cutoff_amount: Whole = UNSET
    cancellation_cutoff_unit: Text = UNSET
    required_contact_fields: Texts = UNSET
    restrictions: Restrictions | UnsetType | None = UNSET
    units: tuple[Unit, ...] | UnsetType | None = UNSET
    pricing_from: Prices = UNSET
    pricing: Prices = UNSET
    extras: tuple[Extra, ...] | UnsetType | None = UNSET


class Product(Record, frozen=True):
    """What can be booked."""

    id: Id
    internal_name: Text = UNSET
    reference: Text = UNSET
    locale: Text = UNSET
    time_zone: Text = UNSET
    allow_freesale: Flag = UNSET
    instant_confirmation: Flag = UNSET
    instant_delivery: Flag = UNSET
    availability_required: Flag = UNSET
    availability_type: Text = UNSET
    delivery_formats: Texts = UNSET
    delivery_methods: Texts = UNSET
    redemption_method: Text = UNSET
    title: Text = UNSET
    short_description: Text = UNSET
    default_currency: Text = UNSET
    available_currencies: Texts = UNSET
    pricing_per: Text = UNSET
    options: tuple[Option, ...] | UnsetType | None = UNSET


class OpeningHours(Record, frozen=True):
    """`HH:mm` to `HH:mm`, at the venue."""

    from_: Text = msgspec.field(default=UNSET, name="from")
    to: Text = UNSET


Hours = tuple[OpeningHours, ...] | OpeningHours | UnsetType | None


class Availability(Record, frozen=True):
    """A departure, or a day. It names neither product nor option: the caller knows what was asked."""

    id: Id
    local_date_time_start: Text = UNSET
    local_date_time_end: Text = UNSET
    utc_cutoff_at: Text = UNSET
    all_day: Flag = UNSET
    available: Flag = UNSET
    status: Text = UNSET
    vacancies: Whole = UNSET
    capacity: Whole = UNSET
    max_units: Whole = UNSET
    opening_hours: Hours = UNSET
    title: Text = UNSET
    short_description: Text = UNSET
    unit_pricing: Prices = UNSET
    pricing: Pricing | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        _hours_are_a_list(self)


class AvailabilityCalendar(Record, frozen=True):
    """One day of the calendar."""

    local_date: str
    available: Flag = UNSET
    status: Text = UNSET
    vacancies: Whole = UNSET
    capacity: Whole = UNSET
    opening_hours: Hours = UNSET
    unit_pricing_from: Prices = UNSET
    pricing_from: Pricing | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        _hours_are_a_list(self)


def _hours_are_a_list(record: Availability | AvailabilityCalendar) -> None:
    """Some services send one object where the list belongs (Q24)."""
    if isinstance(record.opening_hours, OpeningHours):
        msgspec.structs.force_setattr(record, "opening_hours", (record.opening_hours,))


class Contact(Record, frozen=True):
    """A person. Personal data: its `repr` shows nothing."""

    full_name: Text = UNSET
    first_name: Text = UNSET
    last_name: Text = UNSET
    email_address: Text = UNSET
    phone_number: Text = UNSET
    postal_code: Text = UNSET
    country: Text = UNSET
    notes: Text = UNSET
    locales: Texts = UNSET

    def __repr__(self) -> str:
        return "Contact(…)"


class Cancellation(Record, frozen=True):
    """That, when and why a booking was cancelled."""

    refund: Text = UNSET
    reason: Text = UNSET
    utc_cancelled_at: Text = UNSET


class DeliveryOption(Record, frozen=True):
    """One form of a ticket."""

    delivery_format: Text = UNSET
    delivery_value: Text = UNSET

    def __repr__(self) -> str:
        return f"DeliveryOption({self.delivery_format!r})"


class Ticket(Record, frozen=True):
    """A voucher or a ticket."""

    redemption_method: Text = UNSET
    utc_redeemed_at: Text = UNSET
    delivery_options: tuple[DeliveryOption, ...] | UnsetType | None = UNSET


class UnitItem(Record, frozen=True):
    """One ticket of a booking. Its status may lag behind the booking's, which decides (Q13)."""

    uuid: SomeId = UNSET
    unit_id: SomeId = UNSET
    unit: Unit | UnsetType | None = UNSET
    status: Text = UNSET
    reseller_reference: Text = UNSET
    supplier_reference: Text = UNSET
    utc_redeemed_at: Text = UNSET
    contact: Contact | UnsetType | None = UNSET
    ticket: Ticket | UnsetType | None = UNSET
    pricing: Pricing | UnsetType | None = UNSET


class Booking(Record, frozen=True):
    """A reservation or a sale, known by its `uuid`. Product, option and `id` are absent at some services (Q15)."""

    uuid: Id
    id: SomeId = UNSET
    test_mode: Flag = UNSET
    reseller_reference: Text = UNSET
    supplier_reference: Text = UNSET
    status: Text = UNSET
    utc_created_at: Text = UNSET
    utc_updated_at: Text = UNSET
    utc_expires_at: Text = UNSET
    utc_redeemed_at: Text = UNSET
    utc_confirmed_at: Text = UNSET
    product_id: SomeId = UNSET
    product: Product | UnsetType | None = UNSET
    option_id: SomeId = UNSET
    option: Option | UnsetType | None = UNSET
    cancellable: Flag = UNSET
    cancellation: Cancellation | UnsetType | None = UNSET
    freesale: Flag = UNSET
    availability_id: SomeId = UNSET
    availability: Availability | UnsetType | None = UNSET
    contact: Contact | UnsetType | None = UNSET
    notes: Text = UNSET
    delivery_methods: Texts = UNSET
    voucher: Ticket | UnsetType | None = UNSET
    unit_items: tuple[UnitItem, ...] | UnsetType | None = UNSET
    pricing: Pricing | UnsetType | None = UNSET

    def __repr__(self) -> str:
        return f"Booking(uuid={str(self.uuid)!r}, status={self.status!r})"


class Capability(Record, frozen=True):
    """One capability a service offers."""

    id: Id
    revision: Whole = UNSET
    required: Flag = UNSET
    dependencies: Texts = UNSET
    docs: Text = UNSET


class Subscription(Record, frozen=True):
    """A webhook subscription. `headers` are secrets and not shown by `repr`; most services do not send them back."""

    id: Id
    url: str
    notification_types: tuple[str, ...] = ()
    headers: dict[str, str] | UnsetType | None = UNSET

    def __repr__(self) -> str:
        return f"Subscription(id={str(self.id)!r}, url={self.url!r}, notification_types={self.notification_types!r})"


_decoders: dict[object, msgspec.json.Decoder[object]] = {}


def decode(kind: type[T], body: bytes) -> T:
    """`body` as `kind`, such as `Product` or `tuple[Product, ...]`. Raises what `msgspec.json.decode` raises."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind, dec_hook=_convert)
    return decoder.decode(body)  # type: ignore[return-value] # a decoder of that very kind


def _convert(kind: type, value: object) -> object:
    if kind is Id and isinstance(value, str | int) and not isinstance(value, bool):
        return Id(value)
    # msgspec turns a ValueError into its own, with the path.
    raise ValueError(f"an id is a text or a number, not {type(value).__name__}")
