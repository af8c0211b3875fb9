"""Everything the project holds about one person, for a machine to read: what a person may ask for by law."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from octo_sync.destinations.erasing import BookingKey, ContactKey, StoredPayload
from octo_sync.flows.ports import Ports
from octo_sync.flows.privacy_find import Found, find
from octo_sync.journal import Erasure
from octo_sync.schema import Table
from octo_sync.tables import all_tables

__all__ = ["export"]


def export(ports: Ports, people: Collection[str], bookings: Collection[str]) -> dict[str, Any]:
    """What is held about persons (as `Privacy.people` gives them) and whole bookings, as values for JSON. Blocking.

    Contacts and payloads of others who share a booking are left out: they are theirs. Rows of `core` are given as they are.
    """
    asked = Erasure(id="0", people=tuple(people), bookings=tuple(bookings), requested_at=ports.clock.now())
    with ports.privacy.lock, ports.warehouse.scrubbing(ports.fence) as scrubber:
        found = find(scrubber, ports.privacy, asked)
        kept = [row for row in scrubber.contacts() if row.erased_at_utc is None]
        contacts = [asdict(row) for row in kept if row.key in found.contacts]
        payloads = [_payload(stored, found) for stored in scrubber.payloads() if _is_theirs(stored, found)]
    keys = found.bookings
    return {
        "exported_at": ports.clock.now(),
        "bookings": [{"connection_id": connection, "booking_uuid": uuid} for connection, uuid in keys],
        "private.booking_contacts": contacts,
        **{table.full_name: _rows(ports, table, keys) for table in all_tables() if _is_of_bookings(table)},
        "raw.records": payloads,
        "journal": {"deliveries": _deliveries(ports, keys), "quarantine": _quarantined(ports, keys)},
    }


def _is_of_bookings(table: Table) -> bool:
    return table.schema == "core" and "booking_uuid" in {c.name for c in table.columns}


def _is_theirs(stored: StoredPayload, found: Found) -> bool:
    booking = stored.connection_id, stored.booking_uuid
    return booking in found.bookings or (*booking, stored.payload_hash) in found.payloads


def _rows(ports: Ports, table: Table, keys: Collection[BookingKey]) -> list[dict[str, Any]]:
    given = "(select unnest($1::varchar[]) as connection_id, unnest($2::varchar[]) as booking_uuid) k"
    rows = ports.warehouse.query(
        f"select t.* from {table.full_name} t join {given} on t.connection_id = k.connection_id "  # noqa: S608 - our names
        "and t.booking_uuid = k.booking_uuid order by 1, 2",
        [[c for c, _ in keys], [b for _, b in keys]],
    )
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]


def _payload(stored: StoredPayload, found: Found) -> dict[str, Any]:
    """A payload without the contacts of others."""
    record: dict[str, Any] = json.loads(stored.payload)
    items = record.get("unitItems")
    for owner in (record, *(items if isinstance(items, list) else ())):
        if isinstance(owner, dict) and isinstance(owner.get("contact"), dict):
            item = "" if owner is record else str(owner.get("uuid", ""))
            key: ContactKey = (stored.connection_id, stored.booking_uuid, item)
            whole = (stored.connection_id, stored.booking_uuid, stored.payload_hash) in found.payloads
            if key not in found.contacts and not whole:
                owner["contact"] = None
    return {"connection_id": stored.connection_id, "fetched_at_utc": stored.fetched_at_utc, "payload": record}


def _deliveries(ports: Ports, keys: Collection[BookingKey]) -> list[Mapping[str, Any]]:
    uuids = [uuid.encode() for _, uuid in keys]
    return [
        {"received_at": d.received_at, "type": d.type, "body": d.body.decode(errors="replace")}
        for d in (ports.journal.all_deliveries() if uuids else ())
        if any(uuid in d.body for uuid in uuids)
    ]


def _quarantined(ports: Ports, keys: Collection[BookingKey]) -> list[Mapping[str, Any]]:
    uuids = {uuid for _, uuid in keys}
    return [
        {"key": q.key, "path": q.path, "reason": q.reason, "first_at": q.first_at}
        for q in ports.journal.quarantined()
        if q.key in uuids or (q.subject is not None and uuids & set(q.subject.parts))
    ]
