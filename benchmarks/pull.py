"""octo-sync and dlt's rest_api source side by side: the same service, the same answers, into DuckDB, in one run.

    uv run --no-sync python benchmarks/pull.py --runs 3 --sizes small --peers tuned,documented

Three loads in a row: the first, one after about 1 % of the rows changed, one after nothing changed. Every side makes
each load against the same state of the service, one right after the other; the rows in the databases are counted and
must be the same on all sides. Medians, and ratios per run ("pairs"), so that a busy machine hurts both alike.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import duckdb

import common
from common import Cost, Service, median

SIZES = {"tiny": (10_000, 2_000), "small": (100_000, 20_000), "large": (2_000_000, 20_000)}
"""Availability slots and bookings."""
LOADS = ("first", "1 % changed", "unchanged")
EXCLUDE_NEWER = "2026-11-20T00:00:00Z"
DLT = {
    "documented": ("dlt-duckdb-1.5", ("dlt[duckdb]==1.31.0", "duckdb==1.5.6", "pyarrow==26.0.1")),
    "documented-current": ("dlt-duckdb-2.0", ("dlt[duckdb]==1.31.0", "duckdb==2.0.0", "pyarrow==26.0.1")),
    "tuned": ("dlt-duckdb-2.0", ("dlt[duckdb]==1.31.0", "duckdb==2.0.0", "pyarrow==26.0.1")),
    "tuned-1.5": ("dlt-duckdb-1.5", ("dlt[duckdb]==1.31.0", "duckdb==1.5.6", "pyarrow==26.0.1")),
}
FLOOR = ("httpx-aiohttp", ("httpx==0.28.1", "httpx-aiohttp", "aiohttp"))
MB = 1_000_000
Counts = dict[str, int]


def octo_project(folder: Path, service: Service) -> None:
    """A project with one connection and every setting at its default."""
    (folder / "pipelines").mkdir(parents=True)
    capabilities = ", ".join(f'"{c}"' for c in common.CAPABILITIES)
    (folder / "pipelines" / "bench.toml").write_text(
        f'name = "bench"\n\n[connections.sandbox]\nbase_url = "{service.base_url}"\n'
        f'token = {{ env = "OCTO_SANDBOX_TOKEN", default = "{common.TOKEN}" }}\ncapabilities = [{capabilities}]\n',
        encoding="utf-8",
    )


def project_options(description: str | None) -> argparse.ArgumentParser:
    """What `pulled` needs to know."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(SIZES), default="large")
    parser.add_argument("--quiet", type=float, default=1.0, help="wait up to 2 minutes for this 1-minute load")
    parser.add_argument("--scratch", type=Path, default=None, help="where the databases are made")
    return parser


@contextlib.contextmanager
def pulled(options: argparse.Namespace) -> Iterator[tuple[Path, Service]]:
    """A service of the size asked for and a project that has pulled all of it, once the machine is quiet again."""
    with (
        Service(*SIZES[options.size]) as service,
        tempfile.TemporaryDirectory(prefix="octo-bench-", dir=options.scratch) as scratch,
    ):
        folder = Path(scratch) / "octo"
        octo_project(folder, service)
        program = Path(sys.executable).with_name("octo-sync")
        subprocess.run([program, "sync", "-p", "bench", "--no-publish"], cwd=folder, check=True, stdout=sys.stderr)
        common.wait_for_quiet(options.quiet)
        yield folder, service


def octo_counts(folder: Path) -> Counts:
    with duckdb.connect(folder / "octo.duckdb", read_only=True) as db:
        return _counts(
            db,
            {
                "slots": "select count(*), sum(vacancies) from core.availability where not is_deleted",
                "prices": "select count(*), sum(retail_minor) from core.availability_prices",
                "bookings": "select count(*), sum(retail_minor) from core.bookings where not is_deleted",
                "unit items": "select count(*), sum(retail_minor) from core.booking_unit_items where not is_deleted",
            },
        )


def dlt_counts(folder: Path) -> Counts:
    with duckdb.connect(folder / "octo.duckdb", read_only=True) as db:
        return _counts(
            db,
            {
                "slots": "select count(*), sum(vacancies) from copy.availability",
                "prices": "select count(*), sum(r) from (select retail as r from copy.availability__unit_pricing "
                "union all select pricing__retail from copy.availability where pricing__currency is not null)",
                "bookings": "select count(*), sum(pricing__retail) from copy.bookings",
                "unit items": "select count(*), sum(pricing__retail) from copy.bookings__unit_items",
            },
        )


