"""Availability: departures and open days of an option, and their prices. From `POST /availability`."""

from octo_sync.octo.records import Availability
from octo_sync.tables.base import CONNECTION_ID, column, local, moment, money, oddities
from octo_sync.tables.reading import ODDITIES, struct
from octo_sync.tables.schema import Enum, Merge, Noun, Table

NOUN = Noun(
    name="availability",
    record=struct(Availability, ODDITIES),
    enums=(Enum("status", frozenset({"AVAILABLE", "FREESALE", "SOLD_OUT", "LIMITED", "CLOSED"}), "[r.status]"),),
)

_KEY = ("connection_id", "product_id", "option_id", "availability_id")
_IDS = (
    CONNECTION_ID,
    column("product_id", "text", "product_id", "OCTO product id."),
    column("option_id", "text", "option_id", "OCTO option id."),
    column("availability_id", "text", "r.id", "OCTO availability id; unique inside its option only."),
)

AVAILABILITY = Table(
    full_name="core.availability",
    description="Departures and open days as the service offers them to this token.",
    grain="One departure (START_TIME) or one day (OPENING_HOURS) of an option.",
    noun="availability",
    source="staged_availability r",
    key=_KEY,
    scope=("connection_id", "product_id", "option_id"),
    content='hash(has_pricing, r."unitPricing", r.pricing, r.oddities)',
    columns=(
        *_IDS,
        column("local_start_at", "timestamp", local('r."localDateTimeStart"'), "Start, wall clock at the venue."),
        column("local_end_at", "timestamp", local('r."localDateTimeEnd"'), "End, wall clock at the venue."),
        column("local_date", "date", 'left(r."localDateTimeStart", 10)::date', "Travel date at the venue."),
        column("time_zone", "text", "time_zone", "IANA time zone of the product."),
        moment("utc_start_at", 'r."localDateTimeStart"', "Start as an instant.", time_zone="time_zone"),
        moment("utc_cutoff_at", 'r."utcCutoffAt"', "Until when a booking must be confirmed.", fades=True),
        column("is_all_day", "boolean", 'r."allDay"', "Whether it spans the whole day."),
        column("status", "text", "r.status", "AVAILABLE, LIMITED, FREESALE, SOLD_OUT, CLOSED or a newer one."),
        column("is_available", "boolean", "r.available", "Whether it can be booked now."),
        column("vacancies", "bigint", "r.vacancies", "Places left; null when unlimited or not told.", fades=True),
        column("capacity", "bigint", "r.capacity", "Places in all; null when unlimited or not told.", fades=True),
        column("max_units", "bigint", 'r."maxUnits"', "Most units in one booking; null when not limited.", fades=True),
        column(
            "opening_hours",
            "text",
            "case when r.\"openingHours\"::varchar = '{}' then '[]' "
            "when json_type(r.\"openingHours\") = 'OBJECT' then '[' || r.\"openingHours\"::varchar || ']' "
            "else nullif(r.\"openingHours\"::varchar, 'null') end",
            "JSON array of {from, to}, HH:MM at the venue.",
        ),
        oddities(),
    ),
)

AVAILABILITY_PRICES = Table(
    full_name="core.availability_prices",
    description="Prices of a departure or day (capability pricing).",
    grain="One unit of one departure; unit_id is '' where the price is per booking.",
    noun="availability",
    source=(
        '(select connection_id, product_id, option_id, has_pricing, r.id, r."localDateTimeStart", unnest('
        'case when r.pricing is null then coalesce(r."unitPricing", []) '
        'else list_append(coalesce(r."unitPricing", []), r.pricing) end) as price from staged_availability r) r'
    ),
    key=(*_KEY, "unit_id", "currency"),
    merge=Merge.REPLACE,
    at="unitPricing",
    at_own=("unit_id", "pricing"),
    unsaid=(
        "select connection_id, product_id, option_id, r.id as availability_id from staged_availability r "
        'where has_pricing and r."unitPricing" is null and r.pricing is null'
    ),
    parent="core.availability",
    parent_key=_KEY,
    capability="pricing",
    columns=(
        *_IDS,
        column("unit_id", "text", "coalesce(price.\"unitId\", '')", "OCTO unit id; '' = per booking."),
        column("local_date", "date", 'left(r."localDateTimeStart", 10)::date', "Travel date at the venue."),
        *money("price", capability=""),
    ),
)
