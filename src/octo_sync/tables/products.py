"""Products with their options, units, prices, extras and texts. From `GET /products` and `GET /products/{id}`."""

from octo_sync.octo.records import Product
from octo_sync.tables.base import CONNECTION_ID, column, document, money, oddities
from octo_sync.tables.reading import ODDITIES, struct
from octo_sync.tables.schema import Column, Enum, Merge, Noun, Table

NOUN = Noun(
    name="products",
    record=struct(Product, ODDITIES),
    enums=(
        Enum("availabilityType", frozenset({"START_TIME", "OPENING_HOURS"}), '[r."availabilityType"]'),
        Enum("redemptionMethod", frozenset({"DIGITAL", "PRINT", "MANIFEST"}), '[r."redemptionMethod"]'),
        Enum(
            "deliveryFormats",
            frozenset({"PDF_URL", "QRCODE", "CODE128", "PKPASS_URL", "AZTECCODE"}),
            'from_json(r."deliveryFormats", \'["VARCHAR"]\')',
        ),
        Enum(
            "options.units.type",
            frozenset({"ADULT", "YOUTH", "CHILD", "INFANT", "FAMILY", "SENIOR", "STUDENT", "MILITARY", "OTHER"}),
            'flatten(list_transform(r.options, lambda o: list_transform(o.units, lambda u: u."type")))',
        ),
    ),
    scope=(
        "select distinct connection_id, r.id as product_id, resource, subject_key, request_seq, "
        "has_pricing, has_content, has_extras from staged_products r where is_primary"
    ),
)

_PRIMARY = "(select * from staged_products where is_primary) r"
_OPTIONS = '(select *, o.id as "oid" from (select *, unnest(options) as o from staged_products where is_primary)) r'
_UNITS = f"(select *, unnest(o.units) as u from {_OPTIONS}) r"
_PRODUCT_ID = column("product_id", "text", "r.id", "OCTO product id.")
_IDS = (CONNECTION_ID, _PRODUCT_ID, column("option_id", "text", "o.id", "OCTO option id, unique inside its product."))


def _called(it: str) -> tuple[Column, ...]:
    """What a product, an option, a unit or an extra is called: in the record of this alias."""
    return (
        column("internal_name", "text", f'{it}."internalName"', "The supplier's own name for it."),
        column("title", "text", f"{it}.title", "Name for travellers (capability content).", capability="content"),
        column("reference", "text", f"{it}.reference", "The supplier's reference."),
    )


PRODUCTS = Table(
    full_name="core.products",
    description="What the supplier sells.",
    grain="One product of one connection.",
    noun="products",
    source=_PRIMARY,
    key=("connection_id", "product_id"),
    scope=("connection_id",),
    own_subject="product",
    cascade=("core.options", "core.units", "core.extras", "core.product_content", "core.availability"),
    content="hash(r.oddities)",
    columns=(
        CONNECTION_ID,
        _PRODUCT_ID,
        *_called("r"),
        column("locale", "text", "r.locale", "Language of the texts, BCP 47."),
        column("time_zone", "text", 'r."timeZone"', "IANA time zone of the venue."),
        column("availability_type", "text", 'r."availabilityType"', "START_TIME or OPENING_HOURS."),
        column("availability_required", "boolean", 'r."availabilityRequired"', "Whether a booking needs a slot."),
        column("allow_freesale", "boolean", 'r."allowFreesale"', "Whether it can be booked without a slot."),
        column("instant_confirmation", "boolean", 'r."instantConfirmation"', "Whether confirming is immediate."),
        column("instant_delivery", "boolean", 'r."instantDelivery"', "Whether tickets come at once."),
        column("redemption_method", "text", 'r."redemptionMethod"', "DIGITAL, PRINT or MANIFEST."),
        document("delivery_formats", 'r."deliveryFormats"', "JSON array of ticket formats."),
        document("delivery_methods", 'r."deliveryMethods"', "JSON array of VOUCHER, TICKET."),
        column(
            "default_currency", "text", 'r."defaultCurrency"', "ISO 4217 (capability pricing).", capability="pricing"
        ),
        document(
            "available_currencies",
            'r."availableCurrencies"',
            "JSON array of ISO 4217 codes (capability pricing).",
            capability="pricing",
        ),
        column("pricing_per", "text", 'r."pricingPer"', "UNIT or BOOKING.", capability="pricing"),
        oddities(),
    ),
)

