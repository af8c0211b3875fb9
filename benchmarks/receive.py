"""Durable acknowledgements per second and their latency, beside what the disk and the server can do at all.

    apt-get install -y wrk
    uv run --no-sync python benchmarks/receive.py                    # 5 rounds of 10 s each: about 4 minutes
    uv run --no-sync python benchmarks/receive.py --rounds 1 --seconds 5

Every round measures, one right after the other and all with the same bodies at the same number of connections:

- `nothing`: a Starlette route that reads the body and stores nothing
- `bare`: the same server in front of a group-committed insert of the body into one table of SQLite, `synchronous=FULL`
- `receiver`: secret, reading, routing, marks, confirming timers and delivery, one transaction for what came together
- `receiver at 200/s`: an open load, sent on time whether answers come or not, from a process of its own

and before them the disk: an append of 4 KB with `fdatasync`, one at a time.
"""

import argparse
import asyncio
import contextlib
import datetime as dt
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from octo_sync.flows.webhooks.receive import Inbox, Routing
from octo_sync.journal import Journal
from octo_sync.model import Source, Subject, SubjectKind
from octo_sync.pipeline import WebhookSettings, load
from octo_sync.receiver.endpoints import EndpointCache
from octo_sync.receiver.routes import Receiver
from octo_sync.receiver.server import serving

HERE = Path(__file__).resolve().parent
ENDPOINT, SECRET = "e" * 30, "0123456789abcdef" * 4
PRODUCTS, OPTIONS, MONTHS = 1000, 2, 13
OK = [
    {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]},
    {"type": "http.response.body", "body": b""},
]


# -- servers, each in a process of its own -----------------------------------------------------------------------


class Clock:
    def now(self):
        return dt.datetime.now(dt.UTC)


def nothing():
    """What Starlette's router, a request's body and an empty response cost."""

    async def take(request):
        await request.body()
        return Response()

    return Starlette(routes=[Route("/hooks/{endpoint}", take, methods=["POST"])])


