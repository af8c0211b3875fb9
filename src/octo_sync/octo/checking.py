"""The shape check: an answer's bytes in, checked and narrowed records out. Pure.

Nothing downstream sees a body that was not checked here. A record that does not fit is set aside with its path and the
reason; the others go on. What goes on is re-encoded with only the fields that the tables know, so that the loader can never
read anything other than what was checked.
"""

import hashlib
import re
import zoneinfo
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from octo_sync.errors import AnswerInvalid
from octo_sync.model import Window
from octo_sync.octo.shapes import (
    AvailabilityRecord,
    BookedAvailability,
    BookingRecord,
    ExtraItem,
    HydratedProduct,
    HydratedUnit,
    Id,
    OptionRecord,
    ProductRecord,
    SupplierRecord,
    UnitRecord,
)
from octo_sync.octo.strict import decoder, unknown_in

__all__ = [
    "LINE",
    "BadRecord",
    "Checked",
    "CheckedBookings",
    "CheckedProducts",
    "Known",
    "Screened",
    "check_availability",
    "check_booking",
    "check_bookings",
    "check_product",
    "check_products",
    "check_supplier",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that does not fit. `key` is its id if it could be read, `path` where it is wrong, never a value."""

    key: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What a body became.

    `records` are JSON arrays of narrowed records, each one line of bounded length; `ids` their ids in the same order;
    `bad` what was set aside;
    `capabilities` those whose fields were seen in at least one record; `unknown` paths of fields that nobody knows.
    """

    records: tuple[bytes, ...]
    ids: tuple[str, ...]
    bad: tuple[BadRecord, ...]
    capabilities: frozenset[str]
    unknown: frozenset[str]


Known = Mapping[int, tuple[str, date | None, date | None]]
"""Digest of a record that is landed → its uuid, travel date and date of creation."""


@dataclass(frozen=True, slots=True)
class Screened:
    """What a `Screen` says of a booking: the keyed hash of its contact, and whether the record may be kept as received."""

    contact_key: str | None = None
    keeps_payload: bool = True


Screen = Callable[[BookingRecord], Screened]
"""Takes out of a booking, in place, what must not be kept of a person."""


def _as_it_is(_: BookingRecord) -> Screened:
    return Screened()


@dataclass(frozen=True, slots=True)
class CheckedBookings(Checked):
    """`payloads` are views of the records as received, in the order of `ids`, like `hashes`, `digests` and `screened`.

    `seen` are (uuid, digest) of records that equal what is landed and were not read; the dates, which may be None, are
    those of `ids`, then those of `seen`.
    """

    payloads: tuple[memoryview, ...]
    hashes: tuple[bytes, ...]
    digests: tuple[int, ...]
    screened: tuple[Screened, ...]
    seen: tuple[tuple[str, int], ...]
    travel_dates: tuple[date | None, ...]
    created_dates: tuple[date | None, ...]


@dataclass(frozen=True, slots=True)
class CheckedProducts(Checked):
    """`products` are the records themselves: planning needs their options and time zones."""

    products: tuple[ProductRecord, ...]
    payloads: tuple[memoryview, ...]


_encode = msgspec.json.Encoder().encode
_as_raws = msgspec.json.Decoder(list[msgspec.Raw])
_as_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])
_availabilities = msgspec.json.Decoder(list[AvailabilityRecord])
_availability = msgspec.json.Decoder(AvailabilityRecord)
_booking = msgspec.json.Decoder(BookingRecord)
_product = msgspec.json.Decoder(ProductRecord)
_supplier = msgspec.json.Decoder(SupplierRecord)

_PLACE = re.compile(r"`\$\[(\d+)\]")
_MOST_UNKNOWN = 200
"""Unknown fields of one answer that are told apart; each new one costs a look."""
_PATH = re.compile(r"^(?P<reason>.*?)(?: - at `\$?(?P<path>.*)`)?$", re.DOTALL)
# PostgreSQL cannot store NUL in a text and no OCTO field has a use for it.
_NUL = b"\\u0000"
LINE = 500
"""Records a line."""
_NONE_KNOWN: Known = MappingProxyType({})


def _lines(records: Sequence[Struct | msgspec.Raw]) -> tuple[bytes, ...]:
    """A loader reserves memory by its longest line, so lines are short."""
    return tuple(_encode(records[i : i + LINE]) for i in range(0, len(records), LINE))


