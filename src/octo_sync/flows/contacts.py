"""What may be kept of a person: the pipeline's rule, the project's secret, and who was erased.

Every booking passes the screen before anything of it is staged or kept (`checking.Screen`), so there is one place where a
name can be stopped. Persons are known by keyed hashes alone: HMAC-SHA256 of the normalised e-mail address or telephone
number under a secret of the project, cut to 128 bits. Without the secret, which stays in the journal, they say nothing.
Who was erased in a project that a backup has replaced since is known under that project's secret (`key`), beside our own.
"""

import hmac
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from random import Random
from typing import Any, Literal

from octo_sync.destinations.erasing import BookingKey, ContactKey
from octo_sync.flows.naming import (
    HASH,
    Contact,
    addresses_in,
    former_phone,
    marks_of,
    name_of,
    normal_phone,
    normal_text,
    repeats,
    text_of,
)
from octo_sync.journal import Erasure, Journal
from octo_sync.octo.checking import Screen, Screened
from octo_sync.octo.records import Booking

Mode = Literal["keep", "hash", "drop"]
_HASHED_FIELDS = ("first_name", "last_name", "email_address", "phone_number", "country", "postal_code")
REFERENCES = ("supplier_reference", "reseller_reference")
_SECRET_BYTES = 32


class Privacy:
    """Screens bookings for one project.

    `lock` is held while something lands and while something is erased, `number` grows with every erasure, and with whatever
    else changes rows beside the landings: an answer that was read before is not landed after it.

    Args:
        mode: The pipeline's `pii`.
        secret: The project's key for hashes.
    """

    def __init__(self, mode: Mode, secret: bytes) -> None:
        self.mode: Mode = mode
        self.lock = threading.RLock()
        self.number = 0
        self.known: list[Erasure] = []
        """Those that it was opened with."""
        self._secret = secret
        self._people: dict[bytes, set[str]] = {}
        self._bookings: set[str] = set()
        self._contacts: Mapping[BookingKey, set[str]] = defaultdict(set)
        self._references: Mapping[BookingKey, set[tuple[bytes, str]]] = defaultdict(set)
        """Keyed hashes of those that were removed, with their key."""

    @classmethod
    def open(cls, mode: Mode, journal: Journal, random: Random, contacts: Iterable[ContactKey] = ()) -> "Privacy":
        """The privacy of the journal's project; `contacts` are those that the warehouse knows to be erased."""
        secret = journal.erasures.secret(lambda: random.randbytes(_SECRET_BYTES).hex())
        found = cls(mode, bytes.fromhex(secret))
        found.forget(contacts)
        found.known = journal.erasures.rows()
        for erasure in found.known:
            found.take(erasure)
        return found

    def take(self, erasure: Erasure) -> None:
        """From now on nothing is let through of what was asked for, and of what was found of it."""
        with self.lock:
            if erasure.people:
                self._people.setdefault(self._key(erasure.key), set()).update(erasure.people)
            self._bookings |= {uuid.casefold() for uuid in erasure.bookings}
            for connection, uuid, hashed in erasure.references:
                self._references[connection, uuid.casefold()].add((self._key(erasure.key), hashed))
            self.forget(erasure.contacts or ())

    def forget(self, contacts: Iterable[ContactKey]) -> None:
        """From now on nothing of these contacts is let through."""
        with self.lock:
            self.number += 1
            for connection, uuid, item in contacts:
                self._contacts[connection, uuid.casefold()].add(item.casefold())

    # -- who it is ----------------------------------------------------------------------------------------------

    def _key(self, key: str | None) -> bytes:
        return self._secret if key is None else bytes.fromhex(key)

    def hash(self, kind: str, text: str, *, secret: bytes | None = None) -> str:
        """Keyed hash of a text; `kind` keeps equal texts of different meaning apart. A hash stays as it is."""
        if HASH.fullmatch(text):
            return text
        return hmac.digest(secret or self._secret, f"{kind}:{text}".encode(), "sha256").hex()[:32]

    def email_key(self, text: str, *, secret: bytes | None = None) -> str | None:
        """The person behind an e-mail address, or None when there is none."""
        normal = normal_text(text)
        return self.hash("email", normal, secret=secret) if normal else None

    def phone_key(self, text: str, *, secret: bytes | None = None) -> str | None:
        """The person behind a telephone number, or None when there is none."""
        if HASH.fullmatch(text):
            return text
        normal = normal_phone(text)
        return self.hash("phone", normal, secret=secret) if normal else None

    def keys(self, contact: Contact, *, secret: bytes | None = None) -> list[str]:
        """The hashes a contact is known by: of its e-mail address, then of its telephone number."""
        phone = text_of(contact.phone_number)
        found = [self.email_key(text_of(contact.email_address), secret=secret), self.phone_key(phone, secret=secret)]
        if (former := former_phone(phone)) != normal_phone(phone):
            found.append(self.hash("phone", former, secret=secret))
        return [key for key in found if key]

    def is_one_of(self, contact: Contact, people: Collection[str], *, key: str | None = None) -> bool:
        """Whether a contact's e-mail address or telephone number is one of these; `key` as `Erasure` has it."""
        return bool(people) and not set(people).isdisjoint(self.keys(contact, secret=self._key(key)))

    def people(self, emails: Iterable[str], phones: Iterable[str]) -> list[str]:
        """The hashes of persons as a user names them.

        Raises:
            ValueError: One is no e-mail address or telephone number; the text is not repeated.
        """
        keys = [("an e-mail address", self.email_key(text) if "@" in text else None) for text in emails]
        keys += [("a telephone number", self.phone_key(text)) for text in phones]
        for what, key in keys:
            if key is None:
                raise ValueError(f"what was given as {what} is none")
        return [key for _, key in keys if key]

    def mentions(self, text: object) -> bool:
        """Whether a free text holds the e-mail address of somebody who was erased."""
        return bool(self._people) and any(
            self.email_key(address, secret=secret) in people
            for address in addresses_in(text_of(text))
            for secret, people in self._people.items()
        )

    def reference_key(self, booking: BookingKey, text: str, *, key: str | None = None) -> str:
        """What a reference that was removed from a booking is known by; `key` as `Erasure` has it."""
        return self._reference_key(booking, text, self._key(key))

    def _reference_key(self, booking: BookingKey, text: str, secret: bytes) -> str:
        return self.hash("reference", f"{booking[1].casefold()} {normal_text(text)}", secret=secret)

    def repeats(self, booking: BookingKey, reference: object, marks: Collection[str] = ()) -> bool:
        """Whether a booking's reference repeats one of the marks, or somebody who was erased, or was removed from it once.

        The last because who is erased may be made anonymous at the service, and nothing then tells what it repeats.
        """
        text, (connection, uuid) = text_of(reference), booking
        removed = self._references.get((connection, uuid.casefold()), ())
        return bool(text) and (
            repeats(text, marks)
            or self.mentions(text)
            or any(self._reference_key(booking, text, secret) == hashed for secret, hashed in removed)
        )

    def is_erased(self, contact: Contact) -> bool:
        """Whether it is somebody's who was erased."""
        return any(not people.isdisjoint(self.keys(contact, secret=key)) for key, people in self._people.items())

    def name_key(self, contact: Contact) -> str:
        """What makes two contacts of one booking the same person where nothing else is told; empty without a name."""
        name = normal_text(name_of(contact))
        return self.hash("full_name", name) if name else ""

    def reduced(self, contact: Contact) -> dict[str, Any]:
        """A contact as mode `hash` keeps it: the keyed hash of each value, notes and locales left out.

        `full_name` is there for whoever has a name at all, so that names are compared in this mode as in any other.
        """
        hashes = {name: self.hashed(name, getattr(contact, name)) for name in _HASHED_FIELDS}
        return {"full_name": self.name_key(contact) or None, **hashes, "notes": None, "locales": None}

    def hashed(self, field: str, text: object) -> str | None:
        """A text of a contact as mode `hash` keeps it; names in full are `name_key`'s."""
        plain = text_of(text)
        if not plain:
            return None
        if field == "email_address":
            return self.email_key(plain)
        if field == "phone_number":
            return self.phone_key(plain) or self.hash("phone", plain)
        return self.hash(field, normal_text(plain))

    # -- what passes --------------------------------------------------------------------------------------------

    def screen(self, connection: str) -> Screen:
        """What takes out of a connection's bookings what must not be kept."""
        return partial(self._screen, connection)

    def _screen(self, connection: str, record: Booking) -> Screened:
        erased = self._erased_items(connection, record)
        lead = record.contact or None
        keys = self.keys(lead) if lead and self.mode != "drop" and "" not in (erased or ()) else []
        marks = _take_out(record, erased) if erased is not None else set()
        is_cut = self._cut((connection, str(record.uuid)), record, marks)
        if self.mode != "keep":
            self._reduce(record)
        keeps_payload = self.mode == "keep" and erased is None and not is_cut
        return Screened(keys[0] if keys else None, keeps_payload=keeps_payload)

    def _erased_items(self, connection: str, record: Booking) -> set[str] | None:
        """The contacts of a booking that were erased, by unit item ('' = the booking's own); None: nothing was erased."""
        uuid = str(record.uuid).casefold()  # services change the case, and it is the same booking
        contacts = {"": record.contact or None}
        contacts |= {str(item.uuid): item.contact or None for item in record.unit_items or ()}
        if uuid in self._bookings:
            return set(contacts)
        known = self._contacts.get((connection, uuid))
        erased = {item for item in contacts if item.casefold() in (known or ())}
        erased |= {item for item, c in contacts.items() if c and self.is_erased(c)}
        if known is None and not erased and not self._mentions_somebody(record):
            return None
        names = {self.name_key(c) for item, c in contacts.items() if c and item in erased} - {""}
        return erased | {item for item, c in contacts.items() if c and self.name_key(c) in names}

    def _mentions_somebody(self, record: Booking) -> bool:
        """Whether a note of the booking or of any of its contacts does."""
        owners = (record, *(record.unit_items or ()))
        return any(self.mentions(text) for text in (record.notes, *(o.contact.notes for o in owners if o.contact)))

    def _cut(self, booking: BookingKey, record: Booking, marks: Collection[str]) -> bool:
        """Take out references that repeat an erased person, and a cancellation's reason with their address; whether any."""
        owners = (record, *(record.unit_items or ()))
        found = [(o, name) for o in owners for name in REFERENCES if self.repeats(booking, getattr(o, name), marks)]
        for owner, name in found:
            setattr(owner, name, None)
        cancellation = record.cancellation
        if not cancellation or not self.mentions(cancellation.reason):
            return bool(found)
        cancellation.reason = None
        return True

    def _reduce(self, record: Booking) -> None:
        """Modes `hash` and `drop`: no clear text of a person, and no free text."""
        record.notes = None
        if self.mode == "drop":
            record.contact = None
        for owner in (record, *(record.unit_items or ())):
            contact = owner.contact
            if not contact:
                continue
            if self.mode == "drop":
                owner.contact = None
                continue
            for name, value in self.reduced(contact).items():
                setattr(contact, name, value)


def _take_out(record: Booking, erased: Collection[str]) -> set[str]:
    """Erased contacts, the free texts of their booking, and notes of others' contacts too; the marks of the erased."""
    marks: set[str] = set()
    for owner in (record, *(record.unit_items or ())):
        item = "" if owner is record else str(owner.uuid)
        if owner.contact and item in erased:
            marks |= marks_of(owner.contact)
            owner.contact = None
        elif owner.contact:
            owner.contact.notes = None
    record.notes = None
    if record.cancellation:
        record.cancellation.reason = None
    return marks
