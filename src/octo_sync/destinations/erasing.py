"""Take persons out of a warehouse: the SQL, in the words that DuckDB and PostgreSQL share.

What a destination adds: a transaction that checks the fence (`scrubbing`; on DuckDB it may write the private file or the
warehouse, not both), and that the bytes go too (`shed`), because both engines keep deleted rows on the disk for a while.
DuckDB: the file is written anew. PostgreSQL: `vacuum (full) private.booking_contacts, raw.records`, and for `core` also
bookings and unit items in `landing`, after the next publish also in `core`, with whatever marts are tables
(`shed_published`); its write-ahead log is recycled by checkpoints, and goes to archives and replicas, which are out of reach.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from typing import Any

from octo_sync.destinations.relations import Run, equal, given, sql

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
_AT_SIGNS = ("@", "\uff20", "\ufe6b", "%40")
_PAGE = 1000
"""Bookings whose payloads are in memory at the same time."""


def _given(rows: Sequence[Any], kind: type[Any], *, after: int = 0) -> tuple[str, list[list[Any]]]:
    """A select of rows of a kind, and its parameters; `after` is how many parameters come before."""
    columns = {f.name: _TYPES.get(f.name, "varchar") for f in fields(kind)}
    return given(columns, map(astuple, rows), after=after)


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
        found = self._run(f"select {', '.join(_KEY)} from {self._contacts} where erased_at_utc is not null", [])
        return [(connection, booking, item) for connection, booking, item in found]

    def payloads(self) -> Iterator[StoredPayload]:
        """Every payload of a booking, a bounded number at a time."""
        keys = self._run(f"select distinct key from {self._records} where resource = 'booking' order by key", [])
        for start in range(0, len(keys), _PAGE):
            some = [key for (key,) in keys[start : start + _PAGE]]
            for row in self._run(sql("payloads_of_bookings", records=self._records), [some]):
                yield StoredPayload(*row)

    def addressed(self) -> list[tuple[BookingKey, str]]:
        """The bookings in `core` with texts that may hold an e-mail address, and these texts."""
        found = self._run(sql("addressed"), list(_AT_SIGNS))
        return [((connection, uuid), text) for connection, uuid, text in found]

    def repeats(self, text: str, *, whole: bool = False) -> int:
        """How many contacts or payloads still hold a text, or have it as a whole value; large letters are as small ones."""
        names = (c for c in _COLUMNS if c not in (*_KEY, "erased_at_utc"))
        there = " or ".join(
            f"lower({name}) = lower($1)" if whole else f"position(lower($1) in lower({name})) > 0" for name in names
        )
        looks = sql("repeats", contacts=self._contacts, records=self._records, there=there)
        ((found,),) = self._run(looks, [text, f'"{text}"' if whole else text])
        return int(found)

    def replace_contacts(self, rows: Sequence[ContactRow], now: datetime) -> int:
        """Give these rows these values, and make those that are missing; how many.

        One with `erased_at_utc` is gone for good: the row that stays says so, and nothing else. The hash of each is
        cleared, so that the next answer is compared with nothing.
        """
        if not rows:
            return 0
        select, values = _given(rows, ContactRow, after=1)
        parts = {"contacts": self._contacts, "given": select, "same": equal(_KEY, "t", "k")}
        sets = ", ".join(f"{c} = k.{c}" for c in _COLUMNS if c not in _KEY)
        changed = self._run(sql("change_contacts", values=sets, **parts), [now, *values])
        made = self._run(sql("add_contacts", columns=", ".join(_COLUMNS), **parts), [now, *values])
        return len(changed) + len(made)

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
                select, values = given(columns, keys)
                found = self._run(
                    f"delete from {self._records} as t using ({select}) k "
                    f"where t.resource = 'booking' and {equal(columns, 't', 'k')} returning 1",
                    values,
                )
                gone += len(found)
        return gone

    def bookings(self, bookings: Collection[BookingKey]) -> list[BookingScrub]:
        """The texts of bookings in `core` that may repeat a person's."""
        return [BookingScrub(*row) for row in self._texts("bookings", BookingScrub, bookings)]

    def items(self, bookings: Collection[BookingKey]) -> list[ItemScrub]:
        """The same of their unit items."""
        return [ItemScrub(*row) for row in self._texts("booking_unit_items", ItemScrub, bookings)]

    def _texts(self, table: str, kind: type[Any], bookings: Collection[BookingKey]) -> list[tuple[Any, ...]]:
        """The columns of a kind, of these bookings."""
        select, values = given(_KEY[:2], bookings)
        columns = ", ".join("false" if f.name == "loses_key" else f"t.{f.name}" for f in fields(kind))
        return self._run(
            f"select {columns} from core.{table} t join ({select}) k on {equal(_KEY[:2], 't', 'k')}", values
        )

    def named(self, uuids: Collection[str]) -> list[BookingKey]:
        """The bookings of any connection that have one of these uuids."""
        select, values = given(("uuid",), [(uuid,) for uuid in uuids])
        parts = {"given": select, "contacts": self._contacts, "records": self._records}
        found = self._run(sql("named_bookings", **parts), values)
        return [(connection, uuid) for connection, uuid in found]

    def scrub_bookings(self, bookings: Sequence[BookingScrub], items: Sequence[ItemScrub]) -> int:
        """Give the rows in `core` these texts; how many bookings. They are looked at anew with the next answer."""
        if not bookings:
            return 0
        select, values = _given(bookings, BookingScrub)
        found = self._run(sql("scrub_bookings", given=select, same=equal(_KEY[:2], "t", "k")), values)
        if items:
            select, values = _given(items, ItemScrub)
            self._run(sql("scrub_items", given=select, same=equal(_KEY, "t", "k")), values)
        return len(found)

    def forget_keys(self) -> int:
        """Remove the keyed hash of every booking's contact from `core`; how many."""
        return len(
            self._run("update core.bookings set contact_key = null where contact_key is not null returning 1", [])
        )
