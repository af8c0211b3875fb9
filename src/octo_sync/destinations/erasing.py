"""Take persons out of a warehouse: the SQL, in the words that DuckDB and PostgreSQL share.

What a destination adds: a transaction that checks the fence (`scrubbing`; on DuckDB it may write the private file or the
warehouse, not both), and that the bytes go too (`shed`), because both engines keep deleted rows on the disk for a while.
DuckDB: the file is written anew. PostgreSQL: `vacuum (full) private.booking_contacts, raw.records`, and for `core` also
bookings and unit items in `landing`, after the next publish also in `core`, with whatever marts are tables
(`shed_published`); its write-ahead log is recycled by checkpoints, and goes to archives and replicas, which are out of reach.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from octo_sync.destinations.relations import given

Run = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
BookingKey = tuple[str, str]
"""Connection and uuid of a booking."""
ContactKey = tuple[str, str, str]
"""Connection, booking uuid and unit item uuid; the last is '' for the contact of the booking itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactRow:
    """A row of `private.booking_contacts`. Personal data: its `repr` shows nothing."""

    connection_id: str
    booking_uuid: str
    unit_item_uuid: str
    full_name: str | None = None
    first_name: str | None = None
    last_name: str | None = None
    email_address: str | None = None
    phone_number: str | None = None
    country: str | None = None
    postal_code: str | None = None
    locales: str | None = None
    notes: str | None = None
    erased_at_utc: datetime | None = None

    @property
    def key(self) -> ContactKey:
        """What the row is known by."""
        return self.connection_id, self.booking_uuid, self.unit_item_uuid

    def __repr__(self) -> str:
        return f"ContactRow({self.connection_id!r}, {self.booking_uuid!r}, …)"


@dataclass(frozen=True, slots=True)
class StoredPayload:
    """A payload of `raw.records` that holds a booking. Personal data: its `repr` shows nothing."""

    connection_id: str
    booking_uuid: str
    payload_hash: str
    payload: str
    fetched_at_utc: datetime
    source: str

    def __repr__(self) -> str:
        return f"StoredPayload({self.connection_id!r}, {self.booking_uuid!r}, …)"


@dataclass(frozen=True, slots=True)
class BookingScrub:
    """The texts that stay in a booking's row in `core`, and whether it loses its contact's keyed hash."""

    connection_id: str
    booking_uuid: str
    loses_key: bool
    supplier_reference: str | None
    reseller_reference: str | None
    cancellation_reason: str | None


@dataclass(frozen=True, slots=True)
class ItemScrub:
    """The references that stay in a unit item's row in `core`."""

    connection_id: str
    booking_uuid: str
    unit_item_uuid: str
    supplier_reference: str | None
    reseller_reference: str | None


_COLUMNS = tuple(f.name for f in fields(ContactRow))
_KEY = ("connection_id", "booking_uuid", "unit_item_uuid")
_RECORD = ("connection_id", "key")
_TYPES = {"erased_at_utc": "timestamptz", "loses_key": "boolean"}
_PAGE = 1000
"""Bookings whose payloads are in memory at the same time."""


def _given(rows: Sequence[Any], kind: type[Any], *, after: int = 0) -> tuple[str, list[list[Any]]]:
    """Rows of a kind as a relation, and its parameters; `after` is how many parameters come before."""
    columns = {f.name: _TYPES.get(f.name, "varchar") for f in fields(kind)}
    select, values = given(columns, [[getattr(row, c) for c in columns] for row in rows], after=after)
    return f"({select})", values


def _keys(rows: Collection[tuple[str, ...]], columns: Sequence[str]) -> tuple[str, list[list[str]]]:
    """The same for keys."""
    select, values = given(dict.fromkeys(columns, "varchar"), rows)
    return f"({select})", values


def _same(columns: Sequence[str]) -> str:
    return " and ".join(f"t.{c} = k.{c}" for c in columns)


