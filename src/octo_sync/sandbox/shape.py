"""Quirks that change the shape of an answer, applied to the finished JSON."""

from collections.abc import Callable

import msgspec

from octo_sync.sandbox import edits
from octo_sync.sandbox.messages import JSON, Answer, Call
from octo_sync.sandbox.quirks import CATALOGUE, Json, Quirks, is_booking, is_slot

_CAP = 100


def shaped(answer: Answer, quirks: Quirks, call: Call) -> Answer:
    """The answer as the active quirks would have it."""
    if answer.kind != JSON or answer.status >= 300 or call.path.startswith("/notifications"):  # noqa: PLR2004
        return answer
    listed = answer.body.startswith(b"[")
    capped = listed and call.method == "GET" and quirks["list_cap_100"]
    opened = listed and quirks["closed_days_omitted"]
    active = [quirk for quirk in CATALOGUE if quirks[quirk.name]]
    changes = [quirk.shape for quirk in active if quirk.shape is not None]
    suffix = quirks["product_id_suffix"]
    edited = [quirk.edits for quirk in active if quirk.edits]
    edited += [quirks.values()] if any(quirks[name] for name in edits.NAMES) else []
    if not (capped or opened or changes or edited or suffix):
        return answer
    value = msgspec.json.decode(answer.body)
    if capped:
        value = value[:_CAP]
    if opened:
        value = [row for row in value if not (is_slot(row) and row["status"] == "CLOSED")]
    for change in changes:
        _everywhere(value, change)
    if suffix:
        _everywhere(value, lambda row: _with_suffix(row, suffix))
    for asked in edited:
        edits.apply(value, asked)
    answer.body = msgspec.json.encode(value)
    return answer


def _everywhere(value: object, change: Callable[[Json], object]) -> None:
    """Apply a change to every object, innermost first."""
    if isinstance(value, dict):
        for inner in value.values():
            _everywhere(inner, change)
        change(value)
    elif isinstance(value, list):
        for inner in value:
            _everywhere(inner, change)


def _with_suffix(row: Json, suffix: str) -> None:
    if "availabilityType" in row:
        row["id"] = f"{row['id']}{suffix}"
    if is_booking(row):
        row["productId"] = f"{row['productId']}{suffix}"
