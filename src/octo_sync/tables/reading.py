"""The types with which the loader reads checked records, from the structs that they were checked by. Pure."""

import types
from datetime import datetime
from typing import Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, UnsetType

from octo_sync.octo.records import Named, NotKept, Number, Precision

ODDITIES = "oddities VARCHAR[]"
"""What the check notes in a record, beside its fields."""

# Instants are read as they were sent: a table says what becomes of them.
_TYPES = {
    str: "VARCHAR",
    Named: "VARCHAR",
    datetime: "VARCHAR",
    bool: "BOOLEAN",
    Number: "BIGINT",
    Precision: "INTEGER",
}


def struct(shape: type[Struct], *more: str) -> str:
    """`STRUCT(id VARCHAR, …)`: the fields of a record that are kept, then `more`."""
    hints = get_type_hints(shape, include_extras=True)
    named = zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True)
    fields = [f'"{sent}" {_type(hints[name])}' for name, sent in named if hints[name] != NotKept]
    return f"STRUCT({', '.join((*fields, *more))})"


def _type(kind: Any) -> str:  # noqa: ANN401 - a type annotation
    choices = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
    kinds = [each for each in choices if each not in (type(None), UnsetType)]
    if int in kinds:  # an id, of either type
        return "VARCHAR"
    kind = kinds[0] if len(kinds) == 1 else Any
    entry: Any = get_args(kind)[0] if get_origin(kind) is list else None
    if _is_struct(entry):
        return f"{struct(entry)}[]"
    if _is_struct(kind):
        return struct(kind)
    # Lists of texts, and whatever has more than one shape.
    return _TYPES.get(kind, "JSON")


def _is_struct(kind: Any) -> bool:  # noqa: ANN401 - a type annotation
    return isinstance(kind, type) and issubclass(kind, Struct)
