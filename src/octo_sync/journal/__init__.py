"""The journal: what is owed, durably. `Journal.open(path, clock=clock)`; see `journal/journal.py`."""

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

__all__ = [
    "Backlog",
    "Delivery",
    "DeliveryCount",
    "EndStatus",
    "EndpointRow",
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
]
