"""Find what a project holds of a person: contacts by keyed hash, what repeats them, and payloads of any age."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from octo_sync.destinations.erasing import BookingKey, ContactKey, ContactRow, Scrubber, StoredPayload
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.naming import marks_of, texts_of
from octo_sync.journal import Erasure
from octo_sync.octo.records import Contact

_COLUMNS = dict(zip(Contact.__struct_encode_fields__, Contact.__struct_fields__, strict=True))
"""OCTO's name of each part of a contact → ours."""


@dataclass(slots=True)
class Found:
    """What is somebody's. `contacts` are theirs; of the bookings these are in, free texts and payloads go too."""

    contacts: set[ContactKey] = field(default_factory=set)
    whole: set[BookingKey] = field(default_factory=set)
    """Bookings that were asked for with everybody on them."""
    names: dict[BookingKey, set[str]] = field(default_factory=dict)
    """Hashes of the names that are theirs in a booking."""
    live: int = 0
    """Contacts that are still there."""
    without_notes: list[ContactRow] = field(default_factory=list)
    """Contacts of others in these bookings, as they are to be; a ticket's contact has notes of its own."""
    mentioned: set[BookingKey] = field(default_factory=set)
    """Bookings of others whose notes hold their e-mail address."""
    payloads: set[ContactKey] = field(default_factory=set)
    """Payloads of other bookings that hold them, or their e-mail address in a note: connection, uuid, hash."""
    once: set[BookingKey] = field(default_factory=set)
    """Other bookings that were theirs once, as a payload says."""
    referring: set[BookingKey] = field(default_factory=set)
    """Bookings of anybody whose references or reason of cancellation hold their e-mail address."""
    marks: set[str] = field(default_factory=set)
    """What references of their bookings may repeat."""
    texts: list[str] = field(default_factory=list)
    """What tells who it is."""
    notes: list[str] = field(default_factory=list)

    @property
    def bookings(self) -> list[BookingKey]:
        """The bookings that say something of them."""
        return sorted({(connection, uuid) for connection, uuid, _ in self.contacts} | self.mentioned)

    @property
    def own(self) -> set[BookingKey]:
        """The bookings that are theirs or were."""
        return {(connection, uuid) for connection, uuid, _ in self.contacts} | self.once


def find(scrubber: Scrubber, privacy: Privacy, asked: Erasure) -> Found:
    """Everything that is to go. `asked` may have been carried out in part: what it found then is found again.

    In one booking a contact of the same name is the same person; in another one it is not.
    """
    found = Found(contacts=set(asked.contacts or ()))
    found.whole = set(scrubber.named(asked.bookings)) if asked.bookings else set()
    found.contacts |= {(connection, uuid, "") for connection, uuid in found.whole}
    found.contacts |= {(i.connection_id, i.booking_uuid, i.unit_item_uuid) for i in scrubber.items(sorted(found.whole))}
    by_booking: dict[BookingKey, list[ContactRow]] = defaultdict(list)
    for row in scrubber.contacts():
        if row.erased_at_utc is None:
            by_booking[row.key[:2]].append(row)
    for booking, rows in by_booking.items():
        theirs = [r for r in rows if booking in found.whole or r.key in found.contacts or _is_asked(privacy, asked, r)]
        names = found.names[booking] = {privacy.name_key(r) for r in theirs} - {""}
        theirs += [r for r in rows if r not in theirs and privacy.name_key(r) in names]
        found.live += len(theirs)
        found.contacts |= {r.key for r in theirs}
        _note_texts(found, theirs)
        if not theirs and any(privacy.mentions(r.notes) for r in rows):
            found.mentioned.add(booking)
    touched = set(found.bookings)
    for booking in touched:
        for row in by_booking.get(booking, ()):
            if row.notes:
                found.notes.append(row.notes)
                if row.key not in found.contacts:
                    found.without_notes.append(replace(row, notes=None))
    found.referring = {booking for booking, text in scrubber.addressed() if privacy.mentions(text)}
    _look_into_payloads(scrubber, privacy, asked, touched, found)
    found.texts, found.notes = sorted(set(found.texts)), sorted(set(found.notes))
    return found


def _note_texts(found: Found, theirs: Iterable[ContactRow]) -> None:
    for contact in theirs:
        found.texts += texts_of(contact)
        found.marks |= marks_of(contact)


def _is_asked(privacy: Privacy, asked: Erasure, contact: ContactRow) -> bool:
    return privacy.is_one_of(contact, asked.people, key=asked.key)


def _look_into_payloads(
    scrubber: Scrubber, privacy: Privacy, asked: Erasure, touched: set[BookingKey], found: Found
) -> None:
    """A booking may have been somebody else's once: payloads are kept for each change.

    And they hold what no row does: the notes of a lead contact whose booking has notes of its own.
    """
    for stored in scrubber.payloads():
        booking = stored.connection_id, stored.booking_uuid
        record = json.loads(stored.payload)
        contacts = list(people_in(stored, record))
        theirs = [c for c in contacts if c.key in found.contacts or _is_asked(privacy, asked, c)]
        notes = [text for text in (record.get("notes"), *(c.notes for c in contacts)) if isinstance(text, str)]
        _note_texts(found, theirs)
        is_told = booking in touched or bool(theirs) or any(map(privacy.mentions, notes))
        if is_told:
            found.notes += filter(None, notes)
        if booking not in touched and (is_told or any(map(privacy.mentions, _references_in(record)))):
            found.payloads.add((*booking, stored.payload_hash))
        if booking not in touched and theirs:
            found.once.add(booking)


def _references_in(record: Mapping[str, Any]) -> Iterator[object]:
    """The references of a booking as received, and the reason of its cancellation."""
    items, cancellation = record.get("unitItems"), record.get("cancellation")
    for owner in (record, *(items if isinstance(items, list) else ())):
        if isinstance(owner, dict):
            yield from (owner.get(name) for name in ("supplierReference", "resellerReference"))
    if isinstance(cancellation, dict):
        yield cancellation.get("reason")


def people_in(stored: StoredPayload, record: Mapping[str, Any]) -> Iterator[ContactRow]:
    """The contacts in a booking as received; `record` is its payload, read."""
    items = record.get("unitItems")
    for owner in (record, *(items if isinstance(items, list) else ())):
        contact = owner.get("contact") if isinstance(owner, dict) else None
        if isinstance(contact, dict):
            item = "" if owner is record else str(owner.get("uuid", ""))
            yield contact_of((stored.connection_id, stored.booking_uuid, item), contact)


def contact_of(key: ContactKey, contact: Mapping[str, Any]) -> ContactRow:
    """A contact as received; what is no text is left out."""
    texts: dict[str, Any] = {
        _COLUMNS[n]: text for n, text in contact.items() if n in _COLUMNS and isinstance(text, str)
    }
    connection, booking, item = key
    return ContactRow(connection_id=connection, booking_uuid=booking, unit_item_uuid=item, **texts)
