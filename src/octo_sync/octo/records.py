"""OCTO's nouns, each described once: what the tables keep, what is known and kept nowhere, and of which type it is.

From these structs follow the check of every answer and its search for unknown fields (`reading`, `checking`), the typed
answers of `OctoClient.ask`, and the types with which the loader reads (`tables.base.struct`).

Strict about types (a count of 7.5 or a price of "10" is refused, not rounded), liberal about what OCTO services are known
to vary: ids as numbers, unknown enum values (Q34), absent optional fields, extra fields. `UNSET` is absent, `None` is
null (R10).

Longer than other modules, because a noun is best read in one place with those it holds.

Sources: the field lists of the OCTO specification 1.0 as published in 2026, and providers' documented deviations.
"""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, field

Id = str | int
Named = Annotated[str, Meta(min_length=1)]
Text = str | UnsetType | None
Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Number | UnsetType | None
Flag = bool | UnsetType | None
Instant = datetime | UnsetType | None
SomeId = Id | UnsetType | None
Texts = list[str] | UnsetType | None
Precision = Annotated[int, Meta(ge=0, le=4)]
NotKept = Annotated[Any, "known, and in no table on purpose"]
"""Hydrated copies, tickets, contact rules: not checked and not loaded, but no news either. As JSON has it, or `UNSET`."""
AnyJson = Any
"""Kept as JSON, because its shape differs between services (Q35)."""

_DIGITS = 14
"""Digits before the decimal point that `numeric(18,4)` holds."""
_BOUNDS = tuple(10 ** (_DIGITS + precision) for precision in range(5))
_TOO_MUCH = f"An amount has more than {_DIGITS} digits before the decimal point"


class Record(Struct, rename="camel", gc=False):
    """Fields are OCTO's, in snake_case; unset means the answer did not have the key."""


class Tax(Record):
    """One entry of `includedTaxes`, minor units."""

    name: Text = UNSET
    original: Count = UNSET
    retail: Count = UNSET
    net: Count = UNSET


class Price(Record):
    """Amounts in minor units of `currency`; decimal = amount / 10^currencyPrecision, whatever the currency."""

    currency: str
    currency_precision: Precision
    unit_id: SomeId = UNSET
    original: Count = UNSET
    retail: Count = UNSET
    net: Count = UNSET
    included_taxes: NotKept = UNSET

    def __post_init__(self) -> None:
        """One spelling of a currency, and no amount that no `numeric(18,4)` holds.

        Cheap, because it runs for every price of every departure.
        """
        self.currency = self.currency.upper()  # ISO 4217's: `eur` and `EUR` would be two sums
        bound = _BOUNDS[self.currency_precision]
        for amount in (self.original, self.retail, self.net):
            if amount and not -bound < amount < bound:
                raise ValueError(_TOO_MUCH)


class Pricing(Price):
    """A price with the taxes in it, which only bookings keep."""

    included_taxes: list[Tax] | UnsetType | None = UNSET
    extra_pricing: NotKept = UNSET

    def __post_init__(self) -> None:
        """The same for the taxes."""
        super().__post_init__()
        taxes, bound = self.included_taxes or (), _BOUNDS[self.currency_precision]
        for part in ("original", "retail", "net") if taxes else ():
            # They are added up, by name and all together.
            if sum(abs(getattr(tax, part) or 0) for tax in taxes) >= bound:
                raise ValueError(_TOO_MUCH)


Prices = list[Price] | UnsetType | None


class OpeningHours(Record):
    """Wall clock `HH:MM` at the venue."""

    from_: Text = field(default=UNSET, name="from")
    to: Text = UNSET


Hours = list[OpeningHours] | OpeningHours | UnsetType | None
"""Some services send one object where the list belongs (Q24)."""


class Places(Record):
    """Whether something can be booked, and how many places are left."""

    available: Flag = UNSET
    status: Text = UNSET
    vacancies: Count = UNSET
    capacity: Count = UNSET
    opening_hours: Hours = UNSET


class Availability(Places, kw_only=True):
    """One departure or one day of an option. There is no product or option id in it: the caller remembers them."""

    id: Id
    local_date_time_start: datetime
    local_date_time_end: Instant = UNSET
    utc_cutoff_at: Instant = UNSET
    all_day: Flag = UNSET
    max_units: Count = UNSET
    unit_pricing: Prices = UNSET
    pricing: Price | UnsetType | None = UNSET
    title: NotKept = UNSET
    short_description: NotKept = UNSET


