"""Quirks that change the shape of an answer, applied to the finished JSON."""

from collections.abc import Callable
from typing import Any

import msgspec

from octo_sync.sandbox import edits
from octo_sync.sandbox.messages import JSON, Answer
from octo_sync.sandbox.quirks import Quirks

Json = dict[str, Any]
_ID_KEYS = frozenset({"id", "productId", "optionId", "unitId", "extraId", "availabilityId"})
_SHAPING = (
    "unit_items_keep_on_hold",
    "dehydrated_bookings",
    "closed_days_omitted",
    "opening_hours_as_object",
    "ids_as_numbers",
    "vacancies_omitted",
    "capacity_zero_when_sold_out",
    "unknown_enums",
    "ventrata_content",
    "early_bookings_without_id",
)
_CAP = 100
_CONTENT_KEYS = ("features", "faqs", "media", "locations", "categoryLabels", "commentary")


def shaped(answer: Answer, quirks: Quirks, method: str, path: str) -> Answer:
    """The answer as the active quirks would have it."""
    if answer.kind != JSON or answer.status >= 300 or path.startswith("/notifications"):  # noqa: PLR2004
        return answer
    capped = quirks["list_cap_100"] and method == "GET" and answer.body.startswith(b"[")
    active = [name for name in _SHAPING if quirks[name]]
    suffix = quirks["product_id_suffix"]
    edited = any(quirks[name] for name in edits.NAMES)
    if not (capped or active or edited or suffix):
        return answer
    value = msgspec.json.decode(answer.body)
    if capped:
        value = value[:_CAP]
    for name in active:
        value = _STEPS[name](value)
    if suffix:
        _everywhere(value, lambda row: _with_suffix(row, suffix))
    if edited:
        edits.apply(value, quirks)
    answer.body = msgspec.json.encode(value)
    return answer


def _everywhere(value: Any, change: Callable[[Json], None]) -> Any:  # noqa: ANN401 - any JSON
    """Apply a change to every object, innermost first."""
    if isinstance(value, dict):
        for inner in value.values():
            _everywhere(inner, change)
        change(value)
    elif isinstance(value, list):
        for inner in value:
            _everywhere(inner, change)
    return value


def _is_booking(row: Json) -> bool:
    return "unitItems" in row and "uuid" in row


def _is_slot(row: Json) -> bool:
    return "status" in row and "openingHours" in row


def _keep_on_hold(row: Json) -> None:
    if _is_booking(row):
        for item in row["unitItems"]:
            item["status"] = "ON_HOLD"


def _dehydrate(row: Json) -> None:
    if _is_booking(row):
        row.pop("product", None)
        row.pop("option", None)
        for item in row["unitItems"]:
            item.pop("unit", None)


def _early(row: Json) -> None:
    if _is_booking(row):
        for key in ("id", "utcCreatedAt", "utcUpdatedAt", "product", "option"):
            row.pop(key, None)


def _hours_as_object(row: Json) -> None:
    hours = row.get("openingHours")
    if isinstance(hours, list):
        row["openingHours"] = hours[0] if hours else {}


def _ids_as_numbers(row: Json) -> None:
    for key in _ID_KEYS & row.keys():
        if isinstance(row[key], str) and row[key].isdigit() and not row[key].startswith("0"):
            row[key] = int(row[key])


def _with_suffix(row: Json, suffix: str) -> None:
    if "availabilityType" in row:
        row["id"] = f"{row['id']}{suffix}"
    if _is_booking(row):
        row["productId"] = f"{row['productId']}{suffix}"


def _without_vacancies(row: Json) -> None:
    if _is_slot(row):
        row.pop("vacancies", None)
        row.pop("capacity", None)


def _zero_capacity(row: Json) -> None:
    if _is_slot(row) and row["status"] == "SOLD_OUT" and row.get("capacity") is not None:
        row["capacity"] = 0


def _unknown(row: Json) -> None:
    if _is_booking(row) and row["status"] == "REDEEMED" and row["uuid"][0] in "01234567":
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


def _without_closed(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return [row for row in value if not (isinstance(row, dict) and _is_slot(row) and row["status"] == "CLOSED")]
    return value


def _step(change: Callable[[Json], None]) -> Callable[[Any], Any]:
    return lambda value: _everywhere(value, change)


_STEPS: dict[str, Callable[[Any], Any]] = {
    "unit_items_keep_on_hold": _step(_keep_on_hold),
    "dehydrated_bookings": _step(_dehydrate),
    "closed_days_omitted": _without_closed,
    "opening_hours_as_object": _step(_hours_as_object),
    "ids_as_numbers": _step(_ids_as_numbers),
    "vacancies_omitted": _step(_without_vacancies),
    "capacity_zero_when_sold_out": _step(_zero_capacity),
    "unknown_enums": _step(_unknown),
    "ventrata_content": _step(_old_content),
    "early_bookings_without_id": _step(_early),
}
