"""What was lost lately, in the journal: many small losses are a large one, by whichever road each came.

Deletions and values are noted apart, each as `[when, what, numbers…]`, one entry of a thing an hour.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from octo_sync.destinations.gate import Lost
from octo_sync.flows.ports import Ports

_REMEMBERED = timedelta(hours=24)
"""How long a loss counts when the next ones are judged."""
_TOGETHER = timedelta(hours=1)
_ROWS, _VALUES = "deleted_lately", "values_lost_lately"


def rows_lost(ports: Ports) -> dict[tuple[str, str], int]:
    """(connection, table) → rows marked deleted; none since a person allowed it. Blocking."""
    return {key: rows for key, (rows,) in _lost(ports, _ROWS).items()}


def note_rows_lost(ports: Ports, rows: Mapping[tuple[str, str], int]) -> None:
    """Count more of them. Blocking."""
    # What a person has allowed says nothing about what may go next.
    _note(ports, _ROWS, {key: (count,) for key, count in rows.items()}, forget=ports.allow_deletions)


def values_lost(ports: Ports) -> Lost:
    """Fields that rows lost because few did. Blocking."""
    found = {}
    for (connection, field), (lost, shown) in _lost(ports, _VALUES).items():
        noun, _, path = field.partition(".")
        found[connection, noun, path] = lost, shown
    return found


def note_values_lost(ports: Ports, lost: Lost) -> None:
    """Count more of them. Blocking."""
    _note(ports, _VALUES, {(connection, f"{noun}.{path}"): rows for (connection, noun, path), rows in lost.items()})


def _lost(ports: Ports, setting: str) -> dict[tuple[str, str], tuple[int, ...]]:
    found: dict[tuple[str, str], tuple[int, ...]] = {}
    for connection in ports.clients:
        for _, what, *numbers in _noted(ports, setting, connection):
            before = found.get((connection, what), (0,) * len(numbers))
            found[connection, what] = tuple(map(sum, zip(before, numbers, strict=True)))
    return found


def _noted(ports: Ports, setting: str, connection: str) -> list[list[Any]]:
    noted = json.loads(ports.journal.settings.get(setting, connection=connection) or "[]")
    return [entry for entry in noted if ports.clock.now() - datetime.fromisoformat(entry[0]) < _REMEMBERED]


def _note(ports: Ports, setting: str, counts: Mapping[tuple[str, str], Sequence[int]], *, forget: bool = False) -> None:
    now = ports.clock.now()
    for connection in {connection for connection, _ in counts}:
        noted = [] if forget else _noted(ports, setting, connection)
        since = {entry[1]: entry for entry in noted if now - datetime.fromisoformat(entry[0]) < _TOGETHER}
        for (name, what), numbers in sorted(counts.items()):
            if name != connection or forget:
                continue
            if entry := since.get(what):
                entry[2:] = map(sum, zip(entry[2:], numbers, strict=True))
            else:
                noted.append([now.isoformat(), what, *numbers])
        ports.journal.settings.set(setting, json.dumps(noted), connection=connection)