def _counts(db: duckdb.DuckDBPyConnection, questions: dict[str, str]) -> Counts:
    found: Counts = {}
    for name, sql in questions.items():
        rows, total = db.execute(sql).fetchone() or (0, 0)
        found[name], found[f"{name} Σ"] = int(rows), int(total or 0)
    return found


class Side:
    """One contender: a command, a folder, a way to count."""

    def __init__(
        self, name: str, command: Sequence[str | Path], folder: Path, counts: Callable[[Path], Counts], limit: float
    ) -> None:
        self.name, self.command, self.folder, self.counts, self.limit = name, command, folder, counts, limit
        self.gave_up = False

    def load(self, service: Service) -> tuple[Cost, Counts]:
        if self.gave_up:
            return Cost(0.0, 0.0, 0, finished=False), {}
        cost = common.measured(
            self.command,
            cwd=self.folder,
            limit=self.limit,
            service=service,
            env={"OCTO_BENCH_HEADERS": json.dumps(common.HEADERS)},
        )
        self.gave_up = not cost.finished
        return cost, self.counts(self.folder) if cost.finished else {}


def window_arguments() -> list[str]:
    return ["--today", common.today().isoformat(), "--before", str(common.BEFORE), "--after", str(common.AFTER)]


def sides(folder: Path, service: Service, peers: Sequence[str], limit: float) -> list[Side]:
    octo = folder / "octo"
    octo_project(octo, service)
    program = Path(sys.executable).with_name("octo-sync")
    found = [Side("octo-sync", [program, "sync", "-p", "bench"], octo, octo_counts, limit)]
    for peer in peers:
        home, requirements = DLT[peer]
        python = common.peer_python(home, requirements, exclude_newer=EXCLUDE_NEWER)
        own = folder / peer
        own.mkdir()
        command = [
            python,
            common.HERE / "peer_dlt.py",
            service.base_url,
            "--mode",
            peer.split("-", 1)[0],
            "--directory",
            own,
        ]
        found.append(Side(f"dlt {peer}", [*command, *window_arguments()], own, dlt_counts, limit))
    return found


def floor(service: Service, transport: str) -> dict[str, float]:
    """Fetch and throw away; also warms the service's caches for the state it is in."""
    python = sys.executable
    if transport == "aiohttp":
        python = str(common.peer_python(FLOOR[0], FLOOR[1], exclude_newer=EXCLUDE_NEWER))
    cost = common.measured(
        [python, common.HERE / "floor.py", service.base_url, "--transport", transport, *window_arguments()],
        cwd=common.HERE,
        limit=600.0,
        service=service,
        env={"OCTO_BENCH_HEADERS": json.dumps(common.HEADERS)},
    )
    inside = json.loads(cost.out)
    return {**inside, "service": cost.service}


def run_load(
    contenders: Sequence[Side],
    service: Service,
    costs: dict[tuple[str, str], list[Cost]],
    title: str,
    quiet: float,
) -> tuple[Counts, bool]:
    """One load by every side, one right after the other; whether all of them then hold the same."""
    load = title.split(" ", 2)[2]
    counted: dict[str, Counts] = {}
    for side in contenders:
        common.wait_for_quiet(quiet)
        cost, counts = side.load(service)
        costs[side.name, load].append(cost)
        if counts:
            counted[side.name] = counts
        print(f"  {title}: {side.name}: {_short(cost)}", file=sys.stderr, flush=True)
    ours = counted["octo-sync"]
    different = {name: counts for name, counts in counted.items() if counts != ours}
    for name, counts in different.items():
        print(f"DIFFERENT ROWS after {title}: octo-sync {ours}, {name} {counts}", flush=True)
    return ours, not different


def run_size(size: str, options: argparse.Namespace) -> bool:
    slots, bookings = SIZES[size]
    costs: dict[tuple[str, str], list[Cost]] = defaultdict(list)
    floors: dict[str, list[dict[str, float]]] = defaultdict(list)
    rows: dict[str, Counts] = {}
    changed: Counts = {}
    same = True
    with Service(slots, bookings) as service:
        for run in range(options.runs):
            if run:
                service.reset()
            with tempfile.TemporaryDirectory(prefix="octo-bench-", dir=options.scratch) as scratch:
                contenders = sides(Path(scratch), service, options.peers, options.peer_limit)
                for load in LOADS:
                    if load == "1 % changed":
                        changed = service.change(seed=run + 1)
                    floor(service, "raw")  # the service's caches are warm for whoever comes first
                    for transport in options.floors if load == "first" else ():
                        floors[transport].append(floor(service, transport))
                    rows[load], equal = run_load(contenders, service, costs, f"run {run + 1} {load}", options.quiet)
                    same = same and equal
                for side in contenders:
                    shutil.rmtree(side.folder, ignore_errors=True)
        report(size, costs, floors, rows, changed)
    return same


