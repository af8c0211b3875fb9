"""Bookings with their unit items, extras and taxes; contacts go to the private file. From `GET /bookings`.

Everything here is as the service reported it: a booking of an unknown product lands with that product's id, and where a
service leaves out the hydrated unit, `unit_type` and `pax_count` stay null (marts look them up in `core.units`).
Longer than most modules, because it is a list of columns.
"""

from octo_sync.octo.records import Booking, Tax
from octo_sync.tables.base import CONNECTION_ID, amount, column, document, local, moment, money, oddities
from octo_sync.tables.reading import ODDITIES, struct
from octo_sync.tables.schema import Column, Enum, Merge, Noun, Table

_STATUSES = frozenset({"ON_HOLD", "CONFIRMED", "EXPIRED", "CANCELLED", "REDEEMED", "PENDING", "REJECTED"})
NOUN = Noun(
    name="bookings",
    record=struct(Booking, ODDITIES),
    enums=(
        Enum("status", _STATUSES, "[r.status]"),
        Enum("cancellation.refund", frozenset({"FULL", "PARTIAL", "NONE"}), "[r.cancellation.refund]"),
        Enum("unitItems.status", _STATUSES, 'list_transform(r."unitItems", lambda i: i.status)'),
    ),
    scope=(
        "select distinct connection_id, r.uuid as booking_uuid, has_pricing, has_content, has_extras from staged_bookings r"
    ),
    beside=(("payload_digest", "BIGINT"), ("contact_key", "VARCHAR")),
)

_ITEMS = '(select connection_id, has_extras, has_pricing, r.uuid, unnest(r."unitItems") as i from staged_bookings r) r'
_BOOKING_UUID = column("booking_uuid", "text", "r.uuid", "OCTO booking uuid.")
_START = 'r.availability."localDateTimeStart"'
_ZONE = "coalesce(r.product.\"timeZone\", 'UTC')"
_PAX = 'list_transform(r."unitItems", lambda x: x.unit.restrictions."paxCount")'


_TAX = (
    'case when r.pricing."includedTaxes" is null then null else '
    'coalesce(list_sum(list_transform(r.pricing."includedTaxes", lambda x: x.retail)), 0)::bigint end'
)
"""Tax is the sum over `includedTaxes`; no tax list means not told, an empty one means none."""

BOOKINGS = Table(
    full_name="core.bookings",
    description="Bookings that this token may see. No name, address or note of a person is in it.",
    grain="One booking of one connection.",
    noun="bookings",
    source="staged_bookings r",
    key=("connection_id", "booking_uuid"),
    scope=("connection_id",),
    own_subject="booking",
    final="t.status in ('CANCELLED', 'EXPIRED', 'REJECTED')",
    cascade=("core.booking_unit_items",),
    content=(
        'hash(has_pricing, has_extras, r."extraItems", r.pricing, list_transform(r."unitItems", '
        'lambda x: {u: x.uuid, e: x."extraItems", p: x.pricing}), r.oddities)'
    ),
    columns=(
        CONNECTION_ID,
        _BOOKING_UUID,
        column("booking_id", "text", "r.id", "OCTO booking id; null at early services."),
        column("status", "text", "r.status", "ON_HOLD, CONFIRMED, … or a newer one."),
        column("is_test", "boolean", 'coalesce(r."testMode", false)', "Whether it is a test booking."),
        column("supplier_reference", "text", 'r."supplierReference"', "The supplier's reference."),
        column("reseller_reference", "text", 'r."resellerReference"', "The reseller's reference."),
        column("product_id", "text", 'r."productId"', "OCTO product id."),
        column("option_id", "text", 'r."optionId"', "OCTO option id."),
        column(
            "availability_id",
            "text",
            'coalesce(r."availabilityId", r.availability.id)',
            "OCTO availability id; null for freesale.",
        ),
        column("local_start_at", "timestamp", local(_START), "Start of travel, wall clock at the venue."),
        column("local_date", "date", f"left({_START}, 10)::date", "Travel date at the venue."),
        column("time_zone", "text", 'r.product."timeZone"', "IANA time zone of the venue, where the service told it."),
        moment("utc_start_at", _START, "Start of travel as an instant.", time_zone=_ZONE),
        column("is_freesale", "boolean", "r.freesale", "Whether it was booked without a slot."),
        column("is_cancellable", "boolean", "r.cancellable", "Whether it can be cancelled now."),
        moment("utc_created_at", 'r."utcCreatedAt"', "When it was made."),
        moment("utc_updated_at", 'r."utcUpdatedAt"', "When it last changed, says the service."),
        moment("utc_expires_at", 'r."utcExpiresAt"', "When a hold lapses.", fades=True),
        moment("utc_confirmed_at", 'r."utcConfirmedAt"', "When it was confirmed.", fades=True),
        moment("utc_redeemed_at", 'r."utcRedeemedAt"', "When it was used.", fades=True),
        moment("utc_cancelled_at", 'r.cancellation."utcCancelledAt"', "When it was cancelled.", fades=True),
        column("cancellation_reason", "text", "r.cancellation.reason", "Why it was cancelled.", fades=True),
        column(
            "cancellation_refund", "text", "r.cancellation.refund", "FULL, PARTIAL, NONE or a newer one.", fades=True
        ),
        *money("r.pricing"),
        column("tax_minor", "bigint", _TAX, "Taxes included in the retail price, minor units.", capability="pricing"),
        column(
            "tax_amount",
            "numeric(18,4)",
            amount(f"({_TAX})", 'r.pricing."currencyPrecision"'),
            "Taxes included in the retail price, exact.",
            capability="pricing",
        ),
        column("unit_count", "bigint", 'len(r."unitItems")', "Tickets in it."),
        column(
            "pax_count",
            "bigint",
            f"case when list_contains({_PAX}, null) or len(list_filter({_PAX}, lambda x: x is null)) > 0 then null "
            f'when r."unitItems" is not null then coalesce(list_sum({_PAX}), 0)::bigint end',
            "People in it, 0 without a ticket; null where the service leaves the units out.",
        ),
        oddities(),
        column(
            "verified_at_utc",
            "timestamptz",
            "verified_at_utc",
            "When an answer last showed it changed; ops.coverage says when it was last verified unchanged.",
            tracked=False,
        ),
        column(
            "payload_digest",
            "bigint",
            "payload_digest",
            "Hash of the record that this row and its contacts were landed from; an equal one is not read again. "
            "Null: look at it anew.",
            tracked=False,
        ),
        column(
            "contact_key",
            "text",
            "contact_key",
            "Keyed hash of the lead contact's e-mail address, else telephone number: equal for the same guest, and says "
            "nothing else. Null: neither is known, kept, or no longer.",
            tracked=False,
        ),
    ),
)

