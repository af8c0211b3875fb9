"""Everything around the program: the service, the clocks, the network, the disk; and what is written down about it."""

import dataclasses
import datetime as dt
import hashlib
import json
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from random import Random

import httpx
from tests.simulation import checks
from tests.simulation.faults import FORGED
from tests.simulation.loop import Process, current
from tests.simulation.owners import Owners
from tests.simulation.program import Program, install
from tests.simulation.server import Server, Warehouse, install_sharing
from tests.simulation.wire import ToReceiver, ToService, ask

from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.journal import Journal
from octo_sync.pipeline import load
from octo_sync.sandbox.app import SandboxApp
from octo_sync.sandbox.clock import Clock
from octo_sync.sandbox.config import SandboxConfig, Token
from octo_sync.sandbox.service import Service
from octo_sync.tables import all_tables, nouns

__all__ = ["World", "clean_up", "prepare"]

SHM = Path("/dev/shm")  # noqa: S108 - a fresh directory of our own in it; syncing costs nothing there
BASE = "http://127.0.0.1:8080/octo/v1"
BOOKINGS, AVAILABILITY, NEAR = (-20, 30), (0, 14), (0, 5)
CAPABILITIES = ("pricing", "content", "extras")
PIPELINE = f"""
name = "simulation"
[horizon]
bookings = "{BOOKINGS[0]:+d}d..{BOOKINGS[1]:+d}d"
availability = "{AVAILABILITY[0]:+d}d..{AVAILABILITY[1]:+d}d"
near = "{NEAR[0]:+d}d..{NEAR[1]:+d}d"
[sync]
backoff = "1s"
backoff_cap = "60s"
verify_bookings_within = "4d"
[publish]
enabled = false
[schedule]
full = "0 */3 * * *"
near = "30 */2 * * *"
[webhooks]
url = "https://hooks.example.com/octo"
"""
CONNECTION = f"""
[connections.NAME]
base_url = "{BASE}"
token = {{ env = "OCTO_TEST_TOKEN_UNSET", default = "sandbox-token-all" }}
limits = {{ deadline = "30s", attempts = 3, backoff = "0.2s" }}
"""
CONNECTIONS = ("main", "north", "east", "south")
"""One worker has the first; several share two to four, all of which see the same."""
TOKENS = (Token("sandbox-token-all", "all", sees_all=True), Token("sandbox-token-a", "a"))
MORNINGS = ("2026-11-20T06:40:00Z", "2026-10-24T20:40:00Z", "2027-03-27T22:20:00Z", "2026-12-31T07:05:00Z")
"""Where the virtual days begin: an ordinary one, both changes of the clocks, a year's end; some end after midnight in Tokyo."""


@dataclasses.dataclass
class _Prepared:
    folder: Path
    pipeline: object


_prepared: _Prepared | None = None


def prepare():
    """Once per process: the hands on journal and warehouse, and empty files to begin with."""
    global _prepared  # noqa: PLW0603 - one template per process
    if _prepared is None:
        install(_open_warehouse)
        install_sharing()
        folder = Path(tempfile.mkdtemp(prefix="octo-simulation-", dir=SHM if SHM.is_dir() else None))
        (folder / "pipeline.toml").write_text(
            PIPELINE + "".join(CONNECTION.replace("NAME", name) for name in CONNECTIONS)
        )
        pipeline = load(folder / "pipeline.toml", directory=folder, environ={}, overrides={})
        patient = [
            dataclasses.replace(c, limits=dataclasses.replace(c.limits, backoff_cap=2.0, retry_after_cap=10.0))
            for c in pipeline.connections
        ]
        pipeline = dataclasses.replace(
            pipeline,
            connections=tuple(patient),
            webhooks=dataclasses.replace(pipeline.webhooks, check_every=3000.0),
        )
        template = folder / "template"
        template.mkdir()
        _warehouse(_placed(pipeline, template), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)).close()
        Journal.open(template / "octo.journal.sqlite", clock=_Fixed()).close()
        _prepared = _Prepared(folder, pipeline)
    return _prepared


def clean_up():
    if _prepared is not None:
        shutil.rmtree(_prepared.folder, ignore_errors=True)


class _Fixed:
    def now(self):
        return dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def _placed(pipeline, folder):
    return dataclasses.replace(
        pipeline,
        directory=folder,
        destination=folder / "octo.duckdb",
        journal_path=folder / "octo.journal.sqlite",
    )


def _warehouse(pipeline, now, kind=DuckDBWarehouse):
    return kind(pipeline.destination, pipeline.private_path, tables=all_tables(), nouns=nouns(), now=now)