OPTIONS = Table(
    full_name="core.options",
    description="The variants of a product.",
    grain="One option of one product.",
    noun="products",
    source=_OPTIONS,
    at="options",
    key=("connection_id", "product_id", "option_id"),
    scope=("connection_id", "product_id"),
    cascade=("core.units", "core.extras", "core.product_content", "core.availability"),
    columns=(
        *_IDS,
        column("is_default", "boolean", 'o."default"', "Whether it is the default option."),
        *_called("o"),
        document("local_start_times", 'o."availabilityLocalStartTimes"', "JSON array of HH:MM at the venue."),
        column("cancellation_cutoff", "text", 'o."cancellationCutoff"', "Free text, e.g. 24 hours."),
        column("cancellation_cutoff_amount", "bigint", 'o."cancellationCutoffAmount"', "The number in it."),
        column("cancellation_cutoff_unit", "text", 'o."cancellationCutoffUnit"', "hour, minute or day."),
        column("min_units", "bigint", 'o.restrictions."minUnits"', "Fewest units in one booking."),
        column("max_units", "bigint", 'o.restrictions."maxUnits"', "Most units in one booking."),
    ),
)

UNITS = Table(
    full_name="core.units",
    description="The ticket types of an option.",
    grain="One unit of one option.",
    noun="products",
    source=_UNITS,
    key=("connection_id", "product_id", "option_id", "unit_id"),
    scope=("connection_id", "product_id"),
    at="options.units",
    unsaid=f"select connection_id, r.id as product_id, o.id as option_id from {_OPTIONS} where o.units is null",
    columns=(
        *_IDS,
        column("unit_id", "text", "u.id", "OCTO unit id, unique inside its option."),
        column("unit_type", "text", 'u."type"', "ADULT, CHILD, … or a newer one."),
        *_called("u"),
        column("pax_count", "bigint", 'u.restrictions."paxCount"', "People one unit admits."),
        column("min_age", "bigint", 'u.restrictions."minAge"', "Youngest age."),
        column("max_age", "bigint", 'u.restrictions."maxAge"', "Oldest age."),
        column("min_quantity", "bigint", 'u.restrictions."minQuantity"', "Fewest in one booking."),
        column("max_quantity", "bigint", 'u.restrictions."maxQuantity"', "Most in one booking."),
        document("accompanied_by", 'u.restrictions."accompaniedBy"', "JSON array of unit ids that must come too."),
        column("id_required", "boolean", 'u.restrictions."idRequired"', "Whether an identity card is asked for."),
    ),
)

_PRICE_KEY = ("connection_id", "product_id", "option_id", "unit_id", "currency")
UNIT_PRICES = Table(
    full_name="core.unit_prices",
    description="The price from which a unit or option is sold, and what it was before (capability pricing).",
    grain="One version of one currency's price of one unit; unit_id is '' where the price is per booking.",
    noun="products",
    source=(
        f'(select *, unnest(u."pricingFrom") as price, u.id as "uid" from {_UNITS} union all by name '
        f'select *, unnest(o."pricingFrom") as price, \'\' as "uid" from {_OPTIONS}) r'
    ),
    key=(*_PRICE_KEY, "valid_from_utc"),
    merge=Merge.VERSIONS,
    at="options.units.pricingFrom",
    at_own=("unit_id", "options.pricingFrom"),
    unsaid=(
        "select connection_id, r.id as product_id, o.id as option_id, '' as unit_id "
        f'from {_OPTIONS} where has_pricing and o."pricingFrom" is null union all '
        f'select connection_id, r.id, o.id, u.id from {_UNITS} where has_pricing and u."pricingFrom" is null'
    ),
    scope=("connection_id", "product_id"),
    capability="pricing",
    columns=(
        *_IDS,
        column("unit_id", "text", '"uid"', "OCTO unit id; '' = per booking."),
        *money("price", capability=""),
        Column("valid_from_utc", "timestamptz", "Since when this copy said so.", "landing_now()", tracked=False),
        Column(
            "valid_to_utc", "timestamptz", "Until when, that instant not included; null = still.", "null", tracked=False
        ),
        Column("is_current", "boolean", "Whether it is the price now.", "true", tracked=False),
    ),
)

