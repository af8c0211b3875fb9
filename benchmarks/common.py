"""What both benchmarks share: the service in a process of its own, its changes, measured children, tables of medians."""

import calendar
import contextlib
import dataclasses
import datetime as dt
import json
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).resolve().parent
CGROUPS = Path("/sys/fs/cgroup")
CACHE = Path(os.environ.get("OCTO_BENCH_CACHE", Path.home() / ".cache" / "octo-sync-bench"))
TOKEN = "sandbox-token-all"  # noqa: S105 - the sandbox's, printed in its README
CAPABILITIES = ("pricing",)
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Octo-Capabilities": ",".join(f"octo/{c}" for c in CAPABILITIES)}
BEFORE, AFTER = 90, 365
"""Days of bookings before today and of everything after it: octo-sync's default horizon, used by every side."""
CHANGED_SHARE = 0.01


def today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


def months(first: dt.date, last: dt.date) -> Iterator[tuple[dt.date, dt.date]]:
    """Calendar months, cut at both ends."""
    while first <= last:
        end = first.replace(day=calendar.monthrange(first.year, first.month)[1])
        yield first, min(end, last)
        first = end + dt.timedelta(days=1)


def availability_months() -> list[tuple[dt.date, dt.date]]:
    return list(months(today(), today() + dt.timedelta(days=AFTER)))


def booking_months() -> list[tuple[dt.date, dt.date]]:
    return list(months(today() - dt.timedelta(days=BEFORE), today() + dt.timedelta(days=AFTER)))


# -- the service ----------------------------------------------------------------------------------------------------


