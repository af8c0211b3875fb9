"""The dashboard at the size of a busy operator: how long the server takes for a page of 40,000 bookings, 1,000,000 departures.

The copy is made by SQL, as for benchmarks/warehouse.py, and published; then every page is asked for through the application
itself, each time as if another copy had just been published, so that nothing is kept from the time before:

    uv run python benchmarks/dashboard.py
    uv run python benchmarks/dashboard.py --times 30 --keep /tmp/copy
"""

import argparse
import asyncio
import math
import statistics
import tempfile
import time
from pathlib import Path

import httpx

from common import machine, table
from octo_sync.dashboard import Dashboard, Source
from octo_sync.dashboard.app import all_pages
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.flows.publish import apply_marts
from octo_sync.tables import all_tables, nouns
from warehouse import FILL, NOW

LIMIT = 0.300
"""Seconds that the Overview may take: half of the tries are faster."""


def published(folder: Path) -> Path:
    """A published copy of that size; made once for a folder."""
    copy = folder / "octo.read.duckdb"
    if copy.exists():
        return copy
    warehouse = DuckDBWarehouse(
        folder / "octo.duckdb", folder / "octo.private.duckdb", tables=all_tables(), nouns=nouns(), now=NOW
    )
    statements = [s for s in FILL.read_text(encoding="utf-8").split(";\n") if "insert" in s]
    for statement in statements:
        warehouse.run_script([statement])
    with warehouse.drafting(copy) as draft:
        apply_marts(draft, folder)
        draft.publish()
    warehouse.close()
    return copy


async def measured(copy: Path, times: int) -> dict[str, tuple[list[float], int]]:
    """Seconds of each page's answers, and its size in bytes."""
    source = Source(copy, copy.parent, now=lambda: NOW)
    app = Dashboard(source, host="127.0.0.1")
    found: dict[str, tuple[list[float], int]] = {}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        for page in all_pages():
            seconds = []
            for _ in range(times + 1):
                app.forget()
                source.forget()
                began = time.perf_counter()
                answer = await client.get(f"/{page.path}")
                seconds.append(time.perf_counter() - began)
                assert answer.status_code == 200, (page.name, answer.text[-400:])
            # The first one compiles templates and reads the file for the first time.
            found[page.title] = seconds[1:], len(answer.content)
    app.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=15, help="tries of each page")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="make the copy there, and use it again next time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        found = asyncio.run(measured(published(folder), arguments.times))
    print(f"{machine()}; {arguments.times} tries of each page, nothing kept between them\n")
    rows = []
    for title, (seconds, size) in found.items():
        late = sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]
        rows.append([title, f"{statistics.median(seconds) * 1000:.0f}", f"{late * 1000:.0f}", f"{size / 1000:.0f}"])
    print(table(["page", "median, ms", "p95, ms", "kB"], rows))
    overview = statistics.median(found["Overview"][0])
    print(f"\nOverview: {overview * 1000:.0f} ms; the limit is {LIMIT * 1000:.0f} ms")
    raise SystemExit(overview > LIMIT)


if __name__ == "__main__":
    main()