class AvailabilityCalendar(Places, kw_only=True):
    """One day of the calendar, which no table keeps."""

    local_date: str
    unit_pricing_from: Prices = UNSET
    pricing_from: Price | UnsetType | None = UNSET


class SupplierContact(Record):
    """How a traveller reaches the supplier; a company's data, not a person's."""

    website: Text = UNSET
    email: Text = UNSET
    telephone: Text = UNSET
    address: Text = UNSET


class Supplier(Record):
    """The company behind the token."""

    id: Id
    name: Text = UNSET
    endpoint: Text = UNSET
    contact: SupplierContact | UnsetType | None = UNSET
    short_description: NotKept = UNSET
    media: NotKept = UNSET


class Admission(Record):
    """How many people one unit admits."""

    pax_count: Count = UNSET


class UnitRestrictions(Admission):
    """Who may buy the unit, and how many."""

    min_age: Count = UNSET
    max_age: Count = UNSET
    id_required: Flag = UNSET
    min_quantity: Count = UNSET
    max_quantity: Count = UNSET
    accompanied_by: list[Id] | UnsetType | None = UNSET
    min_height: NotKept = UNSET
    max_height: NotKept = UNSET
    height_unit: NotKept = UNSET


class ExtraRestrictions(Record):
    """How many of an extra may or must be bought."""

    required: Flag = UNSET
    min_quantity: Count = UNSET
    max_quantity: Count = UNSET
    default: NotKept = UNSET


class Offered(Record):
    """What products, options, units and extras are called."""

    internal_name: Text = UNSET
    reference: Text = UNSET
    title: Text = UNSET


class Described(Offered):
    """What the capability `content` says of units and extras."""

    short_description: NotKept = UNSET
    description: NotKept = UNSET
    features: NotKept = UNSET
    faqs: NotKept = UNSET
    media: NotKept = UNSET
    locations: NotKept = UNSET
    category_labels: NotKept = UNSET


class Extra(Described, kw_only=True):
    """An addon (capability `extras`)."""

    id: Id
    restrictions: ExtraRestrictions | UnsetType | None = UNSET
    pricing_from: NotKept = UNSET
    pricing: NotKept = UNSET


class Unit(Described, kw_only=True):
    """A ticket type of an option; its id is unique inside the option only."""

    id: Id
    type: Text = UNSET
    restrictions: UnitRestrictions | UnsetType | None = UNSET
    pricing_from: Prices = UNSET
    extras: list[Extra] | UnsetType | None = UNSET
    pricing: NotKept = UNSET
    required_contact_fields: NotKept = UNSET


class OptionRestrictions(Record):
    """How many units one booking of the option may have."""

    min_units: Count = UNSET
    max_units: Count = UNSET


class Content(Offered):
    """Fields of the capability `content`."""

    short_description: Text = UNSET
    description: Text = UNSET
    features: AnyJson = UNSET
    faqs: AnyJson = UNSET
    media: AnyJson = UNSET
    locations: AnyJson = UNSET
    category_labels: AnyJson = UNSET
    commentary: NotKept = UNSET
    duration_minutes_from: NotKept = UNSET
    duration_minutes_to: NotKept = UNSET


class Option(Content, kw_only=True):
    """A variant of a product; most products have one, `DEFAULT`."""

    id: Named | int
    default: Flag = UNSET
    availability_local_start_times: Texts = UNSET
    cancellation_cutoff: Text = UNSET
    cancellation_cutoff_amount: Count = UNSET
    cancellation_cutoff_unit: Text = UNSET
    restrictions: OptionRestrictions | UnsetType | None = UNSET
    units: list[Unit] | UnsetType | None = UNSET
    pricing_from: Prices = UNSET
    extras: list[Extra] | UnsetType | None = UNSET
    pricing: NotKept = UNSET
    required_contact_fields: NotKept = UNSET


class Product(Content, kw_only=True):
    """What can be booked. Without its options nothing can be asked of it: an empty list is a statement, none is a hole."""

    id: Id
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
    default_currency: Text = UNSET
    available_currencies: Texts = UNSET
    pricing_per: Text = UNSET
    options: list[Option]


