"""What it costs to hand out work: claims, looks at what is due, marks, deliveries beside landings; of 1,000,000 owed subjects.

    PYTHONPATH=. uv run python benchmarks/claim.py [--connections 3000] [--subjects 334]

In a journal that is a file and in one on a PostgreSQL (the one of the tests, `fsync` off), one after the other.
"""

import argparse
import contextlib
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path

from tests.journal.helpers import HandClock
from tests.postgres import Server

from octo_sync.journal import Journal, Received
from octo_sync.model import Source, Subject, SubjectKind

LIMIT = 64
"""Subjects of one claim, as the worker claims."""
BATCH, LANDED = 8, 500
"""Deliveries of one batch, and subjects of one landing."""


def owed(connection: str, count: int) -> list[Subject]:
    """Its products' options by month, and its two documents."""
    months = [(f"p{n % 20:02}", f"o{n // 240}", f"2026-{n // 20 % 12 + 1:02}") for n in range(count - 2)]
    documents = [Subject(connection, kind) for kind in (SubjectKind.PRODUCTS, SubjectKind.SUPPLIER)]
    return [*documents, *(Subject(connection, SubjectKind.AVAILABILITY, parts) for parts in months)]


def measured(journal: Journal, names: list[str], count: int) -> None:
    """Mark all of them, then print what each question takes."""
    began = time.perf_counter()
    for name in names:
        journal.subjects.mark(owed(name, count), Source.SCHEDULE)
    marked = time.perf_counter() - began
    print(
        f"marked: {len(names) * count:,} subjects of {len(names):,} connections, {len(names) / marked:,.0f} marks a second"
    )
    for said, ask, times in (
        ("claim of one connection", lambda n: journal.subjects.claim(LIMIT, run_id="r", connections=[names[n]]), 200),
        ("which connections are due", lambda _: journal.subjects.due(), 20),
        ("mark of three subjects", lambda n: journal.subjects.mark(owed(names[n], 3), Source.NOTIFICATION), 200),
    ):
        taken = []
        for n in range(times):
            began = time.perf_counter()
            ask(n * len(names) // times)
            taken.append((time.perf_counter() - began) * 1000)
        print(f"{said:28} median {statistics.median(taken):7.2f} ms, largest {max(taken):7.2f} ms")


def deliver(journal: Journal, number: int) -> None:
    """A batch of deliveries about bookings, each with a confirming look."""
    now = HandClock().now()
    told = [Subject("shop", SubjectKind.BOOKING, (f"b{number}-{n}",)) for n in range(BATCH)]
    items = [
        Received(connection="shop", endpoint="e", received_at=now, body=b"{}", subjects=(one,), confirm_at=(now,))
        for one in told
    ]
    journal.inbox.accept(items)


def land(place: str, connections: list[str]) -> None:
    """Land what these connections owe, until killed."""
    with Journal.open(place, clock=HandClock()) as journal:
        for name in connections * 1000:
            claims = journal.subjects.claim(LANDED, run_id=name, connections=[name])
            journal.subjects.landed(claims, run_id=name)


def beside(journal: Journal, place: str, names: list[str]) -> None:
    """Print what a batch of deliveries takes while nobody, one or two others land."""
    for workers in range(3):
        landing = [
            multiprocessing.Process(target=land, args=(place, names[n::workers]), daemon=True) for n in range(workers)
        ]
        for process in landing:
            process.start()
        taken = []
        for n in range(300):
            began = time.perf_counter()
            deliver(journal, workers * 1000 + n)
            taken.append((time.perf_counter() - began) * 1000)
        for process in landing:
            assert process.is_alive()
            process.kill()
            process.join()
        print(
            f"{BATCH} deliveries, {workers} landing     median {statistics.median(taken):7.2f} ms, largest {max(taken):7.2f} ms"
        )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--connections", type=int, default=3000)
    options.add_argument("--subjects", type=int, default=334, help="of each connection")
    given = options.parse_args()
    names = [f"shop{number:05}" for number in range(given.connections)]
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = Server()
        stack.callback(server.remove)
        for engine, place in (("SQLite", folder / "journal.sqlite"), ("PostgreSQL", server.dsn(server.make("claims")))):
            print(f"\n{engine}")
            with Journal.open(place, clock=HandClock()) as journal:
                measured(journal, names, given.subjects)
                if engine == "PostgreSQL":
                    beside(journal, str(place), names)


if __name__ == "__main__":
    main()
