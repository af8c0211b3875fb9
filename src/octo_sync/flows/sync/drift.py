"""Fields that a service sends no more: told until they are back, or a person lets them go.

The warehouse knows what is missing (`ops.schema_drift`), the journal says it: as what is held back, so that exit codes,
`status` and notices need to know nothing new. A person's word goes the other way, through the journal, because somebody else
may be writing the warehouse.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime

from octo_sync.destinations.landing.losses import accepting, ending
from octo_sync.flows.ports import Ports
from octo_sync.journal import Journal, QuarantineEntry
from octo_sync.tables import all_tables

KEPT = "values-kept"
_ACCEPTED = "drift_accepted"
_MANY = 3
"""Fields of one object that are missing together are told as one."""


def tell_missing(ports: Ports, quarantined: Sequence[QuarantineEntry]) -> None:
    """Have quarantine say which fields are missing now. Blocking."""
    rows = ports.warehouse.query(
        "select connection_id, resource, name, first_seen_at_utc from ops.schema_drift "
        "where kind = 'missing' and accepted_at_utc is null order by 1, 2, 3"
    ).rows
    wanted: dict[tuple[str, str], str] = {}
    for connection, noun, paths, since in _grouped(rows):
        wanted[connection, f"{noun}.{paths}"] = (
            f"`{connection}` sends no `{paths}` of {noun} any more, since {since:%Y-%m-%d}. The values from before are kept. "
            f"If they are to go, run `octo-sync drift --accept {noun}.{paths}`"
        )
    noted = {(q.connection, q.key): q for q in quarantined if q.resource == KEPT}
    ports.journal.quarantine.clear(noted[key] for key in noted.keys() - wanted.keys())
    for (connection, key), reason in wanted.items():
        if (connection, key) not in noted or noted[connection, key].reason != reason:
            ports.journal.quarantine.add_record(connection, KEPT, key, "", reason, ports.run_id)


def end_missing(ports: Ports) -> None:
    """Tell no more of fields that nothing lacks which is still asked for. Blocking."""
    rows = ports.warehouse.query(
        "select connection_id, resource, name from ops.schema_drift where kind = 'missing'"
    ).rows
    own = [row for row in rows if row[0] in ports.clients]
    if own:
        statements = [
            ending(all_tables(), *row, since=_asked_since(ports, *row[:2]), private=ports.warehouse.private)
            for row in own
        ]
        ports.warehouse.run_script(statements)


def _asked_since(ports: Ports, connection: str, noun: str) -> date:
    if noun == "bookings":
        return ports.bookings_window(connection).start
    # Wherever the product is.
    return ports.pipeline.horizons.availability.window(ports.today("Etc/GMT+12")).start


def _grouped(rows: Sequence[tuple[str, str, str, datetime]]) -> list[tuple[str, str, str, datetime]]:
    """The same with the fields of one object as that object."""
    objects: dict[tuple[str, str, str], list[tuple[str, datetime]]] = defaultdict(list)
    for connection, noun, path, since in rows:
        objects[connection, noun, path.rpartition(".")[0]].append((path, since))
    found = []
    for (connection, noun, parent), fields in objects.items():
        is_one = parent and len(fields) >= _MANY
        told = [(parent, min(since for _, since in fields))] if is_one else fields
        found += [(connection, noun, path, since) for path, since in told]
    return found


def accept(journal: Journal, path: str, connection: str | None = None) -> list[QuarantineEntry]:
    """Note that what is kept at a path may go: `bookings.utcUpdatedAt`, or without the noun. What is let through. Blocking."""
    chosen = [
        entry
        for entry in journal.quarantine.entries()
        if entry.resource == KEPT
        and connection in (None, entry.connection)
        and path in (entry.key, entry.key.partition(".")[2])
    ]
    for entry in chosen:
        is_noted = False
        while not is_noted:  # somebody else may accept another one, or the worker carry out what was accepted before
            noted = journal.settings.get(_ACCEPTED, connection=entry.connection)
            more = json.dumps(sorted({*json.loads(noted or "[]"), entry.key}))
            is_noted = journal.settings.replace(_ACCEPTED, noted, more, connection=entry.connection)
    journal.quarantine.clear(chosen)
    return chosen


def let_through(ports: Ports) -> None:
    """Do what persons have accepted: answers are read again, and then the values go. Blocking."""
    for connection, noted in sorted(ports.journal.settings.everywhere(_ACCEPTED).items()):
        if connection not in ports.clients:
            continue
        statements = [
            statement
            for noun, _, path in (key.partition(".") for key in json.loads(noted))
            for statement in accepting(connection, noun, path, ports.clock.now())
        ]
        with ports.privacy.lock:  # not between the reading of an answer and its landing
            ports.warehouse.run_script(statements)
            ports.privacy.number += 1
        ports.journal.settings.replace(_ACCEPTED, noted, None, connection=connection)
