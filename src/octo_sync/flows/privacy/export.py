"""Everything the project holds about one person, for a machine to read: what a person may ask for by law."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from octo_sync.destinations.erasing import BookingKey, StoredPayload
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.ports import Ports
from octo_sync.flows.privacy.find import Found, contact_of, find
from octo_sync.journal import Erasure
from octo_sync.tables import all_tables
from octo_sync.tables.schema import Table

Judge = Callable[[Mapping[str, Any]], bool]
"""Whether a contact as received is theirs."""


def export(ports: Ports, people: Collection[str], bookings: Collection[str]) -> dict[str, Any]:
    """What is held about persons (as `Privacy.people` gives them) and whole bookings, as values for JSON. Blocking.

    Contacts of others who share a booking, or had it before, are left out: they are theirs. So are payloads in which only
    they are. Of a whole booking everything is given. Rows of `core` are given as they are.
    """
    asked = Erasure(id="0", people=tuple(people), bookings=tuple(bookings), requested_at=ports.clock.now())
    with ports.privacy.lock, ports.warehouse.scrubbing(ports.fence_of()) as scrubber:
        found = find(scrubber, ports.privacy, asked)
        kept = [row for row in scrubber.contacts() if row.erased_at_utc is None]
        contacts = [asdict(row) for row in kept if row.key in found.contacts]
        payloads = [p for stored in scrubber.payloads() if (p := _payload(stored, found, ports.privacy, people))]
    keys = found.bookings
    return {
        "exported_at": ports.clock.now(),
        "bookings": [{"connection_id": connection, "booking_uuid": uuid} for connection, uuid in keys],
        "private.booking_contacts": contacts,
        **{table.full_name: _rows(ports, table, keys) for table in all_tables() if _is_of_bookings(table)},
        "raw.records": payloads,
        "journal": {"deliveries": _deliveries(ports, found, people), "quarantine": _quarantined(ports, keys)},
    }


def _is_of_bookings(table: Table) -> bool:
    return table.schema == "core" and "booking_uuid" in {c.name for c in table.columns}


def _rows(ports: Ports, table: Table, keys: Collection[BookingKey]) -> list[dict[str, Any]]:
    given = "(select unnest($1::varchar[]) as connection_id, unnest($2::varchar[]) as booking_uuid) k"
    return ports.warehouse.query(
        f"select t.* from {table.full_name} t join {given} on t.connection_id = k.connection_id "  # noqa: S608 - our names
        "and t.booking_uuid = k.booking_uuid order by 1, 2",
        [[c for c, _ in keys], [b for _, b in keys]],
    ).records()


def _judge(found: Found, privacy: Privacy, people: Collection[str], booking: BookingKey, record: object) -> Judge:
    """What a contact in a record of a booking is judged by: itself. The place it stands in was another's once, perhaps."""
    if booking in found.whole:
        return lambda _: True
    named = [contact_of((*booking, ""), contact) for contact in _contacts(record)]
    names = {privacy.name_key(c) for c in named if privacy.is_one_of(c, people)} - {""}
    names |= found.names.get(booking, set())

    def is_theirs(contact: Mapping[str, Any]) -> bool:
        read = contact_of((*booking, ""), contact)
        return privacy.is_one_of(read, people) or privacy.name_key(read) in names

    return is_theirs


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """Every object in a record, at whatever depth, those around others first."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _objects(part)


def _contacts(record: object) -> list[dict[str, Any]]:
    """Every contact in a record."""
    return [contact for each in _objects(record) if isinstance(contact := each.get("contact"), dict)]


def _without_others(record: Any, is_theirs: Judge) -> Any:  # noqa: ANN401 - JSON of any shape
    """A record without the contacts that are not theirs, which are taken out of it."""
    for each in _objects(record):
        if isinstance(contact := each.get("contact"), dict) and not is_theirs(contact):
            each["contact"] = None
    return record


def _payload(stored: StoredPayload, found: Found, privacy: Privacy, people: Collection[str]) -> dict[str, Any] | None:
    """A payload without the contacts of others; None when it is not theirs, or only others are in it."""
    booking = stored.connection_id, stored.booking_uuid
    if booking not in found.bookings and (*booking, stored.payload_hash) not in found.payloads:
        return None
    record = json.loads(stored.payload)
    is_theirs, contacts = _judge(found, privacy, people, booking, record), _contacts(record)
    if contacts and not any(map(is_theirs, contacts)):
        return None
    return {
        "connection_id": stored.connection_id,
        "fetched_at_utc": stored.fetched_at_utc,
        "payload": _without_others(record, is_theirs),
    }


def _deliveries(ports: Ports, found: Found, people: Collection[str]) -> list[Mapping[str, Any]]:
    """Deliveries that name their bookings: ids by the agreement, so a contact in one is judged as in a payload."""
    keys = found.bookings
    given: list[Mapping[str, Any]] = []
    for delivery in ports.journal.inbox.all_deliveries() if keys else ():
        about = next((key for key in keys if key[1].encode() in delivery.body), None)
        if about is None:
            continue
        body = _body(delivery.body.decode(errors="replace"), found, ports.privacy, people, about)
        given.append({"received_at": delivery.received_at, "type": delivery.type, "body": body})
    return given


def _body(text: str, found: Found, privacy: Privacy, people: Collection[str], about: BookingKey) -> str:
    try:
        record = json.loads(text)
        is_theirs = _judge(found, privacy, people, about, record)
        if all(map(is_theirs, _contacts(record))):
            return text
        return json.dumps(_without_others(record, is_theirs), ensure_ascii=False)
    except (ValueError, RecursionError):
        # No JSON, or nested too deeply to be data: nothing in it is a contact.
        return text


def _quarantined(ports: Ports, keys: Collection[BookingKey]) -> list[Mapping[str, Any]]:
    uuids = {uuid for _, uuid in keys}
    return [
        {"key": q.key, "path": q.path, "reason": q.reason, "first_at": q.first_at}
        for q in ports.journal.quarantine.entries()
        if q.key in uuids or (q.subject is not None and uuids & set(q.subject.parts))
    ]
