"""How long one booking takes from "look again" to its committed row, on a warehouse with millions of departures.

    uv run --no-sync python benchmarks/refresh.py --size large --times 200

A booking is changed at the service, then its subject is marked and worked until clean, the way a notification or a user's
command does it: mark in the journal, claim, GET, check, two warehouse transactions (private file, warehouse), journal.
After each the row is read back and must hold what was written at the service. The parts are timed inside the same runs.
"""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import common
from common import Service, median
from octo_sync.app.machine import environ
from octo_sync.app.project import open_project
from octo_sync.flows.sync.work import Worker
from octo_sync.model import Source, Subject, SubjectKind
from octo_sync.pipeline import load
from pull import project_options, pulled

if TYPE_CHECKING:
    from collections.abc import Callable


class Parts:
    """Adds up the time spent in chosen methods, per round."""

    def __init__(self) -> None:
        self.now: dict[str, float] = defaultdict(float)
        self.rounds: list[dict[str, float]] = []

    def close_round(self) -> None:
        self.rounds.append(dict(self.now))
        self.now.clear()

    def watch(self, owner: type, name: str, part: str) -> None:
        """Wrap a method of a class, synchronous or not."""
        original: Callable[..., Any] = getattr(owner, name)
        if asyncio.iscoroutinefunction(original):

            async def waited(*args: Any, **kwargs: Any) -> Any:
                started = time.perf_counter()
                try:
                    return await original(*args, **kwargs)
                finally:
                    self.now[part] += time.perf_counter() - started

            setattr(owner, name, waited)
            return

        def called(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                self.now[part] += time.perf_counter() - started

        setattr(owner, name, called)


def fsync_floor(folder: Path, times: int = 200) -> list[float]:
    """Append 4 KB and fsync: what any durable commit costs at least on this disk."""
    found = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(times):
            started = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            found.append(time.perf_counter() - started)
    return found


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def refresh(folder: Path, service: Service, times: int, warm_up: int) -> tuple[list[float], Parts, int]:
    pipeline = load(folder / "pipelines" / "bench.toml", directory=folder, environ=environ(), overrides={})
    rng = random.Random(7)
    spent: list[float] = []
    parts = Parts()
    async with open_project(pipeline, command="benchmark") as project:
        ports = project.ports
        name = next(iter(ports.clients))
        parts.watch(type(ports.clients[name]), "send", "HTTP: request and whole answer")
        parts.watch(type(ports.warehouse), "land", "warehouse: check to commit, both files")
        for noun, methods in {
            "subjects": ("mark", "claim", "landed", "backlog", "next_due_at"),
            "quarantine": ("clear",),
            "numbers": ("reserve",),
            "settings": ("get",),
        }.items():
            for method in methods:
                parts.watch(type(getattr(ports.journal, noun)), method, "journal: mark, claim, landed, what is left")
        parts.watch(type(ports.warehouse), "covered", "warehouse: what was landed last")
        uuids = [r[0] for r in ports.warehouse.query("select booking_uuid from core.bookings order by 1").rows]
        slots = ports.warehouse.query("select count(*) from core.availability").rows[0][0]
        parts.now.clear()
        for number in range(warm_up + times):
            uuid, told = rng.choice(uuids), f"SR-{number:06d}"
            service.control(f"/admin/bookings/{uuid}", {"supplier_reference": told, "silent": True})
            started = time.perf_counter()
            ports.mark([Subject(name, SubjectKind.BOOKING, (uuid,))], Source.NOTIFICATION)
            await Worker(ports, kinds={SubjectKind.BOOKING}).drain()
            took = time.perf_counter() - started
            parts.close_round()
            row = ports.warehouse.query("select supplier_reference from core.bookings where booking_uuid = $1", [uuid])
            assert row.rows == [(told,)], (uuid, told, row.rows)
            parts.now.clear()
            if number >= warm_up:
                spent.append(took)
        parts.rounds = parts.rounds[warm_up:]
    return spent, parts, slots


def main() -> int:
    parser = project_options(__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--warm-up", type=int, default=10)
    options = parser.parse_args()
    print(f"# refresh: {common.machine()}\n")
    with pulled(options) as (folder, service):
        floor = fsync_floor(folder)
        spent, parts, slots = asyncio.run(refresh(folder, service, options.times, options.warm_up))
    print(
        f"{slots:,} departures in the warehouse; {len(spent)} refreshes, one after the other; load {os.getloadavg()[0]:.2f}.\n"
    )
    rows = [["mark → request → committed row", *_three(spent)]]
    names = list(dict.fromkeys(name for one in parts.rounds for name in one))
    rows += [[f"· {name}", *_three([one.get(name, 0.0) for one in parts.rounds])] for name in names]
    rows.append(["floor: 4 KB appended and fsynced", *_three(floor)])
    print(common.table(["", "median ms", "p90 ms", "p99 ms"], rows))
    return 0 if median(spent) <= 0.030 else 1


def _three(values: list[float]) -> list[str]:
    return [f"{v * 1000:.1f}" for v in (median(values), quantile(values, 0.9), quantile(values, 0.99))]


if __name__ == "__main__":
    sys.exit(main())
