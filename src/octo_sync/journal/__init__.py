"""The journal: what is owed, durably. `Journal.open(path, clock=clock)`; see `journal/journal.py`."""

from octo_sync.journal.journal import Journal
from octo_sync.journal.lease import Lease
from octo_sync.journal.rows import (
    Backlog,
    EndStatus,
    Freshness,
    LeaseRow,
    QuarantineEntry,
    Run,
    RunStatus,
    SubjectRow,
)

__all__ = [
    "Backlog",
    "EndStatus",
    "Freshness",
    "Journal",
    "Lease",
    "LeaseRow",
    "QuarantineEntry",
    "Run",
    "RunStatus",
    "SubjectRow",
]
