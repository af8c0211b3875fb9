"""How long it takes from a delivery to its committed row, while notifications keep coming, on millions of departures.

    uv run --no-sync python benchmarks/notify.py --size large --rate 20 --seconds 30

A booking is changed at the service, then the delivery is posted to the receiver of a running `serve`, all of it in this
process: secret, journal, acknowledgement, worker, GET, check, two warehouse transactions. The clock runs from the first byte
sent until the transaction that holds the answer is committed. Confirming looks come as always and are not counted.
Every row is read back at the end. Wanted: median <= 150 ms, p99 <= 1 s.
"""

import argparse
import asyncio
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

import common
from common import Service, median
from octo_sync.app.machine import SystemClock, environ
from octo_sync.app.project import open_journal
from octo_sync.app.serve import Events, serve
from octo_sync.destinations.duckdb.publish import DuckDBDraft
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.model import SubjectKind
from octo_sync.pipeline import load
from pull import project_options, pulled
from refresh import quantile

if TYPE_CHECKING:
    from octo_sync.destinations.base import Landing, LandingReport
    from octo_sync.flows.sync.keep import Keeper

ENDPOINT, SECRET = "b" * 32, "benchmark"
MEDIAN, P99 = 0.150, 1.0


class Watched:
    """When each booking's delivery was sent, acknowledged, and its first answer after that committed."""

    def __init__(self) -> None:
        self.sent: dict[str, float] = {}
        self.acknowledged: dict[str, float] = {}
        self.committed: dict[str, float] = {}
        self.landings: list[float] = []
        self.published: list[float] = []

    def watch(self) -> None:
        original, original_publish = DuckDBWarehouse.land, DuckDBDraft.publish

        def land(warehouse: DuckDBWarehouse, landing: "Landing") -> "LandingReport":
            began = time.perf_counter()
            report = original(warehouse, landing)
            now = time.perf_counter()
            self.landings.append(now - began)
            for answered in landing.answered:
                subject = answered.subject
                if subject.kind is SubjectKind.BOOKING and subject.parts[0] in self.sent:
                    self.committed.setdefault(subject.parts[0], now)
            return report

        def publish(draft: DuckDBDraft) -> int:
            size = original_publish(draft)
            self.published.append(time.perf_counter())
            return size

        DuckDBWarehouse.land = land  # type: ignore[method-assign]
        DuckDBDraft.publish = publish  # type: ignore[method-assign]


async def notify(folder: Path, service: Service, options: argparse.Namespace) -> tuple[Watched, int, int]:
    overrides: dict[str, Any] = {"webhooks.bind": "127.0.0.1:0", "publish.enabled": options.publish}
    pipeline = load(folder / "pipelines" / "bench.toml", directory=folder, environ=environ(), overrides=overrides)
    with open_journal(pipeline, SystemClock()) as journal:
        name = pipeline.connections[0].name
        journal.endpoints.add(ENDPOINT, connection=name, secret_hash=hashlib.sha256(SECRET.encode()).hexdigest())
    watched, loop = Watched(), asyncio.get_running_loop()
    watched.watch()
    address, keeping = loop.create_future(), loop.create_future()
    program = asyncio.create_task(
        serve(pipeline, events=Events(listening=address.set_result, keeping=keeping.set_result))
    )
    url = f"{await asyncio.wait_for(address, 30)}/hooks/{ENDPOINT}"
    keeper: Keeper = await asyncio.wait_for(keeping, 60)
    warehouse = keeper.ports.warehouse
    slots = warehouse.query("select count(*) from core.availability").rows[0][0]
    found = warehouse.query("select booking_uuid from core.bookings where not is_deleted order by 1")
    uuids = random.Random(7).sample([row[0] for row in found.rows], round(options.rate * (options.seconds + 2)))
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:

        async def one(uuid: str, number: int) -> None:
            change = {"supplier_reference": f"SR-{number:06d}", "silent": True}
            await asyncio.to_thread(service.control, f"/admin/bookings/{uuid}", change)
            body = json.dumps({"notificationType": "BOOKING_UPDATE", "data": {"uuid": uuid}})
            watched.sent[uuid] = time.perf_counter()
            answer = await client.post(url, content=body, headers={"X-Octo-Sync-Secret": SECRET})
            assert answer.status_code == 200, answer
            watched.acknowledged[uuid] = time.perf_counter()

        began, tasks = loop.time(), []
        for number, uuid in enumerate(uuids):
            await asyncio.sleep(max(0.0, began + number / options.rate - loop.time()))
            tasks.append(asyncio.create_task(one(uuid, number)))
        await asyncio.gather(*tasks)
    async with asyncio.timeout(60):
        while len(watched.committed) < len(uuids):  # noqa: ASYNC110 - a landing has no event
            await asyncio.sleep(0.05)
    told = dict(warehouse.query("select booking_uuid, supplier_reference from core.bookings").rows)
    wrong = sum(told[uuid] != f"SR-{number:06d}" for number, uuid in enumerate(uuids))
    program.cancel()
    await asyncio.wait([program])
    for uuid in uuids[: 2 * round(options.rate)]:  # the first two seconds warm up
        del watched.sent[uuid]
    return watched, slots, wrong


def main() -> int:
    parser = project_options(__doc__)
    parser.add_argument("--rate", type=float, default=20, help="notifications per second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--no-publish", dest="publish", action="store_false", help="without read copies meanwhile")
    options = parser.parse_args()
    print(f"# notify: {common.machine()}\n")
    with pulled(options) as (folder, service):
        watched, slots, wrong = asyncio.run(notify(folder, service, options))
    first, last = min(watched.sent.values()), max(watched.committed.values())
    meanwhile = sum(first < at < last for at in watched.published)
    spent = [watched.committed[uuid] - at for uuid, at in watched.sent.items()]
    acknowledged = [watched.acknowledged[uuid] - at for uuid, at in watched.sent.items()]
    print(
        f"{slots:,} departures in the warehouse; {len(spent)} notifications at {options.rate:g}/s, {meanwhile} read copies "
        f"published meanwhile; {wrong} rows wrong at the end; load {os.getloadavg()[0]:.2f}.\n"
    )
    rows = [
        [what, *(f"{value * 1000:.1f}" for value in (median(v), quantile(v, 0.9), quantile(v, 0.99), max(v)))]
        for what, v in (
            ("delivery → committed row", spent),
            ("· delivery → 200", acknowledged),
            ("· a landing, both files", watched.landings),
        )
    ]
    print(common.table(["", "median ms", "p90 ms", "p99 ms", "max ms"], rows))
    return 0 if not wrong and median(spent) <= MEDIAN and quantile(spent, 0.99) <= P99 else 1


if __name__ == "__main__":
    sys.exit(main())
