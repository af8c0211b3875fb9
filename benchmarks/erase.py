"""How long it takes to forget one guest: 40,000 bookings, 120,000 tickets, 1,000,000 departures, on DuckDB.

    uv run --no-sync python benchmarks/erase.py [TIMES]

The warehouse is that of `warehouse.py`, with 160,000 contacts, 40,000 payloads and 1,000 deliveries beside it, and
published. A guest of three bookings, named in a reference too, is forgotten as `privacy erase` does it: found, taken out,
marts made, the files written anew and published, and the whole folder searched. Prints seconds; 60 are promised.
"""

import asyncio
import datetime as dt
import json
import os
import platform
import random
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from octo_sync.app.project import open_project
from octo_sync.flows.privacy.erase import erase, request
from octo_sync.flows.publish import publish
from octo_sync.journal import Received
from octo_sync.pipeline import load
from warehouse import FILL, NOW

PIPELINE = """\
[connections.main]
base_url = "http://127.0.0.1:9/octo/v1"
token = { env = "OCTO_BENCH_TOKEN", default = "none" }
"""
CONTACTS = """
insert into private.booking_contacts
  (connection_id, booking_uuid, unit_item_uuid, full_name, email_address, phone_number, country, first_seen_at_utc,
  last_seen_at_utc, is_deleted, row_hash)
select 'main', 'b' || n, case k when 0 then '' else 'i' || n || '-' || k end, 'Guest Number-' || (n // 3) || '-' || k,
  case k when 0 then 'guest' || (n // 3) || '@example.org' end, case k when 0 then '+4477' || (10000000 + n // 3) end, 'PT',
  timestamptz '2026-11-20 12:00:00+00', timestamptz '2026-11-20 12:00:00+00', false, n
from generate_series(0, 39999) as g(n) cross join generate_series(0, 3) as h(k)
"""
PAYLOADS = """
insert into raw.records (connection_id, resource, key, payload, payload_hash, fetched_at_utc, source)
select connection_id, 'booking', booking_uuid, '{"uuid": "' || booking_uuid || '", "contact": {"fullName": "' || full_name ||
  '", "emailAddress": "' || email_address || '", "phoneNumber": "' || phone_number || '"}, "unitItems": [' ||
  (select string_agg('{"uuid": "' || md5(booking_uuid || v) || '", "status": "CONFIRMED", "retail": ' || v || '}', ',')
   from generate_series(1, 30) as g(v)) || ']}', md5(booking_uuid), timestamptz '2026-11-20 12:00:00+00', 'schedule'
from private.booking_contacts where unit_item_uuid = ''
"""
REFERENCES = """
update core.bookings set reseller_reference = 'for Guest Number-' || (cast(substr(booking_uuid, 2) as bigint) // 3) || '-0'
where cast(substr(booking_uuid, 2) as bigint) % 30 = 0
"""


class Clock:
    """The real time that passes, from the day of the data on."""

    def __init__(self):
        self._began = time.monotonic()

    def now(self):
        return NOW + dt.timedelta(seconds=time.monotonic() - self._began)


def opened(folder):
    pipeline = load(folder / "pipelines" / "bench.toml", directory=folder, environ={}, overrides={})
    return open_project(pipeline, command="benchmark", clock=Clock(), random=random.Random(7))


async def fill(folder):
    """A published project, as pulls and webhooks would have left it."""
    (folder / "pipelines").mkdir()
    (folder / "pipelines" / "bench.toml").write_text(PIPELINE)
    async with opened(folder) as project:
        for statement in FILL.read_text(encoding="utf-8").split(";\n"):
            if "insert" in statement:
                project.warehouse.run_script([statement])
        project.warehouse.run_script([REFERENCES])
        told = [{"uuid": f"b{n}", "contact": {"fullName": f"Guest Number-{n // 3}-0"}} for n in range(1000)]
        project.journal.inbox.accept(
            [
                Received(
                    connection="main",
                    endpoint="e",
                    received_at=NOW,
                    body=json.dumps({"data": data}).encode(),
                    type="BOOKING_UPDATE",
                )
                for data in told
            ]
        )
    with duckdb.connect(folder / "octo.private.duckdb") as db:
        db.execute(CONTACTS)
        db.execute(PAYLOADS)
    async with opened(folder) as project:
        published = publish(project.warehouse, folder, folder / "octo.read.duckdb")
        assert published.size, [failed.check.name for failed in published.failed]
    for file in sorted(folder.glob("octo.*")):
        print(f"{file.name}: {file.stat().st_size / 1e6:,.1f} MB")


async def forget(folder, guest):
    """Seconds from the request to its end, processor time of this process among them, and how it went."""
    async with opened(folder) as project:
        began, used = time.perf_counter(), time.process_time()
        request(project.journal, project.ports.privacy, emails=[f"guest{guest}@example.org"], phones=[], bookings=[])
        (done,) = await asyncio.to_thread(erase, project.ports)
        took, used = time.perf_counter() - began, time.process_time() - used
    assert done.done_at is not None
    assert not done.left, done.left
    assert done.counts["private.booking_contacts"] >= 3
    assert done.counts["raw.records"] >= 3
    return took, used, done.counts


async def main(times):
    print(f"{platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await fill(folder)
        seconds = []
        for number in range(times):
            took, used, counts = await forget(folder, 10 + 100 * number)
            seconds.append(took)
            print(f"one guest forgotten in {took:.2f} s ({used:.2f} s of processor time): {dict(counts)}")
        print(f"median of {times}: {sorted(seconds)[times // 2]:.2f} s, longest {max(seconds):.2f} s (60 s promised)")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