def _short(cost: Cost) -> str:
    if not cost.finished:
        return f"not finished after {cost.wall:.0f} s ({cost.rss / MB:.0f} MB so far)" if cost.wall else "left out"
    return f"{cost.wall:.2f} s wall, {cost.cpu:.2f} s CPU, {cost.rss / MB:.0f} MB"


def report(
    size: str,
    costs: dict[tuple[str, str], list[Cost]],
    floors: dict[str, list[dict[str, float]]],
    rows: dict[str, Counts],
    changed: Counts,
) -> None:
    names = list(dict.fromkeys(name for name, _ in costs))
    last = rows[LOADS[-1]]
    total = sum(n for name, n in last.items() if "Σ" not in name)
    print(f"\n## {size}: " + ", ".join(f"{n:,} {name}" for name, n in last.items() if "Σ" not in name))
    print(
        f"\nChanged between the first load and the second: {changed['slots']:,} slots, {changed['bookings']:,} bookings."
    )
    print(f"Medians of {len(costs[names[0], LOADS[0]])} runs; load at the end {os.getloadavg()[0]:.2f}.\n")
    lines = []
    for load in LOADS:
        for name in names:
            found = [c for c in costs[name, load] if c.finished]
            if len(found) < len(costs[name, load]):
                wall, rss = (max(getattr(c, part) for c in costs[name, load]) for part in ("wall", "rss"))
                lines.append([load, name, f"not finished ({wall:.0f})", "", f"{rss / MB:.0f}", "", "", ""])
                continue
            wall = median([c.wall for c in found])
            ours = costs["octo-sync", load]
            ratio = median([c.wall / o.wall for c, o in zip(found, ours, strict=True)])
            ratio_cpu = median([c.cpu / o.cpu for c, o in zip(found, ours, strict=True)])
            lines.append(
                [
                    load,
                    name,
                    f"{wall:.2f}",
                    f"{median([c.cpu for c in found]):.2f}",
                    f"{median([c.rss for c in found]) / MB:.0f}",
                    f"{total / wall:,.0f}",
                    "" if name == "octo-sync" else f"{ratio:.1f}",
                    "" if name == "octo-sync" else f"{ratio_cpu:.1f}",
                ]
            )
    print(common.table(["load", "side", "wall s", "CPU s", "peak RSS MB", "rows/s", "wall ratio", "CPU ratio"], lines))
    if floors:
        print("\nThe same answers fetched and thrown away (six at a time):\n")
        lines = []
        for transport, found in floors.items():
            wall = median([f["wall"] for f in found])
            lines.append(
                [
                    transport,
                    f"{found[0]['answers']:,.0f}",
                    f"{found[0]['bytes'] / MB:,.0f}",
                    f"{wall:.2f}",
                    f"{median([f['cpu'] for f in found]):.2f}",
                    f"{median([f['service'] for f in found]):.2f}",
                    f"{found[0]['answers'] / wall:,.0f}",
                ]
            )
        print(common.table(["transport", "answers", "MB", "wall s", "CPU s", "service CPU s", "answers/s"], lines))
    print(flush=True)


def listed(allowed: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        if unknown := set(names) - set(allowed):
            raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(allowed)}")
        return names

    return parse


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sizes", type=listed(list(SIZES)), default=["small"], help=f"of {', '.join(SIZES)}")
    parser.add_argument(
        "--peers", type=listed(list(DLT)), default=["tuned"], help=f"of {', '.join(DLT)}; empty for none"
    )
    floors = listed(["client", "octo", "httpx", "aiohttp", "raw"])
    parser.add_argument("--floors", type=floors, default=["octo", "httpx", "raw"], help="see floor.py")
    parser.add_argument("--peer-limit", type=float, default=600.0, help="seconds a load may take before it is given up")
    parser.add_argument("--quiet", type=float, default=1.0, help="wait up to 2 minutes for this 1-minute load")
    parser.add_argument("--scratch", type=Path, default=None, help="where the databases are made")
    options = parser.parse_args()
    print(f"# pull: {common.machine()}\n")
    print(f"octo-sync: {common.versions(sys.executable, ['octo-sync', 'duckdb', 'httpx', 'msgspec'])}")
    for peer in options.peers:
        python = common.peer_python(*DLT[peer], exclude_newer=EXCLUDE_NEWER)
        print(f"dlt {peer}: {common.versions(python, ['dlt', 'duckdb', 'pyarrow'])}", flush=True)
    same = [run_size(size, options) for size in options.sizes]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