_UNIT_ITEM_KEY = ("connection_id", "booking_uuid", "unit_item_uuid")
UNIT_ITEMS = Table(
    full_name="core.booking_unit_items",
    description="The tickets of a booking. Their status is as reported; the booking's status is the authoritative one.",
    grain="One ticket of one booking.",
    noun="bookings",
    source=_ITEMS,
    key=_UNIT_ITEM_KEY,
    scope=("connection_id", "booking_uuid"),
    absent_is_gone=True,
    at="unitItems",
    unsaid='select connection_id, r.uuid as booking_uuid from staged_bookings r where r."unitItems" is null',
    columns=(
        CONNECTION_ID,
        column("unit_item_uuid", "text", "i.uuid", "OCTO unit item uuid."),
        _BOOKING_UUID,
        column("unit_id", "text", 'i."unitId"', "OCTO unit id."),
        column("unit_type", "text", 'i.unit."type"', "ADULT, CHILD, …; null where the service leaves the unit out."),
        column("status", "text", "i.status", "Status of the ticket as reported."),
        column("supplier_reference", "text", 'i."supplierReference"', "The supplier's reference."),
        column("reseller_reference", "text", 'i."resellerReference"', "The reseller's reference."),
        moment("utc_redeemed_at", 'i."utcRedeemedAt"', "When it was used.", fades=True),
        column("pax_count", "bigint", 'i.unit.restrictions."paxCount"', "People it admits; null where not told."),
        *money("i.pricing", ("retail", "net")),
    ),
)

_UNTOLD_ITEMS = (
    "select t.connection_id, t.booking_uuid, t.unit_item_uuid from core.booking_unit_items t join staged_bookings s "
    'on s.connection_id = t.connection_id and s.uuid = t.booking_uuid where s."unitItems" is null'
)
"""The tickets of bookings whose answers say nothing about tickets."""

