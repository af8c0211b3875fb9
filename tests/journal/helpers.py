"""What the journal's tests share: a clock that is set by hand, subjects, programs run as other processes."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from octo_sync.journal import Journal, Received, postgres
from octo_sync.model import Subject, SubjectKind

ON_A_FILE = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
"""For tests about what only a file has: its bytes, its write-ahead log, its directory."""
ON_A_SERVER = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
NO_FILE = Path("unused")
"""A journal on a server needs none for its lock."""
NOON = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


class HandClock:
    """Stands still until it is moved."""

    def __init__(self, start: datetime = NOON) -> None:
        self.moment = start

    def now(self) -> datetime:
        return self.moment

    def forward(self, seconds: float) -> datetime:
        self.moment += timedelta(seconds=seconds)
        return self.moment


def booking(uuid: str = "b-1", connection: str = "acme") -> Subject:
    return Subject(connection, SubjectKind.BOOKING, (uuid,))


def bookings(count: int, connection: str = "acme") -> list[Subject]:
    return [booking(f"b-{number}", connection) for number in range(count)]


def availability(product: str, option: str, month: str, connection: str = "acme") -> Subject:
    return Subject(connection, SubjectKind.AVAILABILITY, (product, option, month))


def fail(journal: Journal, claim, *, retry_at=None, quarantine=False, code="ServiceUnavailable") -> None:
    journal.subjects.failed(
        claim, error_code=code, message="The service is down.", retry_at=retry_at, quarantine=quarantine, run_id="r"
    )


def impatient(journal: Journal) -> None:
    """Whoever has to wait for another process is told so at once."""
    with journal.reading() as connection:
        connection.exec_driver_sql("SET lock_timeout TO 50")


def plan(journal: Journal, statement: str, values: tuple[object, ...]) -> list[str]:
    """The steps that the journal's engine will take."""
    explain = "EXPLAIN" if isinstance(journal.path, str) else "EXPLAIN QUERY PLAN"
    with journal.reading() as connection:
        return [row[-1] for row in connection.exec_driver_sql(f"{explain} {statement}", values).all()]


def delivery(body: bytes) -> Received:
    """A delivery about one booking."""
    return Received(
        subjects=(booking(),), months=(), connection="acme", endpoint="e", body=body, received_at=HandClock().now(),
        confirm_at=(),
    )  # fmt: skip


def cut(admin) -> None:
    """End the session of every worker, as a network does that is gone."""
    admin.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objid = %s "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        [postgres._OURS, postgres._LEASE],
    )


PRELUDE = """
import os, sys, signal
from datetime import UTC, datetime
from pathlib import Path
from octo_sync.journal import Journal, Lease
from octo_sync.model import Source, Subject, SubjectKind
class Clock:
    def now(self): return datetime.now(UTC)
def booking(uuid): return Subject("acme", SubjectKind.BOOKING, (uuid,))
def say(text): print(text, flush=True)
place = sys.argv[1]
journal = Journal.open(place if "://" in place else Path(place), clock=Clock())
"""


def start(program: str, path: Path | str, *arguments: str) -> subprocess.Popen[str]:
    """Run the program in another process, with `journal` open at `path`."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + program, str(path), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=120)