class Bare:
    """Group commit of bodies and nothing else."""

    def __init__(self, directory):
        self.waiting, self.committing = [], None
        self.thread = ThreadPoolExecutor(1)
        self.database = sqlite3.connect(directory / "bare.sqlite", isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self.database.execute(f"PRAGMA {pragma}")
        self.database.execute("CREATE TABLE bodies (id INTEGER PRIMARY KEY, body BLOB)")

    def store(self, batch):
        self.database.execute("BEGIN IMMEDIATE")
        self.database.executemany("INSERT INTO bodies (body) VALUES (?)", [(body,) for body, _ in batch])
        self.database.execute("COMMIT")

    async def commit(self):
        while self.waiting:
            batch, self.waiting = self.waiting, []
            await asyncio.get_running_loop().run_in_executor(self.thread, self.store, batch)
            for _, done in batch:
                done.set_result(None)
        self.committing = None

    async def __call__(self, scope, receive, send):
        assert scope["type"] == "http"
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        done = asyncio.get_running_loop().create_future()
        self.waiting.append((body, done))
        if self.committing is None:
            self.committing = asyncio.create_task(self.commit())
        await done
        for each in OK:
            await send(each)


def months():
    today = dt.datetime.now(dt.UTC).date()
    place = today.year * 12 + today.month - 1
    return [f"{(place + n) // 12}-{(place + n) % 12 + 1:02d}" for n in range(MONTHS)]


def receiver(directory):
    """The receiver as it is, over a journal that knows a catalogue of 26,000 availability subjects."""
    path = directory / "pipeline.toml"
    path.write_text('[connections.bench00]\nbase_url = "http://127.0.0.1:1/octo"\ntoken = { env = "T" }\n')
    pipeline = load(path, directory=directory, environ={"T": "x"}, overrides={})
    journal = Journal.open(directory / "journal.sqlite", clock=Clock())
    fill(journal)
    return Receiver(Inbox(journal, Routing(pipeline, Clock())), EndpointCache(journal), pipeline.webhooks)


def fill(journal, connections=1, products=PRODUCTS):
    """An endpoint of each connection, and all that a notification to it may name, landed."""
    for number in range(connections):
        name = f"bench{number:02}"
        secret_hash = hashlib.sha256(SECRET.encode()).hexdigest()
        journal.endpoints.add(f"{ENDPOINT}{number:02}", connection=name, secret_hash=secret_hash)
        journal.subjects.mark(
            [
                Subject(name, SubjectKind.AVAILABILITY, (f"product-{product}", f"option-{option}", month))
                for product in range(products)
                for option in range(OPTIONS)
                for month in months()
            ],
            Source.SCHEDULE,
        )
        while claims := journal.subjects.claim(5000, run_id="bench", connections=[name]):
            journal.subjects.landed(claims, run_id="bench")


async def serve(what, directory):
    app = nothing() if what == "nothing" else Bare(directory) if what == "bare" else receiver(directory)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serving(app, WebhookSettings(bind="127.0.0.1:0")) as server:
        print(server.url, flush=True)
        await stop.wait()


# -- an open load --------------------------------------------------------------------------------------------------


async def steady(url, rate, seconds):
    """One delivery every 1/rate seconds, on the next of 16 connections; the latency counts from when it was due."""
    host, port = url.removeprefix("http://").split(":")
    free: asyncio.Queue = asyncio.Queue()
    for _ in range(16):
        free.put_nowait(await asyncio.open_connection(host, int(port)))
    head = f"POST /hooks/{ENDPOINT}00 HTTP/1.1\r\nHost: x\r\nX-Octo-Sync-Secret: {SECRET}\r\n"
    took = []

    async def one(number, due):
        reader, writer = await free.get()
        body = json.dumps(
            {"subscriptionId": "s", "notificationType": "BOOKING_UPDATE", "data": {"uuid": f"{os.getpid()}-{number}"}}
        )
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        took.append(time.perf_counter() - due)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        free.put_nowait((reader, writer))

    start = time.perf_counter() + 0.1
    tasks = []
    for number in range(int(rate * seconds)):
        due = start + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(number, due)))
    await asyncio.gather(*tasks)
    took.sort()
    print(json.dumps({"p50": took[len(took) // 2] * 1000, "p99": took[int(len(took) * 0.99)] * 1000}))


# -- measuring -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(what, scratch):
    directory = Path(tempfile.mkdtemp(prefix=f"octo-bench-{what}-", dir=scratch))
    command = [sys.executable, __file__, "--serve", what, "--directory", directory]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait()
            shutil.rmtree(directory)


def fsync_floor(scratch, count=500):
    took = []
    with tempfile.NamedTemporaryFile(dir=scratch) as file:
        for _ in range(count):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - started)
    took.sort()
    return {
        "per_second": count / sum(took),
        "p50": took[count // 2] * 1000,
        "p99": took[int(count * 0.99)] * 1000,
    }


def milliseconds(text):
    value, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}[unit]


def wrk(url, connections, seconds, *, endpoints=1, products=PRODUCTS):
    environ = {
        **os.environ,
        "BENCH_PATH": f"/hooks/{ENDPOINT}",
        "BENCH_SECRET": SECRET,
        "BENCH_ENDPOINTS": str(endpoints),
        "BENCH_PRODUCTS": str(products),
        "BENCH_FIRST_MONTH": months()[1],
        "BENCH_LAST_MONTH": months()[2],
    }
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", HERE / "receive.lua", url]
    said = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in said, said
    assert "Socket errors" not in said, said
    return {
        "requests": int(re.search(r"(\d+) requests in", said)[1]),
        "per_second": float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1]),
        "p50": milliseconds(re.search(r"^\s+50%\s+(\S+)", said, re.MULTILINE)[1]),
        "p99": milliseconds(re.search(r"^\s+99%\s+(\S+)", said, re.MULTILINE)[1]),
    }


def scraped(url):
    with urllib.request.urlopen(f"{url}/metrics") as answer:  # noqa: S310 - our own
        page = answer.read().decode()
    return {
        name: float(re.search(rf"^octo_sync_commit_deliveries_{name} ([\d.e+]+)$", page, re.MULTILINE)[1])
        for name in ("count", "sum")
    }


def one_round(options, scratch):
    found = {"the disk: fdatasync of 4 KB": fsync_floor(scratch)}
    for what in ("nothing", "bare", "receiver"):
        with running(what, scratch) as url:
            wrk(url, options.connections, 1)
            before = scraped(url) if what == "receiver" else {}
            found[what] = wrk(url, options.connections, options.seconds)
            if what == "receiver":
                after = scraped(url)
                found[what]["commits"] = (after["count"] - before["count"]) / (after["sum"] - before["sum"])
                found[what]["idle"] = idle_share(url, options)
                command = [sys.executable, __file__, "--steady", url, "--seconds", str(options.seconds)]
                said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                found["receiver at 200/s"] = {"per_second": 200.0, **json.loads(said)}
    return found


def idle_share(url, options):
    """How much of the processors nobody used during a short repetition: what the numbers would gain without company."""

    def ticks():
        values = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        return sum(values), values[3] + values[4]

    total, idle = ticks()
    wrk(url, options.connections, 2)
    now, idle_now = ticks()
    return (idle_now - idle) / (now - total)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10, help="per measurement")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--scratch", default=None, help="a directory on the disk to measure")
    parser.add_argument("--serve", choices=["nothing", "bare", "receiver"], help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--steady", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve, options.directory))
        return
    if options.steady:
        asyncio.run(steady(options.steady, 200, options.seconds))
        return
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is missing: apt-get install -y wrk")
    load = os.getloadavg()[0]
    print(f"{platform.platform()}, {os.cpu_count()} processors, Python {platform.python_version()}, load {load:.1f}")
    if load > 0.5:
        print("Something else is running; these numbers are a lower bound.")
    rounds = [one_round(options, options.scratch) for _ in range(options.rounds)]
    print(f"\nmedians (best) of {options.rounds} rounds, {options.connections} connections, {options.seconds} s each\n")
    print(f"{'':32}{'a second':>18}{'p50 ms':>16}{'p99 ms':>18}")
    for name in rounds[0]:
        values = [each[name] for each in rounds]

        def cell(key, best, values=values, digits=1):
            column = [value[key] for value in values]
            return f"{statistics.median(column):,.{digits}f} ({best(column):,.{digits}f})"

        print(f"{name:32}{cell('per_second', max, digits=0):>18}{cell('p50', min):>16}{cell('p99', min):>18}")
    commits = statistics.median(each["receiver"]["commits"] for each in rounds)
    idle = statistics.median(each["receiver"]["idle"] for each in rounds)
    print(f"\ncommits per acknowledgement: {commits:.3f}, one for {1 / commits:.0f}; processors idle: {idle:.0%}")
    median = statistics.median
    speed = median(each["receiver"]["per_second"] for each in rounds)
    p99 = median(each["receiver"]["p99"] for each in rounds)
    calm = median(each["receiver at 200/s"]["p99"] for each in rounds)
    for said, good in (
        (f"at least 5,000 durable acknowledgements a second: {speed:,.0f}", speed >= 5000),
        (f"99 of 100 within 50 ms at full load: {p99:.1f} ms", p99 <= 50),
        (f"99 of 100 within 10 ms at 200 a second: {calm:.1f} ms", calm <= 10),
    ):
        print(f"{'yes' if good else 'NO ':3}  {said}")


if __name__ == "__main__":
    main()
