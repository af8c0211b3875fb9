"""The journal: what is owed, durably. `Journal.open(path, clock=clock)`; see `journal/journal.py`."""

from octo_sync.journal.copying import copy_journal, is_in_use, locked
from octo_sync.journal.erasing import Erased, Erasure
from octo_sync.journal.journal import Journal
from octo_sync.journal.lease import Lease
from octo_sync.journal.rows import (
    Backlog,
    Delivery,
    DeliveryCount,
    EndpointRow,
    EndStatus,
    Freshness,
    LeaseRow,
    Months,
    QuarantineEntry,
    Received,
    Run,
    RunStatus,
    SubjectRow,
    Timer,
)
from octo_sync.journal.store import migrations

__all__ = [
    "Backlog",
    "Delivery",
    "DeliveryCount",
    "EndStatus",
    "EndpointRow",
    "Erased",
    "Erasure",
    "Freshness",
    "Journal",
    "Lease",
    "LeaseRow",
    "Months",
    "QuarantineEntry",
    "Received",
    "Run",
    "RunStatus",
    "SubjectRow",
    "Timer",
    "copy_journal",
    "is_in_use",
    "locked",
    "migrations",
]
