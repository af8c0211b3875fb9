"""Silence: whether a connection's webhooks have gone quiet, measured by its own rhythm.

Nothing announces that deliveries have stopped. So a pause is held against the pauses that were normal: one that is twice as
long as the longest of the two weeks before it, and an hour at least, is silence. Nights and week-ends are in the longest pause.

Deliveries are not kept for ever, and a silence may outlast them: what it is held against is noted in time.
"""

import itertools
import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from octo_sync.flows.webhooks import canary
from octo_sync.journal import DeliveryCount, Journal
from octo_sync.model import Clock

LEARNED_FROM = timedelta(days=14)
"""Before the last delivery: a silence must not be learned from."""
_NOTED = "webhook_rhythm"
"""The journal's setting of a connection that is quiet: its last delivery, and its usual pause in seconds."""
_ENOUGH = 20
"""Deliveries without which there is no rhythm yet."""
_LEAST = timedelta(hours=1)
_TIMES = 2


def usual_pause(counts: Sequence[DeliveryCount]) -> timedelta | None:
    """The longest pause between two deliveries, from counts per hour of one connection; None when too few came. Pure."""
    if sum(c.deliveries for c in counts) < _ENOUGH:
        return None
    hours = sorted(c.hour for c in counts)
    return max((b - a for a, b in itertools.pairwise(hours)), default=timedelta())


def silent_for(
    usual: timedelta | None, last: datetime | None, now: datetime, *, after: float = 0.0
) -> timedelta | None:
    """How long a connection has been silent, when that is longer than it should be; otherwise None. Pure.

    Args:
        usual: Its longest pause before the last delivery; None: there is no rhythm yet.
        last: When the last one came; None: never, which is no silence.
        now: Now.
        after: Seconds that count as silence; 0: by its own rhythm.
    """
    if last is None:
        return None
    pause = now - last
    if after:
        return pause if pause > timedelta(seconds=after) else None
    return pause if usual is not None and pause > max(_LEAST, usual * _TIMES) else None


def silences(journal: Journal, connections: Sequence[str], clock: Clock, *, after: float = 0.0) -> dict[str, timedelta]:
    """The connections that are silent and have an open address, each with how long. Blocking.

    A canary of which nobody told is silence, whatever the rhythm.
    """
    now = clock.now()
    found: dict[str, timedelta] = {}
    for name in _listening(journal, connections):
        if (since := canary.untold_since(journal, name)) is not None:
            found[name] = now - since
            continue
        last, usual = _rhythm(journal, name)
        pause = silent_for(usual, last, now, after=after)
        if pause is not None:
            found[name] = pause
    return found


def note_rhythms(journal: Journal, connections: Sequence[str], clock: Clock) -> None:
    """Note the rhythm of connections that have become quiet, before the deliveries that it is known from go. Blocking."""
    now, listening, noted = clock.now(), _listening(journal, connections), journal.settings.everywhere(_NOTED)
    for name in noted.keys() & (set(connections) - set(listening)):
        # Nothing is expected of it any more, nor of what it was when it is switched on again.
        journal.settings.set(_NOTED, None, connection=name)
    for name in listening:
        last, usual = _rhythm(journal, name)
        if last is None or now - last <= _LEAST:
            continue
        rhythm = json.dumps([last.isoformat(), usual.total_seconds() if usual is not None else None])
        if noted.get(name) != rhythm:
            journal.settings.set(_NOTED, rhythm, connection=name)


def _listening(journal: Journal, connections: Sequence[str]) -> list[str]:
    has_address = {row.connection for row in journal.endpoints.rows()}
    return [name for name in connections if name in has_address]


def _rhythm(journal: Journal, connection: str) -> tuple[datetime | None, timedelta | None]:
    """When the last delivery came, and the usual pause before it."""
    last = journal.inbox.last_delivery_at(connection)
    noted = json.loads(journal.settings.get(_NOTED, connection=connection) or "null")
    if noted:
        then, seconds = datetime.fromisoformat(noted[0]), noted[1]
        if last is None or last == then:
            return then, None if seconds is None else timedelta(seconds=seconds)
    if last is None:
        return None, None
    return last, usual_pause(journal.inbox.counts(last - LEARNED_FROM, connection=connection))
