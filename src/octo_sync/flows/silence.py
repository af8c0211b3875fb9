"""Silence: whether a connection's webhooks have gone quiet, measured by its own rhythm.

Nothing announces that deliveries have stopped. So a pause is held against the pauses that were normal: one that is twice as
long as the longest of the last two weeks, and an hour at least, is silence. Nights and week-ends are in the longest pause.
"""

import itertools
from collections.abc import Sequence
from datetime import datetime, timedelta

from octo_sync.journal import DeliveryCount, Journal
from octo_sync.model import Clock

__all__ = ["LEARNED_FROM", "silences", "silent_for", "usual_pause"]

LEARNED_FROM = timedelta(days=14)
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
    counts: Sequence[DeliveryCount], last: datetime | None, now: datetime, *, after: float = 0.0
) -> timedelta | None:
    """How long a connection has been silent, when that is longer than it should be; otherwise None. Pure.

    Args:
        counts: Its deliveries per hour of `LEARNED_FROM`.
        last: When the last one came; None: never, which is no silence.
        now: Now.
        after: Seconds that count as silence; 0: by its own rhythm.
    """
    if last is None:
        return None
    pause = now - last
    if after:
        return pause if pause > timedelta(seconds=after) else None
    usual = usual_pause(counts)
    return pause if usual is not None and pause > max(_LEAST, usual * _TIMES) else None


def silences(journal: Journal, connections: Sequence[str], clock: Clock, *, after: float = 0.0) -> dict[str, timedelta]:
    """The connections that are silent and have an open address, each with how long. Blocking."""
    now = clock.now()
    listening = {row.connection for row in journal.endpoints()}
    found: dict[str, timedelta] = {}
    for name in connections:
        if name in listening:
            counts = journal.delivery_counts(now - LEARNED_FROM, connection=name)
            pause = silent_for(counts, journal.last_delivery_at(name), now, after=after)
            if pause is not None:
                found[name] = pause
    return found
