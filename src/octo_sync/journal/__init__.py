"""The journal: what is owed, durably. `Journal.open(path, clock=clock)`; see `journal/root.py`."""

from octo_sync.journal.closings import ClosedBooking, ClosedTotal, Closing
from octo_sync.journal.copying import copy_journal, is_in_use, locked, move_rows
from octo_sync.journal.erasures import GONE, Erased, Erasure
from octo_sync.journal.lease import Lease
from octo_sync.journal.models import (
    AcceptanceRow,
    Act,
    Delivery,
    EndpointRow,
    FoundDifference,
    LeaseRow,
    ReconciliationRun,
    Run,
    StoredDifference,
)
from octo_sync.journal.root import Journal
from octo_sync.journal.rows import (
    DeliveryCount,
    DifferenceCount,
    EndStatus,
    Months,
    QuarantineEntry,
    Received,
    Timer,
)
from octo_sync.journal.share import Share, join
from octo_sync.journal.store import newest_schema

__all__ = [
    "GONE",
    "AcceptanceRow",
    "Act",
    "ClosedBooking",
    "ClosedTotal",
    "Closing",
    "Delivery",
    "DeliveryCount",
    "DifferenceCount",
    "EndStatus",
    "EndpointRow",
    "Erased",
    "Erasure",
    "FoundDifference",
    "Journal",
    "Lease",
    "LeaseRow",
    "Months",
    "QuarantineEntry",
    "Received",
    "ReconciliationRun",
    "Run",
    "Share",
    "StoredDifference",
    "Timer",
    "copy_journal",
    "is_in_use",
    "join",
    "locked",
    "move_rows",
    "newest_schema",
]