_EXTRAS = (
    f"(select *, unnest(o.extras) as e, '' as \"uid\" from {_OPTIONS} union all by name "
    f'select * exclude (u), unnest(u.extras) as e, u.id as "uid" from {_UNITS}) r'
)
EXTRAS = Table(
    full_name="core.extras",
    description="Addons that can be bought with a unit or an option (capability extras).",
    grain="One extra of one unit; unit_id is '' where it belongs to the option.",
    noun="products",
    source=_EXTRAS,
    key=("connection_id", "product_id", "option_id", "unit_id", "extra_id"),
    scope=("connection_id", "product_id"),
    capability="extras",
    at="options.units.extras",
    at_own=("unit_id", "options.extras"),
    unsaid=(
        "select connection_id, r.id as product_id, o.id as option_id, '' as unit_id "
        f"from {_OPTIONS} where has_extras and o.extras is null union all "
        f"select connection_id, r.id, o.id, u.id from {_UNITS} where has_extras and u.extras is null"
    ),
    columns=(
        *_IDS,
        column("unit_id", "text", '"uid"', "OCTO unit id; '' = of the option."),
        column("extra_id", "text", "e.id", "Extra id."),
        *_called("e"),
        column("min_quantity", "bigint", 'e.restrictions."minQuantity"', "Fewest in one booking."),
        column("max_quantity", "bigint", 'e.restrictions."maxQuantity"', "Most in one booking."),
        column("is_required", "boolean", "e.restrictions.required", "Whether it must be bought."),
    ),
)

_CONTENT_FIELDS = 'title, "shortDescription", description, features, faqs, media, locations, "categoryLabels"'


def _content_half(prefix: str, option: str) -> str:
    fields = ", ".join(f"{prefix}.{f}" for f in _CONTENT_FIELDS.split(", "))
    unnested = "staged_products r" if prefix == "r" else "(select *, unnest(options) as o from staged_products) r"
    return f'select connection_id, language, has_content, r.id as "pid", {option} as "oid", {fields} from {unnested}'


PRODUCT_CONTENT = Table(
    full_name="core.product_content",
    description="Texts for travellers, as received (capability content); shapes of the JSON differ between services.",
    grain="One language of one product (option_id '') or option.",
    noun="products",
    source=f"({_content_half('r', chr(39) * 2)} union all by name {_content_half('o', 'o.id')})",
    key=("connection_id", "product_id", "option_id", "language"),
    scope=("connection_id", "product_id"),
    capability="content",
    absent_is_gone=True,
    # Texts of a language whose own answer lacked the capability stay.
    told=(
        f"exists (select 1 from ({NOUN.scope}) p where p.connection_id = t.connection_id and p.product_id = t.product_id "
        "and p.has_content) and not exists (select 1 from staged_products s where s.connection_id = t.connection_id "
        "and s.id = t.product_id and s.language = t.language and not s.has_content)"
    ),
    columns=(
        CONNECTION_ID,
        column("product_id", "text", '"pid"', "OCTO product id."),
        column("option_id", "text", '"oid"', "OCTO option id; '' = of the product."),
        column("language", "text", "language", "The language the service answered in."),
        column("title", "text", "title", "Name."),
        column("short_description", "text", '"shortDescription"', "One or two sentences."),
        column("description", "text", "description", "The long text."),
        document("features", "features", "JSON array of inclusions, highlights and the like."),
        document("faqs", "faqs", "JSON array of questions and answers."),
        document("media", "media", "JSON array of pictures and films."),
        document("locations", "locations", "JSON array of places."),
        document("category_labels", '"categoryLabels"', "JSON array of labels."),
    ),
)