def _noted(record: Struct, notes: Sequence[str]) -> Struct | msgspec.Raw:
    """The record with what the check found in it. It is no field of the shape, or else a service could say it."""
    return msgspec.Raw(b'%b,"oddities":%b}' % (_encode(record)[:-1], _encode(notes))) if notes else record


class _Unknown:
    """Fields of one answer's records that nobody knows. Only records that the strict shape refuses are looked through.

    What was found in one is left alone in the next ones, so that each is refused for names that are new in this answer.
    """

    def __init__(self, shape: type[Struct]) -> None:
        self._shape = shape
        self.found: frozenset[str] = frozenset()

    def decoder(self, *, many: bool = False) -> "msgspec.json.Decoder[Any]":
        """Reads records that have no other unknown field than those that were found."""
        return decoder(self._shape, self.found, many=many)

    def look(self, raw: bytes | msgspec.Raw) -> bool:
        """Look through a record that was refused; whether anything new is in it."""
        before = len(self.found)
        if before < _MOST_UNKNOWN:
            self.found |= unknown_in(self._shape, raw)
        return len(self.found) > before


def _raws(body: bytes, what: str) -> list[msgspec.Raw]:
    try:
        return _as_raws.decode(body)
    except RecursionError:
        raise AnswerInvalid(f"The answer to {what} is nested too deeply to be data.") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AnswerInvalid(f"The answer to {what} is not a JSON array: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    found = _PATH.match(str(error))
    return (found["reason"] if found else str(error)).rstrip(".")


def _bad(error: Exception, raw: bytes | msgspec.Raw, index: int, id_field: str) -> BadRecord:
    found = _PATH.match(str(error))
    path = (found["path"] if found else None) or ""
    key = ""
    try:
        key = str(msgspec.json.decode(_as_keys.decode(raw)[id_field], type=Id))
    except (msgspec.MsgspecError, KeyError, RecursionError, UnicodeDecodeError):
        key = f"#{index}"
    return BadRecord(key, f"[{index}]{path}", _reason(error))


def _one(decoder: Callable[[bytes | msgspec.Raw], T], raw: bytes | msgspec.Raw, *, look: bool) -> T:
    if look and _NUL in bytes(raw):
        raise msgspec.ValidationError("Holds the character U+0000, which no database text can")
    try:
        return decoder(raw)
    except RecursionError:
        raise msgspec.ValidationError("Nested too deeply to be data") from None
    except UnicodeDecodeError:
        raise msgspec.ValidationError("Holds bytes that are not UTF-8") from None


def _generously(raw: bytes | msgspec.Raw, then: "msgspec.json.Decoder[T]", unknown: _Unknown) -> T:
    """A record by the strict shape, or where that refuses it by the generous one."""
    try:
        record: T = unknown.decoder().decode(raw)
    except msgspec.ValidationError:
        unknown.look(raw)
        return then.decode(raw)
    return record


def _each(
    raws: Iterable[bytes | msgspec.Raw], decoder: Callable[[bytes | msgspec.Raw], T], id_field: str, *, nul: bool
) -> tuple[list[tuple[T, bytes | msgspec.Raw]], list[BadRecord]]:
    good: list[tuple[T, bytes | msgspec.Raw]] = []
    bad: list[BadRecord] = []
    for index, raw in enumerate(raws):
        try:
            good.append((_one(decoder, raw, look=nul), raw))
        except msgspec.MsgspecError as error:
            bad.append(_bad(error, raw, index, id_field))
    return good, bad


def _keep_last(records: list[T], ids: list[str], bad: list[BadRecord]) -> tuple[list[T], list[str]]:
    """An id that comes twice in one answer: the last one counts, and it is said."""
    last = {key: index for index, key in enumerate(ids)}
    if len(last) == len(ids):
        return records, ids
    keep = sorted(last.values())
    twice = sorted({key for index, key in enumerate(ids) if last[key] != index})
    reason = "The id comes more than once in one answer; the last record was kept"
    bad.extend(BadRecord(key, "", reason) for key in twice)
    return [records[i] for i in keep], [ids[i] for i in keep]


def _text(some: Id | UnsetType | None) -> str:
    """An id or a name as the tables' keys have it."""
    return "" if some is None or some is UNSET else str(some)


@cache
def _zones() -> set[str]:
    """Time zones that every database knows too."""
    return zoneinfo.available_timezones() - {"localtime"}


_COUNTABLE = 10**9
"""People beyond this are nobody's number, and their sums fit no column."""
_MOST = 10**14
"""Minor units of amounts that are added up."""


class _Oddities:
    """What is found in one record that no table can hold as it was said."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def once(self, path: str, entries: list[T] | UnsetType | None, key: Callable[[T], object]) -> list[T]:
        """The entries, of those with the same key the last one, as of whole records; none where there is no list."""
        if not entries:
            return []
        last = {key(entry): entry for entry in entries}
        if len(last) == len(entries):
            return entries
        self._found.add(f"stands_twice:{path}")
        return list(last.values())

    def zone(self, path: str, owner: ProductRecord | HydratedProduct) -> None:
        """A time zone that no database knows says nothing about the time, and ends a statement that asks for it."""
        if isinstance(owner.time_zone, str) and owner.time_zone not in _zones():
            owner.time_zone = None
            self._found.add(f"unknown_time_zone:{path}")

    def people(self, path: str, owner: UnitRecord | HydratedUnit | UnsetType | None) -> None:
        """A number of people is added up."""
        restrictions = owner.restrictions if owner else None
        if restrictions and restrictions.pax_count and abs(restrictions.pax_count) > _COUNTABLE:
            restrictions.pax_count = None
            self._found.add(f"not_countable:{path}.restrictions.paxCount")

    @property
    def notes(self) -> list[str]:
        """For the record: `rule:field`."""
        return sorted(self._found)


def _mend_departures(records: Iterable[AvailabilityRecord]) -> list[Struct | msgspec.Raw]:
    """Leave one price of each unit and currency; the records to encode."""
    mended: list[Struct | msgspec.Raw] = []
    for record in records:
        prices, own = record.unit_pricing, record.pricing
        # Cheap, because it is asked of every departure.
        if not prices or (not own and len({price.unit_id for price in prices}) == len(prices)):
            mended.append(record)
            continue
        odd = _Oddities()
        left = odd.once("unitPricing", [*prices, *([own] if own else [])], lambda p: (_text(p.unit_id), p.currency))
        record.unit_pricing = [price for price in left if price is not own]
        mended.append(_noted(record, odd.notes))
    return mended


def _mend_booking(record: BookingRecord) -> list[str]:
    """Leave each ticket once. Extras and taxes have no id of their own, and add up. What was found."""
    odd = _Oddities()
    if record.unit_items:
        record.unit_items = odd.once("unitItems", record.unit_items, lambda item: item.uuid)
    _add_up(odd, "extraItems", record.extra_items)
    for item in record.unit_items or ():
        _add_up(odd, "unitItems.extraItems", item.extra_items)
        odd.people("unitItems.unit", item.unit)
    if record.pricing:
        odd.once("pricing.includedTaxes", record.pricing.included_taxes, lambda tax: _text(tax.name))
    if record.product:
        odd.zone("product.timeZone", record.product)
    return odd.notes


def _add_up(odd: _Oddities, path: str, extras: list[ExtraItem] | UnsetType | None) -> None:
    if extras and len(odd.once(path, extras, lambda extra: _text(extra.extra_id) or _text(extra.id))) < len(extras):
        for part in ("original", "retail", "net"):
            if sum(abs(getattr(extra.pricing, part, 0) or 0) for extra in extras) >= _MOST:
                raise msgspec.ValidationError(f"The extras are too much in all to be an amount - at `$.{path}`")


def _mend_product(record: ProductRecord) -> list[str]:
    """Leave each option, unit, extra and price once. What was found."""
    odd = _Oddities()
    odd.zone("timeZone", record)
    record.options = odd.once("options", record.options, lambda option: str(option.id))
    for option in record.options:
        if option.units:
            option.units = odd.once("options.units", option.units, lambda unit: str(unit.id))
        owners: list[tuple[str, OptionRecord | UnitRecord]] = [("options", option)]
        for unit in option.units or ():
            odd.people("options.units", unit)
            owners.append(("options.units", unit))
        for path, owner in owners:
            if owner.extras:
                owner.extras = odd.once(f"{path}.extras", owner.extras, lambda extra: str(extra.id))
            if owner.pricing_from:
                owner.pricing_from = odd.once(f"{path}.pricingFrom", owner.pricing_from, lambda price: price.currency)
    return odd.notes


def check_availability(body: bytes, what: str = "availability", *, days: Window | None = None) -> Checked:
    """Check a `POST /availability` answer: a JSON array of availability objects.

    With `days`, departures on other days at the venue are passed over.

    Raises:
        AnswerInvalid: The body as a whole is not a JSON array.
    """
    bad: list[BadRecord] = []
    records: list[AvailabilityRecord]
    unknown = _Unknown(AvailabilityRecord)
    nul = _NUL in body
    try:
        records = _read_availability(body, unknown, nul=nul)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pairs, bad = _each(_raws(body, what), _availability.decode, "id", nul=nul)
        records = [record for record, _ in pairs]
    if days is not None:
        records = [r for r in records if days.start <= r.local_date_time_start.date() <= days.end]
    records, ids = _keep_last(records, [str(r.id) for r in records], bad)
    mended = _mend_departures(records)
    seen = any(r.unit_pricing is not UNSET or r.pricing is not UNSET for r in records)
    return Checked(_lines(mended), tuple(ids), tuple(bad), frozenset({"pricing"} if seen else ()), unknown.found)


def _read_availability(body: bytes, unknown: _Unknown, *, nul: bool) -> list[AvailabilityRecord]:
    if nul:
        raise msgspec.ValidationError("U+0000")
    while True:
        try:
            records: list[AvailabilityRecord] = unknown.decoder(many=True).decode(body)
        except msgspec.ValidationError as error:
            place = _PLACE.search(str(error))
            if place is None or not unknown.look(_as_raws.decode(body)[int(place[1])]):
                return _availabilities.decode(body)
        else:
            return records


def _booking_capabilities(record: BookingRecord) -> set[str]:
    seen = set()
    if record.pricing is not UNSET:
        seen.add("pricing")
    if record.extra_items is not UNSET:
        seen.add("extras")
    for item in record.unit_items or () if record.unit_items is not UNSET else ():
        if item.pricing is not UNSET:
            seen.add("pricing")
        if item.extra_items is not UNSET:
            seen.add("extras")
    return seen


@dataclass(frozen=True, slots=True)
class _ReadBooking:
    """What is kept of a record once it is read: not the record, which is ten times its bytes."""

    line: bytes
    raw: bytes | msgspec.Raw
    hash: bytes
    digest: int
    screened: Screened
    capabilities: set[str]
    travel: date | None
    created: date | None


def _checked_bookings(
    raws: Sequence[bytes | msgspec.Raw],
    *,
    nul: bool,
    known: Known = _NONE_KNOWN,
    salt: int = 0,
    screen: Screen = _as_it_is,
) -> CheckedBookings:
    found: list[_ReadBooking] = []
    ids: list[str] = []
    bad: list[BadRecord] = []
    seen: list[tuple[str, int]] = []
    unknown = _Unknown(BookingRecord)
    for index, raw in enumerate(raws):
        hashed = hashlib.blake2b(raw, digest_size=16).digest()
        digest = int.from_bytes(hashed[:8], "little", signed=True) ^ salt
        if digest in known:
            seen.append((known[digest][0], digest))
            continue
        try:
            record = _one(lambda some: _generously(some, _booking, unknown), raw, look=nul)
            notes = _mend_booking(record)
        except msgspec.MsgspecError as error:
            bad.append(_bad(error, raw, index, "uuid"))
            continue
        slot = record.availability
        start = slot.local_date_time_start if isinstance(slot, BookedAvailability) else None
        made = record.utc_created_at
        screened = screen(record)
        ids.append(record.uuid)
        found.append(
            _ReadBooking(
                line=_encode(_noted(record, notes)),
                raw=raw,
                hash=hashed,
                digest=digest,
                screened=screened,
                capabilities=_booking_capabilities(record),
                travel=start.date() if isinstance(start, datetime) else None,
                created=made.date() if isinstance(made, datetime) else None,
            )
        )
    uuids = {uuid for uuid, _ in seen}
    if len(uuids) < len(seen) or not uuids.isdisjoint(ids):
        # A uuid that comes twice: which of its records counts can only be said when all are read.
        return _checked_bookings(raws, nul=nul, salt=salt, screen=screen)
    found, ids = _keep_last(found, ids, bad)
    dates = [known[digest] for _, digest in seen]
    return CheckedBookings(
        records=tuple(b"[%b]" % b",".join(r.line for r in found[i : i + LINE]) for i in range(0, len(found), LINE)),
        ids=tuple(ids),
        bad=tuple(bad),
        capabilities=frozenset(name for r in found for name in r.capabilities),
        unknown=unknown.found,
        payloads=tuple(memoryview(r.raw) for r in found),
        hashes=tuple(r.hash for r in found),
        digests=tuple(r.digest for r in found),
        screened=tuple(r.screened for r in found),
        seen=tuple(seen),
        travel_dates=(*(r.travel for r in found), *(travel for _, travel, _ in dates)),
        created_dates=(*(r.created for r in found), *(created for _, _, created in dates)),
    )


def check_bookings(
    body: bytes,
    what: str = "bookings",
    *,
    known: Known = _NONE_KNOWN,
    salt: int = 0,
    screen: Screen = _as_it_is,
) -> CheckedBookings:
    """Check a `GET /bookings` answer: a JSON array of bookings.

    A record whose digest is in `known` equals what is landed, byte for byte, and is not read. `salt`, 64 bits, goes into
    every digest: it stands for whatever else decides what a record becomes. `screen` takes out what must not be kept.

    Raises:
        AnswerInvalid: The body as a whole is not a JSON array.
    """
    return _checked_bookings(_raws(body, what), nul=_NUL in body, known=known, salt=salt, screen=screen)


def check_booking(body: bytes, what: str = "booking", *, salt: int = 0, screen: Screen = _as_it_is) -> CheckedBookings:
    """Check a `GET /bookings/{uuid}` answer: one booking object.

    Raises:
        AnswerInvalid: The body is not a JSON object.
    """
    return _checked_bookings(_raws(b"[" + body + b"]", what), nul=_NUL in body, salt=salt, screen=screen)


def _product_capabilities(record: ProductRecord) -> set[str]:
    seen = set()
    if record.default_currency is not UNSET or record.available_currencies is not UNSET:
        seen.add("pricing")
    if record.title is not UNSET or record.description is not UNSET or record.features is not UNSET:
        seen.add("content")
    for option in record.options or ():
        if option.extras is not UNSET or any(unit.extras is not UNSET for unit in option.units or ()):
            seen.add("extras")
    return seen


def _product_of(raw: bytes | msgspec.Raw, unknown: _Unknown) -> tuple[ProductRecord, list[str]]:
    """A product and what was found in it."""
    record = _generously(raw, _product, unknown)
    if record.id is UNSET:
        raise msgspec.ValidationError("Object missing required field `id`")
    if record.options is UNSET:
        # Without its options nothing can be asked of a product; an empty list is a statement, no list is a hole.
        raise msgspec.ValidationError("Object missing required field `options`")
    for index, option in enumerate(record.options):
        if option.id is UNSET or option.id == "":
            raise msgspec.ValidationError(f"Object missing required field `id` - at `$.options[{index}]`")
    return record, _mend_product(record)


def check_products(body: bytes, what: str = "products") -> CheckedProducts:
    """Check a `GET /products` answer: a JSON array of products.

    Raises:
        AnswerInvalid: The body as a whole is not a JSON array.
    """
    return _checked_products(_raws(body, what), nul=_NUL in body)


def check_product(body: bytes, what: str = "product") -> CheckedProducts:
    """Check a `GET /products/{id}` answer: one product object.

    Raises:
        AnswerInvalid: The body is not a JSON object.
    """
    return _checked_products(_raws(b"[" + body + b"]", what), nul=_NUL in body)


def _checked_products(raws: Sequence[bytes | msgspec.Raw], *, nul: bool) -> CheckedProducts:
    unknown = _Unknown(ProductRecord)
    pairs, bad = _each(raws, lambda raw: _product_of(raw, unknown), "id", nul=nul)
    pairs, ids = _keep_last(pairs, [str(record.id) for (record, _), _ in pairs], bad)
    products = tuple(record for (record, _), _ in pairs)
    capabilities: set[str] = set()
    for record in products:
        capabilities |= _product_capabilities(record)
    return CheckedProducts(
        records=_lines([_noted(record, notes) for (record, notes), _ in pairs]),
        ids=tuple(ids),
        bad=tuple(bad),
        capabilities=frozenset(capabilities),
        unknown=unknown.found,
        products=products,
        payloads=tuple(memoryview(raw) for _, raw in pairs),
    )


def check_supplier(body: bytes, what: str = "supplier") -> Checked:
    """Check a `GET /supplier` answer: one supplier object.

    Raises:
        AnswerInvalid: The body is not a JSON object.
    """
    unknown = _Unknown(SupplierRecord)
    raws = _raws(b"[" + body + b"]", what)
    pairs, bad = _each(raws, lambda raw: _generously(raw, _supplier, unknown), "id", nul=_NUL in body)
    return Checked(
        records=_lines([record for record, _ in pairs]),
        ids=tuple(str(record.id) for record, _ in pairs),
        bad=tuple(bad),
        capabilities=frozenset(),
        unknown=unknown.found,
    )