class Scrubber:
    """Takes persons out of a warehouse, inside a transaction that its destination opened (`Destination.scrubbing`).

    Args:
        run: Executes one statement with positional parameters `$1`, `$2`, … and returns its rows.
        prefix: What stands before the schemas `private` and `raw`; on DuckDB the attached catalog and a dot.
    """

    def __init__(self, run: Run, prefix: str) -> None:
        self._run = run
        self._contacts, self._records = f"{prefix}private.booking_contacts", f"{prefix}raw.records"

    def contacts(self) -> list[ContactRow]:
        """Every contact that is kept, also those of bookings that are gone, and the marks of erased ones."""
        found = self._run(f"select {', '.join(_COLUMNS)} from {self._contacts} order by 1, 2, 3", [])
        return [ContactRow(**dict(zip(_COLUMNS, row, strict=True))) for row in found]

    def erased(self) -> list[ContactKey]:
        """The contacts that were erased."""
        return [
            (c, b, i)
            for c, b, i in self._run(
                f"select {', '.join(_KEY)} from {self._contacts} where erased_at_utc is not null", []
            )
        ]

    def payloads(self) -> Iterator[StoredPayload]:
        """Every payload of a booking, a bounded number at a time."""
        keys = self._run(f"select distinct key from {self._records} where resource = 'booking' order by key", [])
        for start in range(0, len(keys), _PAGE):
            some = [key for (key,) in keys[start : start + _PAGE]]
            for row in self._run(
                f"select connection_id, key, payload_hash, payload, fetched_at_utc, source from {self._records} "
                "where resource = 'booking' and key in (select unnest($1::varchar[])) order by 1, 2, 5",
                [some],
            ):
                yield StoredPayload(*row)

    def repeats(self, text: str) -> int:
        """How many contacts or payloads still hold a text; small and large letters are different."""
        names = (c for c in _COLUMNS if c not in (*_KEY, "erased_at_utc"))
        there = " or ".join(f"position($1 in {name}) > 0" for name in names)
        found = self._run(
            f"select (select count(*) from {self._contacts} where {there}) "
            f"+ (select count(*) from {self._records} where position($1 in payload) > 0)",
            [text],
        )
        return int(found[0][0])

    def replace_contacts(self, rows: Sequence[ContactRow], now: datetime) -> int:
        """Give these rows these values, and make those that are missing; how many.

        One with `erased_at_utc` is gone for good: the row that stays says so, and nothing else. The hash of each is
        cleared, so that the next answer is compared with nothing.
        """
        if not rows:
            return 0
        relation, values = _given(rows, ContactRow, after=1)
        sets = ", ".join(f"{c} = k.{c}" for c in _COLUMNS if c not in _KEY)
        found = self._run(
            f"update {self._contacts} as t set {sets}, row_hash = 0, "
            "is_deleted = k.erased_at_utc is not null or t.is_deleted, "
            "deleted_at_utc = case when k.erased_at_utc is not null then $1::timestamptz else t.deleted_at_utc end "
            f"from {relation} k where {_same(_KEY)} returning 1",
            [now, *values],
        )
        columns = ", ".join(_COLUMNS)
        made = self._run(
            f"insert into {self._contacts} "
            f"({columns}, first_seen_at_utc, last_seen_at_utc, is_deleted, deleted_at_utc, row_hash) "
            f"select {columns}, $1::timestamptz, $1::timestamptz, k.erased_at_utc is not null, k.erased_at_utc, 0 "
            f"from {relation} k where not exists (select 1 from {self._contacts} t where {_same(_KEY)}) returning 1",
            [now, *values],
        )
        return len(found) + len(made)

    def drop_contacts(self) -> int:
        """Remove every contact, but not the marks of erased ones; how many."""
        return len(self._run(f"delete from {self._contacts} where erased_at_utc is null returning 1", []))

    def drop_payloads(self, bookings: Collection[BookingKey] | None, single: Collection[ContactKey] = ()) -> int:
        """Remove the payloads of these bookings (None: of all), and single ones by connection, uuid, hash; how many."""
        if bookings is None:
            return len(self._run(f"delete from {self._records} where resource = 'booking' returning 1", []))
        gone = 0
        for keys, columns in ((bookings, _RECORD), (single, (*_RECORD, "payload_hash"))):
            if keys:
                relation, values = _keys(keys, columns)
                found = self._run(
                    f"delete from {self._records} as t using {relation} k "
                    f"where t.resource = 'booking' and {_same(columns)} returning 1",
                    values,
                )
                gone += len(found)
        return gone

    def bookings(self, bookings: Collection[BookingKey]) -> list[BookingScrub]:
        """The texts of bookings in `core` that may repeat a person's."""
        relation, values = _keys(bookings, ("connection_id", "booking_uuid"))
        found = self._run(
            "select t.connection_id, t.booking_uuid, false, t.supplier_reference, t.reseller_reference, "
            f"t.cancellation_reason from core.bookings t join {relation} k on {_same(('connection_id', 'booking_uuid'))}",
            values,
        )
        return [BookingScrub(*row) for row in found]

    def items(self, bookings: Collection[BookingKey]) -> list[ItemScrub]:
        """The same of their unit items."""
        relation, values = _keys(bookings, ("connection_id", "booking_uuid"))
        found = self._run(
            "select t.connection_id, t.booking_uuid, t.unit_item_uuid, t.supplier_reference, t.reseller_reference "
            f"from core.booking_unit_items t join {relation} k on {_same(('connection_id', 'booking_uuid'))}",
            values,
        )
        return [ItemScrub(*row) for row in found]

    def named(self, uuids: Collection[str]) -> list[BookingKey]:
        """The bookings of any connection that have one of these uuids."""
        relation, values = _keys([(uuid,) for uuid in uuids], ("uuid",))
        found = self._run(
            f"select connection_id, booking_uuid from core.bookings join {relation} k on booking_uuid = k.uuid "
            f"union select connection_id, booking_uuid from {self._contacts} join {relation} k on booking_uuid = k.uuid "
            f"union select connection_id, key from {self._records} join {relation} k on key = k.uuid "
            "where resource = 'booking'",
            values,
        )
        return [(connection, uuid) for connection, uuid in found]

    def scrub_bookings(self, bookings: Sequence[BookingScrub], items: Sequence[ItemScrub]) -> int:
        """Give the rows in `core` these texts; how many bookings. They are looked at anew with the next answer."""
        if not bookings:
            return 0
        relation, values = _given(bookings, BookingScrub)
        found = self._run(
            "update core.bookings as t set contact_key = case when k.loses_key then null else t.contact_key end, "
            "cancellation_reason = k.cancellation_reason, supplier_reference = k.supplier_reference, "
            f"reseller_reference = k.reseller_reference, payload_digest = null from {relation} k "
            f"where {_same(('connection_id', 'booking_uuid'))} returning 1",
            values,
        )
        if items:
            relation, values = _given(items, ItemScrub)
            self._run(
                "update core.booking_unit_items as t set supplier_reference = k.supplier_reference, "
                f"reseller_reference = k.reseller_reference from {relation} k where {_same(_KEY)} returning 1",
                values,
            )
        return len(found)

    def forget_keys(self) -> int:
        """Remove the keyed hash of every booking's contact from `core`; how many."""
        return len(
            self._run("update core.bookings set contact_key = null where contact_key is not null returning 1", [])
        )