class Contact(Record):
    """A person. Goes to the private file and nowhere else; its `repr` shows nothing."""

    full_name: Text = UNSET
    first_name: Text = UNSET
    last_name: Text = UNSET
    email_address: Text = UNSET
    phone_number: Text = UNSET
    country: Text = UNSET
    postal_code: Text = UNSET
    notes: Text = UNSET
    locales: Texts = UNSET

    def __repr__(self) -> str:
        return "Contact(…)"


class HydratedUnit(Record):
    """The ticket type inside a booking."""

    type: Text = UNSET
    restrictions: Admission | UnsetType | None = UNSET


class HydratedProduct(Record):
    """The product inside a booking."""

    time_zone: Text = UNSET


class ExtraItem(Record):
    """An extra that was bought."""

    extra_id: SomeId = UNSET
    id: SomeId = UNSET
    quantity: Count = UNSET
    pricing: Pricing | UnsetType | None = UNSET
    extra: NotKept = UNSET


ExtraItems = list[ExtraItem] | UnsetType | None


class Sold(Record):
    """What a booking and each of its tickets have."""

    reseller_reference: Text = UNSET
    supplier_reference: Text = UNSET
    utc_redeemed_at: Instant = UNSET
    contact: Contact | UnsetType | None = UNSET
    extra_items: ExtraItems = UNSET
    pricing: Pricing | UnsetType | None = UNSET


class UnitItem(Sold, kw_only=True):
    """One ticket of a booking. Its status may lag behind the booking's, which decides (Q13)."""

    uuid: str
    unit_id: SomeId = UNSET
    unit: HydratedUnit | UnsetType | None = UNSET
    status: Text = UNSET
    ticket: NotKept = UNSET

    def __repr__(self) -> str:
        return f"UnitItem(uuid={self.uuid!r}, status={self.status!r})"


class Cancellation(Record):
    """Why and when a booking was cancelled."""

    refund: Text = UNSET
    reason: Text = UNSET
    utc_cancelled_at: Instant = UNSET


class BookedAvailability(Record):
    """The departure inside a booking."""

    id: SomeId = UNSET
    local_date_time_start: Instant = UNSET
    local_date_time_end: Instant = UNSET
    all_day: Flag = UNSET
    available: NotKept = UNSET
    status: NotKept = UNSET
    vacancies: NotKept = UNSET
    capacity: NotKept = UNSET
    max_units: NotKept = UNSET
    utc_cutoff_at: NotKept = UNSET
    opening_hours: NotKept = UNSET
    unit_pricing: NotKept = UNSET
    pricing: NotKept = UNSET
    title: NotKept = UNSET
    short_description: NotKept = UNSET


class Booking(Sold, kw_only=True):
    """A reservation or a sale, known by its `uuid`; early services send neither `id` nor the utc fields (Q15)."""

    uuid: Named
    status: str
    id: SomeId = UNSET
    test_mode: Flag = UNSET
    utc_created_at: Instant = UNSET
    utc_updated_at: Instant = UNSET
    utc_expires_at: Instant = UNSET
    utc_confirmed_at: Instant = UNSET
    product_id: SomeId = UNSET
    product: HydratedProduct | UnsetType | None = UNSET
    option_id: SomeId = UNSET
    option: NotKept = UNSET
    cancellable: Flag = UNSET
    cancellation: Cancellation | UnsetType | None = UNSET
    freesale: Flag = UNSET
    availability_id: SomeId = UNSET
    availability: BookedAvailability | UnsetType | None = UNSET
    notes: Text = UNSET
    delivery_methods: NotKept = UNSET
    voucher: NotKept = UNSET
    unit_items: list[UnitItem] | UnsetType | None = UNSET

    def __repr__(self) -> str:
        return f"Booking(uuid={self.uuid!r}, status={self.status!r})"


class Capability(Record):
    """One capability a service offers."""

    id: Id
    revision: Count = UNSET
    required: Flag = UNSET
    dependencies: Texts = UNSET
    docs: Text = UNSET


class Subscription(Struct, frozen=True, kw_only=True):
    """A webhook subscription. `headers` are secrets and not shown by `repr`; most services do not send them back."""

    id: str
    url: str
    notification_types: tuple[str, ...] = ()
    headers: dict[str, str] | UnsetType = UNSET

    def __repr__(self) -> str:
        return f"Subscription(id={self.id!r}, url={self.url!r}, notification_types={self.notification_types!r})"
