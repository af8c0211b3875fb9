"""Quirks that change single fields of an answer: dropped, moved, set, doubled.

A path names a kind of record and the keys down to the field: `booking.unitItems.unitId`. Lists on the way are walked
through. The record counts wherever it stands: a booking's product is a product too. In brackets after the kind stands
which records: those of this status, id or uuid (`booking[ON_HOLD].utcExpiresAt`), or a share of them, always the same
ones (`availability[5%].vacancies`).
"""

import copy
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from octo_sync.sandbox.errors import bad_request

Json = dict[str, Any]
_PATH = re.compile(r"(\w+)(?:\[([^\]]+)\])?\.([\w.]+)")
_KINDS: dict[str, frozenset[str]] = {
    "booking": frozenset({"uuid", "unitItems"}),
    "unitItem": frozenset({"uuid", "unitId"}),
    "availability": frozenset({"localDateTimeStart"}),
    "calendar": frozenset({"localDate"}),
    "product": frozenset({"availabilityType"}),
    "option": frozenset({"units"}),
    "unit": frozenset({"type", "restrictions"}),
    "extra": frozenset({"internalName", "restrictions"}),
    "supplier": frozenset({"endpoint"}),
}
"""A record is of the first kind whose keys it has."""


def parsed(path: object) -> tuple[str, str | None, list[str]]:
    """A path's kind, what its brackets say, and its keys.

    Raises:
        OctoError: when it is none.
    """
    found = _PATH.fullmatch(path) if isinstance(path, str) else None
    if found is None or found[1] not in _KINDS:
        raise bad_request(
            f"'{path}' is not a path such as booking.unitItems.unitId; it begins with {', '.join(_KINDS)}."
        )
    return found[1], found[2], found[3].split(".")


def apply(value: object, quirks: Mapping[str, Any]) -> None:
    """Change an answer in place."""
    records = list(_records(value))
    for name in NAMES:
        asked = quirks.get(name, ())
        for path in asked:
            kind, which, keys = parsed(path)
            new = asked[path] if isinstance(asked, Mapping) else None
            for found, row in records:
                if found == kind and _chosen(row, which):
                    for holder in _holders(row, keys[:-1]):
                        _STEPS[name](holder, keys[-1], new)


def _records(value: object) -> Iterator[tuple[str, Json]]:
    if isinstance(value, list):
        for entry in value:
            yield from _records(entry)
    elif isinstance(value, dict):
        kind = next((kind for kind, keys in _KINDS.items() if keys <= value.keys()), None)
        if kind is not None:
            yield kind, value
        for entry in value.values():
            yield from _records(entry)


def _chosen(row: Json, which: str | None) -> bool:
    if which is None:
        return True
    if which.endswith("%"):
        name = row.get("uuid") or row.get("id")
        return zlib.crc32(str(name).encode()) % 1_000 < float(which[:-1]) * 10
    return which in {row.get("status"), row.get("id"), row.get("uuid")}


def _holders(value: object, keys: list[str]) -> Iterator[Json]:
    """The objects that hold a path's last key."""
    if isinstance(value, list):
        for entry in value:
            yield from _holders(entry, keys)
    elif isinstance(value, dict):
        if keys:
            yield from _holders(value.get(keys[0]), keys[1:])
        else:
            yield value


def _doubled(holder: Json, key: str, _new: object) -> None:
    if isinstance(holder.get(key), list):
        holder[key][:0] = copy.deepcopy(holder[key][:1])


def _set(holder: Json, key: str, new: object) -> None:
    holder[key] = copy.deepcopy(new)


def _moved(holder: Json, key: str, new: object) -> None:
    if key not in holder:
        return
    value = holder.pop(key)
    *outer, last = str(new).split(".")
    for name in outer:
        holder = holder.setdefault(name, {})
    holder[last] = value


def _dropped(holder: Json, key: str, _new: object) -> None:
    holder.pop(key, None)


_STEPS: dict[str, Callable[[Json, str, object], None]] = {
    "entries_doubled": _doubled,
    "fields_set": _set,
    "fields_moved": _moved,
    "fields_dropped": _dropped,
}
NAMES = tuple(_STEPS)
