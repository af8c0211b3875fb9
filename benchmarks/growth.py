"""Do the files grow? 2,000 small landings and 20 full pulls of unchanged data, with the program's own care between them.

    uv run python benchmarks/growth.py                    # about two minutes
    uv run python benchmarks/growth.py --landings 200 --pulls 3

The service is the sandbox, in this process, with a clock that the benchmark puts forward: care looks at the files every hour
of that clock, as `serve` does in its quiet moments. Exit code 1 when octo.duckdb has grown by more than 20 % after its last
care; the private file of so few contacts is a handful of blocks of 256 KB and jumps by more.
"""

import argparse
import asyncio
import datetime as dt
import random
import sys
import tempfile
import time
from pathlib import Path

import common
from octo_sync.app.machine import environ
from octo_sync.app.project import open_project
from octo_sync.flows.sync.compaction import care
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync
from octo_sync.flows.sync.work import Worker
from octo_sync.model import Source, Subject, SubjectKind
from octo_sync.pipeline import load

PIPELINE = """\
[connections.shop]
base_url = "{url}"
token = {{ env = "OCTO_BENCH_TOKEN", default = "{token}" }}
capabilities = ["pricing"]

[connections.shop.limits]
concurrency = 4

[sync]
confirm_after = []

"""


class Clock:
    """The machine's clock, put forward by `hours`."""

    def __init__(self) -> None:
        self.ahead = dt.timedelta()

    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC) + self.ahead


def sizes(folder: Path) -> dict[str, int]:
    """Bytes of both files, with what is still in their logs."""
    return {
        name: sum(p.stat().st_size for p in folder.glob(f"{name}*")) for name in ("octo.duckdb", "octo.private.duckdb")
    }


async def small_landings(
    folder: Path, service: common.Service, count: int, clock: Clock, *, caring: bool
) -> tuple[int, float]:
    """One landing per change: a booking that changed, or a day whose capacity did; how many files were written anew."""
    pipeline = load(folder / "pipelines" / "shop.toml", directory=folder, environ=environ(), overrides={})
    rng = random.Random(7)
    rewritten, spent = 0, 0.0
    async with open_project(pipeline, command="benchmark", clock=clock) as project:
        ports = project.ports
        uuids = [r[0] for r in ports.warehouse.query("select booking_uuid from core.bookings order by 1").rows]
        options = ports.warehouse.query("select product_id, option_id from core.options order by all").rows
        days = [common.today() + dt.timedelta(days=n) for n in range(1, 360)]
        for number in range(count):
            if number % 2:
                uuid = rng.choice(uuids)
                service.control(f"/admin/bookings/{uuid}", {"supplier_reference": f"SR-{number}", "silent": True})
                subject = Subject("shop", SubjectKind.BOOKING, (uuid,))
            else:
                (product, option), day = rng.choice(options), rng.choice(days)
                body = {"product_id": product, "option_id": option, "from": day.isoformat(), "to": day.isoformat()}
                service.control(
                    "/admin/availability",
                    {**body, "action": "capacity", "capacity": rng.randrange(60, 90), "silent": True},
                )
                subject = Subject("shop", SubjectKind.AVAILABILITY, (product, option, f"{day:%Y-%m}"))
            ports.mark([subject], Source.NOTIFICATION)
            await Worker(ports).drain()
            if caring and number % 100 == 99:
                clock.ahead += dt.timedelta(hours=1)
                started = time.perf_counter()
                rewritten += len(await asyncio.to_thread(care, ports))
                spent += time.perf_counter() - started
    return rewritten, spent


async def pulls(folder: Path, count: int, clock: Clock) -> None:
    """Full pulls of what has not changed, each as `octo-sync sync` does it."""
    pipeline = load(folder / "pipelines" / "shop.toml", directory=folder, environ=environ(), overrides={})
    for _ in range(count):
        clock.ahead += dt.timedelta(hours=1)
        async with open_project(pipeline, command="benchmark", clock=clock) as project:
            await sync(project.ports, Scope(full=True), command="benchmark", publishing=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--landings", type=int, default=2000)
    parser.add_argument("--pulls", type=int, default=20)
    parser.add_argument("--slots", type=int, default=100_000)
    parser.add_argument("--bookings", type=int, default=5_000)
    parser.add_argument("--without-care", action="store_true", help="how it would be otherwise")
    options = parser.parse_args()
    print(f"# growth: {common.machine()}\n")
    rows, worst = [], 0.0
    with (
        common.Service(options.slots, options.bookings) as service,
        tempfile.TemporaryDirectory(prefix="octo-bench-") as scratch,
    ):
        folder, clock = Path(scratch), Clock()
        (folder / "pipelines").mkdir()
        text = PIPELINE.format(url=service.base_url, token=common.TOKEN)
        if options.without_care:
            text += "waste = 1e9\n"
        (folder / "pipelines" / "shop.toml").write_text(text, encoding="utf-8")
        asyncio.run(pulls(folder, 1, clock))
        before = sizes(folder)
        started = time.perf_counter()
        rewritten, spent = asyncio.run(
            small_landings(folder, service, options.landings, clock, caring=not options.without_care)
        )
        took = time.perf_counter() - started
        landed = sizes(folder)
        asyncio.run(pulls(folder, 1, clock))
        between = sizes(folder)
        asyncio.run(pulls(folder, options.pulls, clock))
        after = sizes(folder)
    for name in before:
        growth = after[name] / before[name] - 1
        worst = max(worst, growth if name == "octo.duckdb" else worst)
        cells = [f"{size[name] / 1e6:.1f}" for size in (before, landed, between, after)]
        rows.append([name, *cells, f"{growth:+.0%}"])
    head = ["MB", "first pull", f"{options.landings:,} landings", "a pull", f"{options.pulls} more pulls", "grown"]
    print(common.table(head, rows))
    print(
        f"\n{options.landings:,} landings in {took:.0f} s; {rewritten} times a file was written anew, {spent:.1f} s in all."
    )
    return 0 if worst <= 0.20 else 1


if __name__ == "__main__":
    sys.exit(main())