class Service:
    """The sandbox in a process of its own, frozen and warmed; a context manager."""

    def __init__(self, slots: int, bookings: int, seed: int = 7) -> None:
        self.base_url = ""
        self._arguments = ["--slots", str(slots), "--bookings", str(bookings), "--seed", str(seed)]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "octo_sync.sandbox", "--port", "0", "--warm", "--frozen"]
        self._process = subprocess.Popen(
            [*command, "--today", today().isoformat(), *self._arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening "):
            raise SystemExit("The sandbox did not start.")
        self.base_url = line.split()[1]
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def cpu(self) -> float:
        """CPU seconds the service has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def octo(self, path: str) -> Any:
        """A GET of the OCTO API."""
        with urllib.request.urlopen(urllib.request.Request(self.base_url + path, headers=HEADERS)) as answer:  # noqa: S310
            return json.load(answer)

    def control(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """A POST to the control plane."""
        root = self.base_url.removesuffix("/octo/v1")
        request = urllib.request.Request(  # noqa: S310 - loopback
            f"{root}/_sandbox{path}",
            data=json.dumps(body or {}).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return json.load(answer)

    def reset(self) -> None:
        self.control("/reset")

    def change(self, seed: int = 1) -> dict[str, int]:
        """Change about 1 % of slots (capacity of random days, every option) and of bookings (a note), without webhooks.

        The days are spread, so that about a third of the availability answers and every booking list differ.
        """
        rng = random.Random(seed)
        days = [today() + dt.timedelta(days=n) for n in range(AFTER)]
        slots = 0
        for product in self.octo("/products"):
            for option in product["options"]:
                for day in rng.sample(days, round(len(days) * CHANGED_SHARE)):
                    changed = self.control(
                        "/admin/availability",
                        {
                            "product_id": product["id"],
                            "option_id": option["id"],
                            "from": day.isoformat(),
                            "to": day.isoformat(),
                            "action": "capacity",
                            "capacity": rng.randrange(60, 90),
                            "silent": True,
                        },
                    )
                    slots += changed["slots"]
        uuids = sorted(
            booking["uuid"]
            for first, last in booking_months()
            for booking in self.octo(f"/bookings?localDateStart={first}&localDateEnd={last}")
        )
        chosen = rng.sample(uuids, round(len(uuids) * CHANGED_SHARE))
        for uuid in chosen:
            self.control(f"/admin/bookings/{uuid}", {"notes": f"note {rng.randrange(10_000)}", "silent": True})
        return {"slots": slots, "bookings": len(chosen)}


# -- measured children ----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    """What a child process cost. `rss` is the peak of its largest process in bytes, `service` the CPU of the service."""

    wall: float
    cpu: float
    rss: int
    service: float = 0.0
    finished: bool = True
    code: int = 0
    out: str = ""


def measured(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    limit: float,
    service: Service | None = None,
    env: Mapping[str, str] | None = None,
) -> Cost:
    """Run a command to its end, or for `limit` seconds: the whole process, interpreter start included."""
    with tempfile.TemporaryFile("w+") as out:
        before = service.cpu() if service else 0.0
        started = time.perf_counter()
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        late = threading.Event()

        def stop() -> None:
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(limit, stop)
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            stop()
            raise
        finally:
            timer.cancel()
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        after = service.cpu() if service else 0.0
        out.seek(0)
        text = out.read()
    if process.returncode and not late.is_set():
        raise SystemExit(f"{' '.join(map(str, command))} ended with {process.returncode}:\n{text[-4000:]}")
    return Cost(
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        rss=usage.ru_maxrss * 1024,
        service=after - before,
        finished=not late.is_set(),
        code=process.returncode,
        out=text,
    )


@contextlib.contextmanager
def limited(pid: int, share: float) -> Iterator[None]:
    """The process gets this share of one processor at most, until the block ends: of each 10 ms, as a container would."""
    is_old = (CGROUPS / "cpu" / "cpu.shares").exists()
    group, every = (CGROUPS / "cpu" if is_old else CGROUPS) / f"octo-sync-bench-{pid}", 10_000
    most = round(share * every)
    settings = {"cpu.cfs_period_us": every, "cpu.cfs_quota_us": most} if is_old else {"cpu.max": f"{most} {every}"}
    try:
        if not is_old:
            (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir()
        for name, value in {**settings, "cgroup.procs": pid}.items():
            (group / name).write_text(str(value))
    except OSError as error:
        raise SystemExit(
            f"No limit can be set: {error}. Only root can, at least 0.1, and not in a container."
        ) from error
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            (group.parent / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def peer_python(name: str, requirements: Sequence[str], *, exclude_newer: str) -> Path:
    """The interpreter of a peer's own environment, made with uv when it is not there; outside the repository."""
    home = CACHE / name
    python = home / "bin" / "python"
    stamp = home / "requirements.txt"
    wanted = "\n".join([*requirements, f"# {exclude_newer}"])
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        uv = shutil.which("uv")
        if uv is None:
            raise SystemExit("Peers need uv (https://docs.astral.sh/uv) to make their environments.")
        CACHE.mkdir(parents=True, exist_ok=True)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", version, home], check=True)
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", python, "--exclude-newer", exclude_newer, *requirements],
            check=True,
        )
        stamp.write_text(wanted, encoding="utf-8")
    return python


def versions(python: str | Path, names: Sequence[str]) -> str:
    """Versions of packages in an environment, as one line."""
    code = "import importlib.metadata as m, sys; print(', '.join(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    done = subprocess.run([python, "-c", code, *names], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# -- words and tables -----------------------------------------------------------------------------------------------


def machine() -> str:
    with contextlib.suppress(OSError):
        cpu = next(
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        )
        return f"{os.cpu_count()} cores of {cpu}, Python {platform.python_version()}, load {os.getloadavg()[0]:.2f}"
    return f"{os.cpu_count()} cores, Python {platform.python_version()}"


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table that also reads well in a terminal."""
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = [f"{row[0]:<{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))]
        lines.append(f"| {' | '.join(cells)} |")
    rule = "|" + "|".join("-" * (w + 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def wait_for_quiet(load: float, patience: float = 120.0) -> None:
    """Give the machine some time to come to rest; a benchmark beside other work says little."""
    ends = time.perf_counter() + patience
    while os.getloadavg()[0] > load and time.perf_counter() < ends:
        threading.Event().wait(2.0)
