"""The shape check: an answer's bytes in, checked and narrowed records out. Pure.

Nothing downstream sees a body that was not checked here. A record that does not fit is set aside with its path and the
reason; the others go on. What goes on is re-encoded with only the fields that the tables know, so that the loader can never
read anything other than what was checked.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct

from octo_sync.model import Window
from octo_sync.octo.oddities import mend_booking, mend_departures, mend_product, noted
from octo_sync.octo.reading import INVALID, BadRecord, Raw, Reader
from octo_sync.octo.records import Availability, Booking, Product, Supplier

T = TypeVar("T")


Known = Mapping[int, tuple[str, date | None, date | None]]
"""Digest of a record that is landed → its uuid, travel date and date of creation."""


@dataclass(frozen=True, slots=True)
class Screened:
    """What a `Screen` says of a booking: the keyed hash of its contact, and whether the record may be kept as received."""

    contact_key: str | None = None
    keeps_payload: bool = True


Screen = Callable[[Booking], Screened]
"""Takes out of a booking, in place, what must not be kept of a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a body became.

    `records` are JSON arrays of narrowed records, each one line of bounded length; `ids` their ids in the same order;
    `bad` what was set aside;
    `capabilities` those whose fields were seen in at least one record; `unknown` paths of fields that nobody knows.

    Of products and bookings, `payloads` are views of the records as received, in the order of `ids`; of bookings so are
    `hashes`, `digests` and `screened`. `seen` are (uuid, digest) of bookings that equal what is landed and were not read;
    `dates` are the travel date and the date of creation, which may be None, of `ids`, then of `seen`.
    """

    records: tuple[bytes, ...]
    ids: tuple[str, ...]
    bad: tuple[BadRecord, ...]
    capabilities: frozenset[str] = frozenset()
    unknown: frozenset[str]
    payloads: tuple[memoryview, ...] = ()
    hashes: tuple[bytes, ...] = ()
    digests: tuple[int, ...] = ()
    screened: tuple[Screened, ...] = ()
    seen: tuple[tuple[str, int], ...] = ()
    dates: tuple[tuple[date | None, date | None], ...] = ()


_encode = msgspec.json.Encoder().encode

LINE = 500
"""Records a line."""
_NONE_KNOWN: Known = MappingProxyType({})


def digest_of(record: "bytes | memoryview | Raw") -> bytes:
    """128 bits that tell a record from all others. Processors have instructions for this one (docs/internals/decisions.md)."""
    return hashlib.sha256(record).digest()[:16]


def _lines(records: Sequence[Struct | msgspec.Raw]) -> tuple[bytes, ...]:
    """A loader reserves memory by its longest line, so lines are short."""
    return tuple(_encode(records[i : i + LINE]) for i in range(0, len(records), LINE))


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


def _checked(reader: Reader[Any], ids: Sequence[str], records: Iterable[bytes], **more: Any) -> Checked:  # noqa: ANN401 - fields
    """What the reader has read, with what it set aside."""
    return Checked(records=tuple(records), ids=tuple(ids), bad=tuple(reader.bad), unknown=reader.unknown, **more)


def check_availability(body: bytes, *, days: Window | None = None) -> Checked:
    """Check a `POST /availability` answer: a JSON array of availability objects.

    With `days`, departures on other days at the venue are passed over.

    Raises:
        AnswerInvalid: The body as a whole is not a JSON array.
    """
    reader = Reader(Availability, body)
    try:
        records = reader.all()
    except INVALID:
        records = [record for record, _ in reader.each(lambda record: record)]
    if days is not None:
        records = [r for r in records if days.start <= r.local_date_time_start.date() <= days.end]
    records, ids = _keep_last(records, [str(r.id) for r in records], reader.bad)
    seen = any(r.unit_pricing is not UNSET or r.pricing is not UNSET for r in records)
    return _checked(reader, ids, _lines(mend_departures(records)), capabilities=frozenset({"pricing"} if seen else ()))


def _booking_capabilities(record: Booking) -> set[str]:
    owners = [record, *(record.unit_items or ())]
    seen = {"pricing"} if any(owner.pricing is not UNSET for owner in owners) else set()
    return seen | ({"extras"} if any(owner.extra_items is not UNSET for owner in owners) else set())


@dataclass(frozen=True, slots=True)
class _ReadBooking:
    """What is kept of a record once it is read: not the record, which is ten times its bytes."""

    line: bytes
    raw: Raw
    hash: bytes
    digest: int
    screened: Screened
    capabilities: set[str]
    dates: tuple[date | None, date | None]


def check_bookings(
    body: bytes,
    *,
    single: bool = False,
    raws: Sequence[Raw] = (),
    known: Known = _NONE_KNOWN,
    salt: int = 0,
    screen: Screen = lambda _: Screened(),
) -> Checked:
    """Check a `GET /bookings` answer, a JSON array of bookings, or with `single` that of `GET /bookings/{uuid}`.

    `raws` are its records, where somebody has them. One whose digest is in `known` equals what is landed, byte for byte,
    and is not read. `salt`, 64 bits, goes into every digest: it stands for whatever else decides what a record becomes.
    `screen` takes out what must not be kept.

    Raises:
        AnswerInvalid: The body as a whole is not a JSON array.
    """
    reader = Reader(Booking, body, single=single)
    found: list[_ReadBooking] = []
    ids: list[str] = []
    seen: list[tuple[str, int]] = []
    for index, raw in enumerate(raws or reader.raws()):
        hashed = digest_of(raw)
        digest = int.from_bytes(hashed[:8], "little", signed=True) ^ salt
        if digest in known:
            seen.append((known[digest][0], digest))
            continue
        try:
            record = reader.one(raw)
            notes = mend_booking(record)
        except msgspec.MsgspecError as error:
            reader.set_aside(error, raw, index)
            continue
        start, made = record.availability and record.availability.local_date_time_start, record.utc_created_at
        screened = screen(record)
        ids.append(record.uuid)
        found.append(
            _ReadBooking(
                line=_encode(noted(record, notes)),
                raw=raw,
                hash=hashed,
                digest=digest,
                screened=screened,
                capabilities=_booking_capabilities(record),
                dates=(_day(start), _day(made)),
            )
        )
    uuids = {uuid for uuid, _ in seen}
    if len(uuids) < len(seen) or not uuids.isdisjoint(ids):
        # A uuid that comes twice: which of its records counts can only be said when all are read.
        return check_bookings(body, single=single, raws=raws, salt=salt, screen=screen)
    found, ids = _keep_last(found, ids, reader.bad)
    return _checked(
        reader,
        ids,
        (b"[%b]" % b",".join(r.line for r in found[i : i + LINE]) for i in range(0, len(found), LINE)),
        capabilities=frozenset(name for r in found for name in r.capabilities),
        payloads=tuple(memoryview(r.raw) for r in found),
        hashes=tuple(r.hash for r in found),
        digests=tuple(r.digest for r in found),
        screened=tuple(r.screened for r in found),
        seen=tuple(seen),
        dates=(*(r.dates for r in found), *(known[digest][1:] for _, digest in seen)),
    )


def _day(moment: object) -> date | None:
    return moment.date() if isinstance(moment, datetime) else None


def _product_capabilities(record: Product) -> set[str]:
    seen = set()
    if record.default_currency is not UNSET or record.available_currencies is not UNSET:
        seen.add("pricing")
    if record.title is not UNSET or record.description is not UNSET or record.features is not UNSET:
        seen.add("content")
    for option in record.options:
        if option.extras is not UNSET or any(unit.extras is not UNSET for unit in option.units or ()):
            seen.add("extras")
    return seen


def check_products(body: bytes, *, single: bool = False) -> Checked:
    """Check a `GET /products` answer, a JSON array of products, or with `single` that of `GET /products/{id}`.

    Raises:
        AnswerInvalid: The body as a whole is not a JSON array.
    """
    reader = Reader(Product, body, single=single)
    read = list(reader.each(lambda record: (record, mend_product(record))))
    read, ids = _keep_last(read, [str(record.id) for (record, _), _ in read], reader.bad)
    return _checked(
        reader,
        ids,
        _lines([noted(record, notes) for (record, notes), _ in read]),
        capabilities=frozenset(name for (record, _), _ in read for name in _product_capabilities(record)),
        payloads=tuple(memoryview(raw) for _, raw in read),
    )


def check_supplier(body: bytes) -> Checked:
    """Check a `GET /supplier` answer: one supplier object.

    Raises:
        AnswerInvalid: The body is not a JSON object.
    """
    reader = Reader(Supplier, body, single=True)
    records = [record for record, _ in reader.each(lambda record: record)]
    return _checked(reader, [str(record.id) for record in records], _lines(records))
