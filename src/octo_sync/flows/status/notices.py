"""Notices: what a person has to know is told once, and again only after it was over.

Pure: what is so now (`conditions`), held against what was told (`Memory`), gives what is to be told (`events`). The journal
keeps the memory, so that neither a restart nor another process tells it twice.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from octo_sync.flows.status.report import ConnectionStatus, Status
from octo_sync.flows.wording import age
from octo_sync.journal import Journal, QuarantineEntry

Kind = Literal["stale", "quarantine", "subscription_lost", "webhooks_dead"]
KINDS: tuple[Kind, ...] = ("stale", "quarantine", "subscription_lost", "webhooks_dead")
"""What a notice can be about."""

Memory = Mapping[tuple[Kind, str], frozenset[str]]
"""What was told of each kind, per connection, and is not over."""

_MOST = 1000
"""Entries of a quarantine that are told apart; a quarantine of more has one reason, and is told once."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Condition:
    """What is so at one connection: of which things, in a sentence. `is_sure` that what is not among them is over."""

    things: frozenset[str]
    text: str
    details: Mapping[str, Any] = field(default_factory=dict)
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """Something that became so and was not told yet."""

    kind: Kind
    connection: str
    text: str
    details: Mapping[str, Any]


def conditions(found: Status, *, stale_after: float, has_webhooks: bool) -> dict[tuple[Kind, str], Condition]:
    """What is so, of every kind and connection; nothing, too. `stale_after` in seconds."""
    now: dict[tuple[Kind, str], Condition] = {}
    for connection in found.connections:
        name = connection.name
        now["stale", name] = _stale(connection, stale_after)
        entries = [entry for entry in found.quarantine if entry.connection == name]
        now["quarantine", name] = _quarantine(connection, entries)
        now["webhooks_dead", name] = _dead(connection)
        now["subscription_lost", name] = _lost(connection) if has_webhooks else Condition(frozenset(), "")
    return now


def _stale(connection: ConnectionStatus, stale_after: float) -> Condition:
    old = connection.staleness
    if old is None or old <= stale_after:
        return Condition(frozenset(), "")
    ago, limit = (age(timedelta(seconds=seconds)) for seconds in (old, stale_after))
    text = f"{connection.name}: a part of the horizon was last verified {ago} ago, longer than {limit}."
    return Condition(frozenset({"stale"}), text, {"staleness_seconds": round(old), "backlog": connection.backlog})


def _quarantine(connection: ConnectionStatus, entries: list[QuarantineEntry]) -> Condition:
    things = frozenset(_digest(entry) for entry in entries) if len(entries) <= _MOST else frozenset({"many"})
    # What is tried again has left the list and comes back to it: only when nothing is owed is it over.
    text = f"{connection.name}: {len(entries)} in quarantine; octo-sync quarantine lists them with their reasons."
    details = {
        "entries": len(entries),
        "newest": [
            {"resource": e.resource, "key": e.key, "path": e.path, "reason": e.reason}
            for e in sorted(entries, key=lambda e: e.first_at, reverse=True)[:_SHOWN]
        ],
    }
    return Condition(things, text, details, is_sure=connection.backlog == 0)


def _digest(entry: QuarantineEntry) -> str:
    text = json.dumps([entry.what, entry.resource, entry.key, entry.path])
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]


def _lost(connection: ConnectionStatus) -> Condition:
    if not connection.has_lost_subscription:
        return Condition(frozenset(), "")
    text = (
        f"{connection.name}: the subscription for webhooks is gone and could not be made again; pulls go on alone. "
        "octo-sync subscriptions ensure says why."
    )
    return Condition(frozenset({"lost"}), text, {"mended": False})


def _dead(connection: ConnectionStatus) -> Condition:
    canary = connection.webhooks.canary if connection.webhooks else None
    if canary is None or not canary.is_untold:
        # While a hold is waited for, or none can be made, nobody knows better than before.
        is_known = canary is None or canary.lag is not None
        return Condition(frozenset(), "", is_sure=is_known)
    text = f"{connection.name}: no webhook told of a hold that was made to be told; pulls go on more often."
    return Condition(frozenset({"dead"}), text, {"at": canary.at.isoformat()})


def events(before: Memory, now: Mapping[tuple[Kind, str], Condition]) -> tuple[list[Event], Memory]:
    """What is to be told, and what was told then. A connection that is no longer there is forgotten."""
    told: list[Event] = []
    after: dict[tuple[Kind, str], frozenset[str]] = {}
    for (kind, connection), condition in now.items():
        known = before.get((kind, connection), frozenset())
        if condition.things - known and not (kind == "quarantine" and "many" in known):
            told.append(Event(kind, connection, condition.text, condition.details))
        after[kind, connection] = condition.things if condition.is_sure else condition.things | known
    return told, after


def recall(journal: Journal, connections: list[str]) -> Memory:
    """What was told, from the journal. Blocking."""
    told = {(kind, c): journal.settings.get(f"told {kind}", connection=c) for c in connections for kind in KINDS}
    return {key: frozenset(json.loads(value or "[]")) for key, value in told.items()}


def remember(journal: Journal, before: Memory, after: Memory) -> None:
    """Keep what changed. Blocking."""
    for (kind, connection), things in after.items():
        if things != before.get((kind, connection), frozenset()):
            value = json.dumps(sorted(things)[: _MOST * 2]) if things else None
            journal.settings.set(f"told {kind}", value, connection=connection)