_EXTRA_ITEMS = (
    "(select connection_id, has_extras, has_pricing, r.uuid, '' as item, unnest(r.\"extraItems\") as e from staged_bookings r "
    f'union all select connection_id, has_extras, has_pricing, r.uuid, i.uuid, unnest(i."extraItems") from {_ITEMS})'
)
EXTRA_ITEMS = Table(
    full_name="core.booking_extra_items",
    description="Extras bought with a booking (capability extras).",
    grain="One extra of one ticket, or of the whole booking.",
    noun="bookings",
    source=(
        "(select connection_id, has_extras, has_pricing, uuid, item, coalesce(e.\"extraId\", e.id, '') as extra, "
        "try_cast(sum(coalesce(e.quantity, 1)) as bigint) as quantity, any_value(e.pricing.currency) as currency, "
        'any_value(e.pricing."currencyPrecision") as precision, sum(e.pricing.original)::bigint as original, '
        "sum(e.pricing.retail)::bigint as retail, sum(e.pricing.net)::bigint as net "
        f"from {_EXTRA_ITEMS} group by all) r"
    ),
    key=("connection_id", "booking_uuid", "unit_item_uuid", "extra_id"),
    merge=Merge.REPLACE,
    parent="core.bookings",
    parent_key=("connection_id", "booking_uuid"),
    capability="extras",
    at="unitItems.extraItems",
    at_own=("unit_item_uuid", "extraItems"),
    unsaid=(
        "select connection_id, r.uuid as booking_uuid, '' as unit_item_uuid from staged_bookings r "
        'where has_extras and r."extraItems" is null union all '
        f'select connection_id, r.uuid, i.uuid from {_ITEMS} where has_extras and i."extraItems" is null union all '
        f"{_UNTOLD_ITEMS}"
    ),
    present=('len(r."extraItems") > 0 or len(list_filter(r."unitItems", lambda i: len(i."extraItems") > 0)) > 0'),
    columns=(
        CONNECTION_ID,
        _BOOKING_UUID,
        column("unit_item_uuid", "text", "item", "OCTO unit item uuid; '' = of the booking."),
        column("extra_id", "text", "extra", "Extra id; '' where the service names none."),
        column("quantity", "bigint", "quantity", "How many; null beyond what a bigint holds."),
        *money(""),
    ),
)

TAXES = Table(
    full_name="core.booking_taxes",
    description="Taxes included in a booking's price (capability pricing).",
    grain="One tax name of one booking.",
    noun="bookings",
    source=(
        "(select connection_id, has_pricing, uuid, coalesce(t.name, '') as name, currency, precision, "
        "sum(t.original)::bigint as original, sum(t.retail)::bigint as retail, sum(t.net)::bigint as net "
        'from (select connection_id, has_pricing, r.uuid, r.pricing.currency, r.pricing."currencyPrecision" as precision, '
        f'unnest(r.pricing."includedTaxes"::{struct(Tax)}[]) as t from staged_bookings r) group by all) r'
    ),
    key=("connection_id", "booking_uuid", "name"),
    merge=Merge.REPLACE,
    parent="core.bookings",
    parent_key=("connection_id", "booking_uuid"),
    capability="pricing",
    at="pricing.includedTaxes",
    unsaid=(
        "select connection_id, r.uuid as booking_uuid from staged_bookings r "
        'where has_pricing and r.pricing."includedTaxes" is null'
    ),
    present='len(r.pricing."includedTaxes") > 0',
    columns=(
        CONNECTION_ID,
        _BOOKING_UUID,
        column("name", "text", "name", "Name of the tax."),
        *money("", capability="", what="The tax on the {} price"),
    ),
)

_PEOPLE = (
    "(select connection_id, r.uuid as booking, '' as item, r.contact as c, r.notes as remark from staged_bookings r "
    f"union all select connection_id, r.uuid, i.uuid, i.contact, null from {_ITEMS} where i.contact is not null)"
)
CONTACTS = Table(
    full_name="private.booking_contacts",
    description="Who booked and who travels: personal data, only in the private file.",
    grain="One contact: of the booking (unit_item_uuid '') or of one ticket.",
    noun="bookings",
    source=(
        f'(select * from {_PEOPLE} where coalesce(remark, c."fullName", c."firstName", c."lastName", '
        'c."emailAddress", c."phoneNumber", c.country, c."postalCode", c.notes) is not null)'
    ),
    key=("connection_id", "booking_uuid", "unit_item_uuid"),
    scope=("connection_id", "booking_uuid"),
    absent_is_gone=True,
    at="unitItems.contact",
    at_own=("unit_item_uuid", "contact"),
    # Who is not named any more, while the booking or the ticket is there.
    unsaid=(
        "select connection_id, r.uuid as booking_uuid, '' as unit_item_uuid from staged_bookings r union all "
        f"select connection_id, r.uuid, i.uuid from {_ITEMS} union all {_UNTOLD_ITEMS}"
    ),
    private=True,
    columns=(
        CONNECTION_ID,
        column("booking_uuid", "text", "booking", "OCTO booking uuid."),
        column("unit_item_uuid", "text", "item", "OCTO unit item uuid; '' = the lead contact of the booking."),
        column("full_name", "text", 'c."fullName"', "Full name."),
        column("first_name", "text", 'c."firstName"', "First name."),
        column("last_name", "text", 'c."lastName"', "Last name."),
        column("email_address", "text", 'c."emailAddress"', "E-mail address."),
        column("phone_number", "text", 'c."phoneNumber"', "Telephone number."),
        column("country", "text", "c.country", "Country code."),
        column("postal_code", "text", 'c."postalCode"', "Postal code."),
        document("locales", "c.locales", "JSON array of preferred languages."),
        column("notes", "text", "coalesce(remark, c.notes)", "Free-text notes."),
        Column(
            "erased_at_utc", "timestamptz", "When this person was forgotten; null otherwise.", "null", tracked=False
        ),
    ),
)