def _open_warehouse(pipeline, clock, *, patient, beside):
    assert not patient, "whoever serves must not wait for a warehouse"
    program = current()
    if program is None:
        return _warehouse(pipeline, clock.now())
    if beside:
        return program.world.server.warehouse
    warehouse = program.world.shared or _warehouse(pipeline, clock.now())
    program.warehouses.append(warehouse)
    return warehouse


class _MachineClock:
    """The wall clock of the machine that the program runs on; it may be put forward and back."""

    def __init__(self, world):
        self._world = world
        self.off = 0.0

    def now(self):
        return self._world.now() + dt.timedelta(seconds=self.off)


class World:
    """One seed's world. Several `workers` share a server."""

    def __init__(self, loop, seed, confirms=None, workers=1):
        self.loop, self.seed, self.workers = loop, seed, workers
        self.random = Random(f"{seed}/world")
        ready = prepare()
        self.folder = Path(tempfile.mkdtemp(prefix=f"seed-{seed}-", dir=ready.folder))
        for file in (ready.folder / "template").iterdir():
            if file.is_file():
                shutil.copyfile(file, self.folder / file.name)
        self.connections = CONNECTIONS[: 1 if workers == 1 else (2, 3, 2, 4)[seed // 2 % 4]]
        self.pipeline = _placed(ready.pipeline, self.folder)
        shared = self.pipeline.connections[: len(self.connections)]
        self.pipeline = dataclasses.replace(self.pipeline, connections=shared)
        if workers > 1:
            # Of several connections, what is near is pulled often enough by the faults.
            self.pipeline = dataclasses.replace(
                self.pipeline, schedule=dataclasses.replace(self.pipeline.schedule, near="")
            )
        self.confirms = seed % 3 != 0 if confirms is None else confirms
        if not self.confirms:
            # Confirming looks would heal what was not seen at first: without them it shows.
            self.pipeline = dataclasses.replace(
                self.pipeline, sync=dataclasses.replace(self.pipeline.sync, confirm_after=())
            )
        self.start = dt.datetime.fromisoformat(self.random.choice(MORNINGS))
        self.counters, self._trace = Counter(), hashlib.blake2b(digest_size=16)
        self.events = []
        self.programs, self.service = [], Process("service")
        self.machine_clock = _MachineClock(self)
        self.network_is_down = self.disk_is_full = self.pulls_are_off = False
        self.acknowledgements_lost, self.slow = 0.0, ()
        self.acks = Counter()
        self.priced = set()
        self.fences, self.lag_until = defaultdict(int), -1.0
        self.owners = Owners(self)
        self.broken = self.shared = self.server = None
        self._tokens, self._programs = 0, 0
        self._born()
        if workers > 1:
            self.shared = _warehouse(self.pipeline, self.now(), Warehouse)
            self.server = Server(self, self.shared)

    def _born(self):
        config = SandboxConfig(
            # Several workers have as much in all, of more connections.
            seed=self.seed, products=3, bookings=30 if self.workers == 1 else 12, days=20,
            today=self.start.date(), tokens=TOKENS,
            retry_attempts=6, retry_max=30.0, start_times=2, uuid_only_share=0.3,
        )  # fmt: skip
        clock = Clock(source=lambda: self.start.timestamp() + self.loop.time())
        context = self.service.context()
        self.to_service = ToService(self)
        self.sandbox = context.run(lambda: SandboxApp(Service(config, clock, transport=ToReceiver(self))))
        self.service_app = self.sandbox
        self.control = self.sandbox.control
        self.versions = defaultdict(list)
        self.former_products = {}
        store = self.sandbox.service.store
        put = store.put_booking

        def numbered(booking, changed_at=None):
            known = self.versions[booking.uuid]
            booking = dataclasses.replace(booking, reseller_reference=f"v{len(known)}")
            known.append(booking.status)
            put(booking, changed_at)

        store.put_booking = numbered
        for booking in list(store.bookings.values()):
            numbered(booking)
        store.history.clear()
        self._remember_products()

    # -- time, chance, records ------------------------------------------------------------------------------------

    def now(self):
        return self.start + dt.timedelta(seconds=self.loop.time())

    def chance(self, share):
        return share > 0 and self.random.random() < share

    def slowness(self):
        if not self.slow or self.random.random() >= 0.6:
            return 0.0
        self.count("answer on its way for long")
        return self.random.uniform(*self.slow)

    def token(self, size):
        self._tokens += 1
        return hashlib.blake2b(f"{self.seed}/{self._tokens}/{size}".encode(), digest_size=24).hexdigest()[:32]

    def program_random(self):
        return Random(f"{self.seed}/program/{self._programs}")

    def count(self, what, number=1):
        self.counters[what] += number

    def note(self, *what):
        """Into the trace: two runs of one seed must write the same."""
        line = f"{self.loop.time():.6f} {' '.join(str(one) for one in what)}"
        self._trace.update(line.encode())
        self.events.append(line)

    @property
    def trace(self):
        return self._trace.hexdigest()

    def fail(self, sentence):
        self.note("BROKEN", sentence)
        if self.broken is None:
            self.broken = sentence

    # -- what happens ---------------------------------------------------------------------------------------------

    def launch(self):
        self._programs += 1
        program = Program(self, self._programs)
        self.programs.append(program)
        program.start()
        self.note("start", program.name)
        return program

    def launch_missing(self):
        """As many as there should be; of several workers some may live still."""
        missing = self.workers - sum(program.alive for program in self.programs)
        for _ in range(missing):
            self.launch()
        return missing > 0

    def said(self, program, sentence):
        # Which process of this machine it is, is no part of the day.
        self.note("say", program.name, re.sub(r"pid \d+", "pid", sentence.replace(str(self.folder), "")))

    def died(self, program):
        self.note("dead", program.name)
        checks.acknowledged_is_durable(self)

    def asked(self, request):
        if not str(request.url).startswith(f"{BASE}/"):
            self.fail(f"the service is {BASE}, and {request.url} was asked")
        if FORGED in str(request.url):
            self.fail(f"{request.url} was asked because of a forged delivery")
        self.note("ask", request.method, request.url.raw_path.decode(), request.content.decode()[:120])

    def answered(self, status):
        self.note("answer", status)

    def acknowledged(self, endpoint, body):
        self.acks[endpoint, body] += 1
        told = json.loads(body)
        self.note("ack", told["notificationType"])
        if told.keys() - {"subscriptionId", "notificationType", "data"}:
            self.count("acknowledged with more fields")
        if told["notificationType"] == "AVAILABILITY_UPDATE" and "localDateStart" not in told["data"]:
            self.count("acknowledged without dates")

    def landed(self, program, warehouse, landing, report):
        self.note("land", len(landing.answered), report.rows, len(report.stale), len(report.differing))
        self.count("landings")
        self.count("differing answers looked at anew", len(report.differing))
        self.count("unchanged answers", sum(a.unchanged for a in landing.answered))
        self._one_writer(landing.fence)
        checks.bounded(self, program)
        is_looked_at = self.workers == 1 or self.chance(0.3)
        if is_looked_at if report.rows else self.chance(0.1):
            checks.after_landing(self, warehouse)

    def buried(self, absences, fence):
        self.note("bury", len(absences))
        for absence in absences:
            if absence.misses < 2:
                self.fail(f"deleted without proof: {absence.table} {absence.key} was missed {absence.misses} times")
            # Here, and not only after the next landing: that one may show it again. The service never deletes a booking.
            if absence.table == "core.bookings" and self.loop.time() > self.lag_until:
                self.fail(f"deleted though the service has it: {absence.table} {absence.key}")
        self.count("deletions proven", len(absences))
        self._one_writer(fence)

    def share(self, program):
        """From now on its warehouse is one that several may open, as a server is; its lock is lost."""
        self.shared = program.warehouses[-1]
        for lease in program.leases:
            lease._lock.release()

    def unshare(self):
        self.shared = None

    def close_server(self):
        """When nobody works any more; its files can be opened by others then."""
        if self.server is not None:
            self.server.warehouse.close()
            self.server = self.shared = None

    def took_over(self, fence):
        self._one_writer(fence)

    def _one_writer(self, fence):
        """`fence` is of the whole, or one for each connection."""
        for name, token in fence.items() if isinstance(fence, Mapping) else [("", fence)]:
            if token < self.fences[name]:
                of = f" of {name}" if name else ""
                self.fail(
                    f"one writer: a landing{of} of fence {token} was kept after {self.fences[name]} had taken over"
                )
            self.fences[name] = max(token, self.fences[name])

    def _remember_products(self):
        from octo_sync.sandbox import state

        for product in state.whole(self.sandbox.service)["products"]:
            self.former_products[product["id"]] = product

    # -- the service's truth --------------------------------------------------------------------------------------

    async def texts(self):
        request = httpx.Request(
            "GET",
            f"{BASE}/products",
            headers={
                "Authorization": "Bearer sandbox-token-all",
                "Octo-Capabilities": "octo/content",
                "Accept-Language": "en",
            },
        )
        status, headers, body, _ = await ask(self.service_app, request)
        assert status == 200, body
        return {dict(headers)[b"content-language"].decode(): {one["id"]: one for one in json.loads(body)}}
