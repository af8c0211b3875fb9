"""Holds that the program made itself, to see whether webhooks tell of them: no guest's."""

from collections.abc import Mapping, Sequence
from typing import Any

from octo_sync.dashboard.source import Source
from octo_sync.errors import OctoSyncError

_Rows = Sequence[Mapping[str, Any]]


def uuids(source: Source) -> frozenset[str]:
    """Those of late, by what the journal knows; none where it cannot tell."""
    try:
        return source.canaries() if source.canaries else frozenset()
    except OctoSyncError:
        return frozenset()


def without(own: frozenset[str], rows: _Rows) -> _Rows:
    """The rows of other bookings: a uuid is the same through each connection."""
    return [row for row in rows if row["booking_key"].rpartition("|")[2] not in own]
