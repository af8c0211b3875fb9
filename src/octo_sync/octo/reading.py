"""How the records of an answer are read for the tables: by the structs of `records`, once strict and once generous.

The strict ones refuse a record with a field that nobody knows, at whatever depth. Records are read by them first, which
costs nothing more than reading them, and only one that is refused is read generously and looked through. So new and
renamed fields are found in every answer, for nothing while there are none. Neither reads what no table keeps.
"""

import re
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from octo_sync.errors import AnswerInvalid
from octo_sync.octo.records import HydratedProduct, HydratedUnit, Id, NotKept

T = TypeVar("T", bound=Struct)
M = TypeVar("M")
Raw = bytes | msgspec.Raw
INVALID = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""What reading JSON raises."""


class _Skipped(Struct, gc=False):
    """An object of which nothing is read."""


_Value = _Skipped | str | int | float | bool | None
_UNREAD = {strict: list[_Value if strict else Any] | _Value | UnsetType for strict in (True, False)}  # type: ignore[misc] # at run time
"""The type of what is not read. A list in a list fits the generous one alone, which reads slower."""
_COPIES = (HydratedUnit, HydratedProduct)
"""Copies of what has an answer of its own: nothing in them is news."""


@lru_cache(maxsize=256)
def _derived(shape: type[Struct], also: frozenset[str], *, strict: bool) -> type[Struct]:
    """The shape without what is not kept; strict but for the paths in `also`, which are left alone."""
    hints = get_type_hints(shape, include_extras=True)
    fields: list[Any] = []
    for field in msgspec.structs.fields(shape):
        inside = frozenset(p.partition(".")[2] for p in also if p.startswith(f"{field.encode_name}."))
        kind = _twin(hints[field.name], inside, strict=strict)
        default = {} if field.required else {"default": field.default}
        fields.append((field.name, kind, msgspec.field(name=field.encode_name, **default)))
    # What is left alone is encoded with the record, so none may have the name of what the check notes in it.
    left = sorted(p for p in also - {"oddities"} if "." not in p)
    fields += [(f"left_{i}", _UNREAD[strict], msgspec.field(name=name, default=UNSET)) for i, name in enumerate(left)]
    name = f"{'Strict' if strict else 'Generous'}{shape.__name__}"
    return msgspec.defstruct(name, fields, bases=(shape,), forbid_unknown_fields=strict, gc=False, kw_only=True)


def _twin(kind: Any, also: frozenset[str], *, strict: bool) -> Any:  # noqa: ANN401 - a type annotation
    """The annotation with derived shapes in the place of the others."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind == NotKept:
        return _UNREAD[strict]
    if isinstance(kind, type) and issubclass(kind, Struct):
        return kind if kind in _COPIES else _derived(kind, also, strict=strict)
    if origin is Annotated:
        return kind
    if origin in (Union, types.UnionType):
        return Union[tuple(_twin(each, also, strict=strict) for each in inner)]  # noqa: UP007 - built at run time
    return list[_twin(inner[0], also, strict=strict)] if origin is list else kind  # type: ignore[misc] # at run time


@lru_cache(maxsize=64)
def _decoder(
    shape: type[Struct], also: frozenset[str] = frozenset(), *, strict: bool, many: bool = False
) -> "msgspec.json.Decoder[Any]":
    """Reads one record, or a list of them."""
    kind = _derived(shape, also, strict=strict)
    return msgspec.json.Decoder(list[kind] if many else kind)  # type: ignore[valid-type] # built at run time


Known = Mapping[str, Any]


@cache
def _known(shape: type[Struct]) -> Known:
    """Names of a record's fields → the same of what is in them; None where nobody looks."""
    hints = get_type_hints(shape)
    found: dict[str, Any] = {}
    for name, encoded in zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True):
        inside = [s for s in _structs(hints[name]) if s not in _COPIES]
        found[encoded] = _known(inside[0]) if inside else None
    return found


def _structs(kind: Any) -> Iterator[type[Struct]]:  # noqa: ANN401 - a type annotation
    if isinstance(kind, type) and issubclass(kind, Struct):
        yield kind
    for each in get_args(kind):
        yield from _structs(each)


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


_as_raws = msgspec.json.Decoder(list[msgspec.Raw])
_as_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])

