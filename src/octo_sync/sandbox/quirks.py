"""The quirks a server can show: each named, with its default, one sentence, and what it does to an answer's objects.

A new quirk is an entry of CATALOGUE here (with `edits` or `shape` where it changes what is shown), a row in README.md, a
function of its name in tests/sandbox/test_quirks.py, and a case in tests/flows/test_switches.py.
"""

# ruff: noqa: E501, FBT003 - the catalogue reads as a table, one switch and its default per line

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from octo_sync.sandbox import edits
from octo_sync.sandbox.errors import bad_request

Json = dict[str, Any]
_CONTENT_KEYS = ("features", "faqs", "media", "locations", "categoryLabels", "commentary")
_ID_KEYS = frozenset({"id", "productId", "optionId", "unitId", "extraId", "availabilityId"})


@dataclasses.dataclass(frozen=True, slots=True)
class Quirk:
    """One switch. `default` is what a faithful service does."""

    name: str
    default: object
    summary: str
    source: str = ""
    choices: tuple[object, ...] = ()
    shape: Callable[[Json], object] | None = None
    """What it does to each object of an answer, the inner ones first."""
    edits: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The switches of `edits` that it stands for, with their values."""


def is_booking(row: Json) -> bool:
    """Whether an object of an answer is a booking."""
    return "unitItems" in row and "uuid" in row


def is_slot(row: Json) -> bool:
    """Whether an object of an answer is an availability or a day of a calendar."""
    return "status" in row and "openingHours" in row


def _without(*paths: str) -> Json:
    return {"fields_dropped": paths}


def _hours_as_object(row: Json) -> None:
    hours = row.get("openingHours")
    if isinstance(hours, list):
        row["openingHours"] = hours[0] if hours else {}


def _ids_as_numbers(row: Json) -> None:
    for key in _ID_KEYS & row.keys():
        if isinstance(row[key], str) and row[key].isdigit() and not row[key].startswith("0"):
            row[key] = int(row[key])


def _uuid_uppercase(row: Json) -> None:
    if is_booking(row):
        row["uuid"] = row["uuid"].upper()


def _zero_capacity(row: Json) -> None:
    if is_slot(row) and row["status"] == "SOLD_OUT" and row.get("capacity") is not None:
        row["capacity"] = 0


def _unknown(row: Json) -> None:
    if is_booking(row) and row["status"] == "REDEEMED" and row["uuid"][0] in "01234567":
        row["status"] = "NOSHOW"
    if row.get("type") in {"SENIOR", "OTHER", "YOUTH"} and "restrictions" in row:
        row["type"] = "VIP"
    if "deliveryFormats" in row:
        row["deliveryFormats"] = [*row["deliveryFormats"], "HTML_URL"]


def _old_content(row: Json) -> None:
    if "features" not in row or "title" not in row:
        return
    features = row["features"] or []

    def of(kind: str) -> list[str]:
        return [feature["shortDescription"] for feature in features if feature["type"] == kind]

    media = row.get("media") or []
    places = row.get("locations") or []
    for key in _CONTENT_KEYS:
        row.pop(key, None)
    row["titlePlural"] = f"{row['title']}s"
    if "restrictions" in row and "type" in row:
        return
    row |= {
        "country": None,
        "location": places[0]["title"] if places else None,
        "subtitle": row.get("shortDescription"),
        "highlights": of("HIGHLIGHT"),
        "inclusions": of("INCLUSION"),
        "exclusions": of("EXCLUSION"),
        "bookingTerms": None,
        "cancellationPolicy": "; ".join(of("CANCELLATION_TERM")) or None,
        "coverImageUrl": media[0]["src"] if media else None,
        "galleryImages": [],
        "categories": [],
        "itinerary": [],
    }


CATALOGUE: tuple[Quirk, ...] = (
    Quirk("rate_limit_per_minute", None, "Requests per minute before 429.", "Q1"),
    Quirk("rate_limit_style", "octo", "octo: OCTO-RateLimit-* headers, and bookings are not counted. Others: Retry-After in seconds or as a date; the last two add such headers.", "Q1", ("octo", "seconds", "date", "ratelimit", "x-ratelimit")),
    Quirk("block_after_4xx", None, "After this many 4xx answers within a minute every request is 429 for a minute.", "Q2"),
    Quirk("list_cap_100", False, "GET lists silently stop after their first 100 rows.", "Q3"),
    Quirk("capability_header_hangs_on_products", False, "A non-empty Octo-Capabilities header on GET /products never gets an answer.", "Q4"),
    Quirk("capability_spelling", "any", "Which spelling of a capability works; the other is silently ignored.", "Q5", ("any", "prefixed", "short")),
    Quirk("no_capability_echo", False, "Answers carry no Octo-Capabilities header.", "Q6"),
    Quirk("always_on", [], "Capabilities that are active whether asked for or not.", "Q6"),
    Quirk("supplier_path_prefix", False, "Only paths below /suppliers/{id} exist.", "Q7"),
    Quirk("booking_date_is_creation", False, "localDate filters of GET /bookings mean the creation date in UTC.", "Q9"),
    Quirk("cancelled_not_listed", False, "GET /bookings leaves cancelled bookings out; their own address shows them.", "2.2"),
    Quirk("lapsed_holds_unreadable", False, "Lapsed holds stay listed; their own address answers INVALID_BOOKING_UUID.", "3.2"),
    Quirk("unit_items_keep_on_hold", False, "Unit items are shown ON_HOLD whatever became of the booking.", "Q13", edits={"fields_set": {"booking.unitItems.status": "ON_HOLD"}}),
    Quirk("dehydrated_bookings", False, "Bookings lack product, option and unit.", "Q15", edits=_without("booking.product", "booking.option", "booking.unitItems.unit")),
    Quirk("closed_days_omitted", False, "Availability and calendar leave CLOSED rows out.", "Q17"),
    Quirk("past_dates_empty", False, "Dates before today at the venue have no availability.", "Q18"),
    Quirk("range_limit_days", None, "Longest date range of an availability or calendar request in days; one year when null.", "Q18"),
    Quirk("horizon_days", None, "Availability ends this many days after today at the venue.", "Q18"),
    Quirk("availability_days_zone", None, "Dates of POST /availability mean days in this time zone, such as UTC, instead of the venue's.", "1.4"),
    Quirk("update_with_availability_ids", False, "AVAILABILITY_UPDATE data is productId, optionId, availabilityIds.", "Q19"),
    Quirk("update_without_dates", False, "AVAILABILITY_UPDATE data is productId alone.", "Q19"),
    Quirk("availability_id_style", None, "How availability ids look; each product's own style when null.", "Q20", (None, "iso", "date", "pipe", "compact")),
    Quirk("no_calendar", False, "POST /availability/calendar is 404.", "Q22"),
    Quirk("no_capabilities_endpoint", False, "GET /capabilities is 404.", "Q23"),
    Quirk("no_patch", False, "PATCH /bookings/{uuid} is 404.", "Q23"),
    Quirk("no_extend", False, "POST /bookings/{uuid}/extend is 404.", "Q23"),
    Quirk("opening_hours_as_object", False, "openingHours is one object instead of an array.", "Q24", shape=_hours_as_object),
    Quirk("ids_as_numbers", False, "Ids made of digits are JSON numbers.", "Q25", shape=_ids_as_numbers),
    Quirk("vacancies_omitted", False, "Availability has no vacancies and no capacity.", "Q26", edits=_without("availability.vacancies", "availability.capacity", "calendar.vacancies", "calendar.capacity")),
    Quirk("capacity_zero_when_sold_out", False, "A sold-out slot shows capacity 0.", "Q26", shape=_zero_capacity),
    Quirk("error_style", "octo", "How errors look: 403 for bad tokens, plain-text 404, or 422.", "Q28", ("octo", "ventrata", "plain404", "422")),
    Quirk("create_path_typo_only", False, "Subscriptions are created at /notifications/subcriptions only.", "Q30"),
    Quirk("subscription_200", False, "Creating and deleting a subscription answer 200.", "Q31"),
    Quirk("subscription_id_key", "id", "The key a subscription's id is under.", "Q31", ("id", "subscriptionId")),
    Quirk("subscription_headers_shown", False, "Subscription answers show their headers.", "Q31"),
    Quirk("subscriptions_paged", None, "GET /notifications/subscriptions shows this many per ?page=, with a Link header.", "Q31"),
    Quirk("unknown_enums", False, "Values outside the specification appear: NOSHOW, HTML_URL, VIP.", "Q34", shape=_unknown),
    Quirk("ventrata_content", False, "The content capability shows the older fields (subtitle, highlights, inclusions...).", "Q35", shape=_old_content),
    Quirk("available_languages_header", "Octo-Available-Languages", "Name of the header that lists the languages.", "Q35", ("Octo-Available-Languages", "Available-Languages")),
    Quirk("test_bookings_in_feed", True, "Test bookings appear in lists and notifications; when false only with Octo-Env: test.", "Q36"),
    Quirk("trailing_slash_redirect", False, "A path with a trailing slash is redirected to the one without.", "Q37"),
    Quirk("option_bare_400", [], "Pairs 'productId/optionId' whose availability is a bare 400 without a body.", "Q38"),
    Quirk("ignored_capability", [], "Capabilities that are silently ignored.", "Q5"),
    Quirk("absent_capability", [], "Capabilities that the service lacks: ignored, not listed by GET /capabilities; without notifications their routes are 404.", "5"),
    Quirk("no_authentication", False, "Any token is accepted, also none; an unknown one sees every booking.", "1.3"),
    Quirk("product_id_suffix", "", "Every product's id ends with this, wherever it is shown or taken."),
    Quirk("cancelled_hold_is_expired", False, "Cancelling a hold makes it EXPIRED, with a cancellation.", "3.2"),
    Quirk("uuid_uppercase", False, "Bookings have their uuids in upper case; either case is taken.", shape=_uuid_uppercase),
    Quirk("early_bookings_without_id", False, "Bookings lack id, utcCreatedAt, utcUpdatedAt, product and option.", "3", edits=_without("booking.id", "booking.utcCreatedAt", "booking.utcUpdatedAt", "booking.product", "booking.option")),
    Quirk("patch_drops_headers", False, "Updating a subscription without headers removes its headers.", "brief 2"),
    Quirk("hold_expiry_notifies", False, "A hold that lapses sends BOOKING_UPDATE.", "5"),
    Quirk("client_update_notifies", False, "PATCH and extend by the client send BOOKING_UPDATE.", "5"),
    Quirk("delivery_extra_fields", False, "Deliveries carry id and utcCreatedAt beside the envelope.", "5"),
    Quirk("fields_dropped", [], "Paths of fields that answers leave out."),
    Quirk("fields_moved", {}, "Path -> the field's new name; with a dot it is wrapped in an object."),
    Quirk("fields_set", {}, "Path -> the value that answers show there, whether the field exists or not."),
    Quirk("entries_doubled", [], "Paths of lists whose first entry stands there twice."),
)  # fmt: skip

BY_NAME = {quirk.name: quirk for quirk in CATALOGUE}
_TAKES = {bool: "true or false", list: "a list", dict: "an object", str: "a text"}


class Quirks:
    """The switches as they stand."""

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values: dict[str, Any] = {quirk.name: quirk.default for quirk in CATALOGUE}
        self.update(values or {})

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - each switch has its own type
        return self._values[name]

    def values(self) -> dict[str, Any]:
        """All switches with their values."""
        return dict(self._values)

    def update(self, values: Mapping[str, object]) -> None:
        """Set some switches.

        Raises:
            OctoError: for an unknown name or a value outside the choices.
        """
        for name, value in values.items():
            quirk = BY_NAME.get(name)
            if quirk is None:
                raise bad_request(f"There is no quirk '{name}'.")
            if quirk.choices and value not in quirk.choices:
                raise bad_request(f"Quirk '{name}' takes one of {list(quirk.choices)}.")
            for kind, words in _TAKES.items():
                if isinstance(quirk.default, kind) and not isinstance(value, kind):
                    raise bad_request(f"Quirk '{name}' takes {words}.")
            if name in edits.NAMES and isinstance(value, list | dict):
                for path in value:
                    edits.parsed(path)
        self._values.update(values)

    def reset(self) -> None:
        """Back to a faithful service."""
        self._values = {quirk.name: quirk.default for quirk in CATALOGUE}

    def active(self) -> dict[str, object]:
        """The switches that differ from their defaults."""
        return {name: value for name, value in self._values.items() if value != BY_NAME[name].default}
