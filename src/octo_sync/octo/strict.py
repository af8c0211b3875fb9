"""The shapes of `shapes`, strict: a field that nobody knows, at whatever depth, makes them refuse the record.

Answers are read by them first, which costs nothing more than reading them, and only one that is refused is read by the
generous shapes and looked through. So new and renamed fields are found in every answer, for nothing while there are none.
"""

import types
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from octo_sync.octo import shapes

__all__ = ["decoder", "unknown_in"]


class _Skipped(Struct, gc=False):
    """An object of which nothing is read."""


_ANYTHING = Union[  # noqa: UP007 - built at run time
    _Skipped, list[Union[_Skipped, str, int, float, bool, None]], str, int, float, bool, None, UnsetType  # noqa: UP007
]
_COPIES = (shapes.HydratedUnit, shapes.HydratedProduct)
"""Copies of what has an answer of its own: nothing in them is news."""
_SLOT = (
    "available",
    "status",
    "vacancies",
    "capacity",
    "maxUnits",
    "utcCutoffAt",
    "openingHours",
    "unitPricing",
    "pricing",
)
_TEXTS = ("title", "shortDescription", "description", "features", "faqs", "media", "locations", "categoryLabels")
_DURATION = ("commentary", "durationMinutesFrom", "durationMinutesTo")
_LEFT_ALONE: Mapping[type[Struct], tuple[str, ...]] = {
    shapes.AvailabilityRecord: ("title", "shortDescription"),
    shapes.Price: ("includedTaxes",),
    shapes.Pricing: ("extraPricing",),
    shapes.BookedAvailability: (*_SLOT, "title", "shortDescription"),
    shapes.BookingRecord: ("option", "voucher", "deliveryMethods"),
    shapes.UnitItem: ("ticket",),
    shapes.ExtraItem: ("extra",),
    shapes.SupplierRecord: ("shortDescription", "media"),
    shapes.ProductRecord: _DURATION,
    shapes.OptionRecord: (*_DURATION, "requiredContactFields", "pricing"),
    shapes.UnitRecord: (*_TEXTS[1:], "requiredContactFields", "pricing"),
    shapes.ExtraRecord: (*_TEXTS[1:], "pricingFrom", "pricing"),
    shapes.UnitRestrictions: ("minHeight", "maxHeight", "heightUnit"),
    shapes.ExtraRestrictions: ("default",),
}
"""Fields that no table has on purpose: hydrated copies, tickets, contact rules. They are known, so no drift."""


@lru_cache(maxsize=256)
def strict(shape: type[Struct], also: frozenset[str] = frozenset()) -> type[Struct]:
    """The shape, refusing fields that neither it nor its parts know; but for the paths in `also`, which are left alone."""
    hints = get_type_hints(shape, include_extras=True)
    fields: list[Any] = []
    for field in msgspec.structs.fields(shape):
        inside = frozenset(p.partition(".")[2] for p in also if p.startswith(f"{field.encode_name}."))
        kind = _twin(hints[field.name], inside)
        default = {} if field.required else {"default": field.default}
        fields.append((field.name, kind, msgspec.field(name=field.encode_name, **default)))
    # What is left alone is encoded with the record, so none may have the name of what the check notes in it.
    left = sorted({*_LEFT_ALONE.get(shape, ()), *(p for p in also if "." not in p)} - {"oddities"})
    fields += [(f"left_{i}", _ANYTHING, msgspec.field(name=name, default=UNSET)) for i, name in enumerate(left)]
    return msgspec.defstruct(f"Strict{shape.__name__}", fields, bases=(shape,), forbid_unknown_fields=True, gc=False)


def _twin(kind: Any, also: frozenset[str]) -> Any:  # noqa: ANN401 - a type annotation
    """The annotation with strict shapes in the place of the others."""
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind if kind in _COPIES else strict(kind, also)
    if origin is Annotated:
        return kind
    if origin in (Union, types.UnionType):
        return Union[tuple(_twin(each, also) for each in inner)]  # noqa: UP007 - built at run time
    return list[_twin(inner[0], also)] if origin is list else kind  # type: ignore[misc] # built at run time


@lru_cache(maxsize=64)
def decoder(
    shape: type[Struct], also: frozenset[str] = frozenset(), *, many: bool = False
) -> "msgspec.json.Decoder[Any]":
    """Reads one record, or a list of them, by the strict shape."""
    kind = strict(shape, also)
    return msgspec.json.Decoder(list[kind] if many else kind)  # type: ignore[valid-type] # built at run time


Known = Mapping[str, Any]


@cache
def _known(shape: type[Struct]) -> Known:
    """Names of a record's fields → the same of what is in them; None where nobody looks."""
    hints = get_type_hints(shape)
    found: dict[str, Any] = dict.fromkeys(_LEFT_ALONE.get(shape, ()))
    for name, encoded in zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True):
        inside = [s for s in _structs(hints[name]) if s not in _COPIES]
        found[encoded] = _known(inside[0]) if inside else None
    return found


def _structs(kind: Any) -> Iterator[type[Struct]]:  # noqa: ANN401 - a type annotation
    if isinstance(kind, type) and issubclass(kind, Struct):
        yield kind
    for each in get_args(kind):
        yield from _structs(each)


def unknown_in(shape: type[Struct], raw: bytes | msgspec.Raw) -> frozenset[str]:
    """Paths of the fields in a record that nobody knows: `unitItems.pickup`."""
    try:
        return frozenset(_unknown(msgspec.json.decode(raw), _known(shape), ""))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return frozenset()


def _unknown(value: object, known: Known, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _unknown(each, known, path)
    elif isinstance(value, dict):
        for name, inside in value.items():
            if name not in known:
                yield f"{path}{name}"
            elif known[name] is not None:
                yield from _unknown(inside, known[name], f"{path}{name}.")