_PLACE = re.compile(r"`\$\[(\d+)\]")
_PATH = re.compile(r"^(?P<reason>.*?)(?: - at `\$?(?P<path>.*)`)?$", re.DOTALL)
_MOST_UNKNOWN = 200
"""Unknown fields of one answer that are told apart; each new one costs a look."""
# PostgreSQL cannot store NUL in a text and no OCTO field has a use for it.
_NUL = re.compile(rb"\\u0000")


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that does not fit. `key` is its id if it could be read, `path` where it is wrong, never a value."""

    key: str
    path: str
    reason: str


class Reader(Generic[T]):
    """Reads the records of one answer, a JSON array or a single object; `bad` are those that were set aside.

    What unknown fields were found in one record are left alone in the next ones, so that each is refused for names that are
    new in this answer.

    Raises:
        AnswerInvalid: The body as a whole is neither.
    """

    def __init__(self, shape: type[T], body: bytes, *, single: bool = False) -> None:
        self.unknown: frozenset[str] = frozenset()
        self.bad: list[BadRecord] = []
        self._shape = shape
        self._body = b"[" + body + b"]" if single else body

    def raws(self) -> list[msgspec.Raw]:
        """The records, each as it was sent."""
        return raws(self._body, f"The answer with {self._shape.__name__} records")

    def all(self) -> list[T]:
        """All records at once, which is quick; raises one of `INVALID` when a single one does not fit."""
        if _NUL.search(self._body):
            raise msgspec.ValidationError("U+0000")
        while True:
            try:
                return self._strict(many=True).decode(self._body)  # type: ignore[no-any-return] # of the shape
            except msgspec.ValidationError as error:
                place = _PLACE.search(str(error))
                if place is None or not self._look_for_news(_as_raws.decode(self._body)[int(place[1])]):
                    return _decoder(self._shape, strict=False, many=True).decode(self._body)  # type: ignore[no-any-return]

    def one(self, raw: Raw) -> T:
        """One record; raises a `msgspec.MsgspecError`."""
        if _NUL.search(raw):
            raise msgspec.ValidationError("Holds the character U+0000, which no database text can")
        try:
            try:
                return self._strict().decode(raw)  # type: ignore[no-any-return] # of the shape
            except msgspec.ValidationError:
                self._look_for_news(raw)
                return _decoder(self._shape, strict=False).decode(raw)  # type: ignore[no-any-return]
        except RecursionError:
            raise msgspec.ValidationError("Nested too deeply to be data") from None
        except UnicodeDecodeError:
            raise msgspec.ValidationError("Holds bytes that are not UTF-8") from None

    def each(self, made: Callable[[T], M]) -> Iterator[tuple[M, msgspec.Raw]]:
        """What is `made` of the records that fit, each with what was sent; those it refuses are set aside like others."""
        for index, raw in enumerate(self.raws()):
            try:
                yield made(self.one(raw)), raw
            except msgspec.MsgspecError as error:
                self.set_aside(error, raw, index)

    def set_aside(self, error: Exception, raw: Raw, index: int) -> None:
        """Note a record that does not fit: the one at `index`."""
        found = _PATH.match(str(error))
        path = (found["path"] if found else None) or ""
        try:
            keys = _as_keys.decode(raw)
            key = str(msgspec.json.decode(keys["uuid" if "uuid" in self._shape.__struct_fields__ else "id"], type=Id))
        except (*INVALID, KeyError):
            key = f"#{index}"
        self.bad.append(BadRecord(key, f"[{index}]{path}", _reason(error)))

    def _strict(self, *, many: bool = False) -> "msgspec.json.Decoder[Any]":
        """Refuses records with other unknown fields than those that were found."""
        return _decoder(self._shape, self.unknown, strict=True, many=many)

    def _look_for_news(self, raw: Raw) -> bool:
        """Look for unknown fields in a record that was refused; whether there are new ones."""
        before = len(self.unknown)
        if before < _MOST_UNKNOWN:
            with suppress(*INVALID):
                self.unknown |= frozenset(_unknown(msgspec.json.decode(raw), _known(self._shape), ""))
        return len(self.unknown) > before


def raws(body: bytes, what: str = "It") -> list[msgspec.Raw]:
    """The records of a list, each as it was sent.

    Raises:
        AnswerInvalid: `what` is not a JSON array.
    """
    try:
        return _as_raws.decode(body)
    except RecursionError:
        raise AnswerInvalid(f"{what} is nested too deeply to be data.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AnswerInvalid(f"{what} is not a JSON array: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    found = _PATH.match(str(error))
    return (found["reason"] if found else str(error)).rstrip(".")
