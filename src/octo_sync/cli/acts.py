"""The demo's acts: subscribe and pull, be told of changes, publish, prove, reconcile, show."""

import asyncio
import contextlib
import dataclasses
import json
import socket
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octo_sync import pipeline
from octo_sync.app.machine import SystemClock, environ, new_token, run_until_done, today_at
from octo_sync.app.project import open_project, run_in_project
from octo_sync.app.reconcile import make
from octo_sync.app.serve import Events, serve
from octo_sync.cli.progress import shown
from octo_sync.cli.report import write
from octo_sync.dashboard import Source
from octo_sync.destinations.duckdb.reader import open_read_only
from octo_sync.errors import WarehouseError
from octo_sync.flows.demo import ledger as demo_ledger
from octo_sync.flows.demo import proof as demo
from octo_sync.flows.demo.proof import Proof
from octo_sync.flows.ports import Ports, Progress
from octo_sync.flows.publish import keep_marts
from octo_sync.flows.sync.keep import Keeper
from octo_sync.flows.sync.mirror import mirror_and_publish
from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import SyncResult, sync
from octo_sync.flows.templates import filled
from octo_sync.flows.webhooks.subscribe import check, close_gap
from octo_sync.pipeline import Pipeline
from octo_sync.reconciliation.model import Bucket

_CHANGES = 18
_KINDS = ["note", "redeem", "closeout", "capacity", "product"]
"""Changes that are told in full: a sale also takes places, a refusal gives them back, and of places nobody tells."""
_ROUNDS = 6
"""Times that changes are made until their deliveries are as mixed as is promised, which is left to chance."""
_FAULTS = [{"fault": "delivery_doubled", "share": 0.2}, {"fault": "delivery_reordered", "share": 0.3, "seconds": 0.1}]
_PARTS = frozenset({"receiver", "worker"})
_PATIENCE = 30.0
_LOOK = 0.02


@dataclass(slots=True)
class Told:
    """What the webhooks brought."""

    changes: int = 0
    received: int = 0
    refreshed: int = 0
    """Fetches because of them, confirming looks included."""
    repeats: int = 0
    """Deliveries with the bytes of another one."""
    out_of_order: int = 0
    """Deliveries that were sent after one that was made later."""
    only_uuid: int = 0
    """Deliveries about a booking that name its uuid and nothing else."""
    complete: bool = False
    """Whether every change was told and all that was told is clean."""
    seconds: float = 0.0

    @property
    def mixed(self) -> bool:
        """Whether some were doubled, some came out of order and some held only a uuid."""
        return min(self.repeats, self.out_of_order, self.only_uuid) > 0


def ask(url: str, body: object = None, method: str | None = None) -> Any:  # noqa: ANN401 - that is what JSON is
    """The sandbox's control plane, or its state."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(  # noqa: S310 - our own sandbox on loopback
        url, data=data, headers={"Content-Type": "application/json"}, method=method
    )
    # A proxy of the environment has no business between two programs on this machine.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=60) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


async def be_told(loaded: Pipeline, control: str) -> Told:
    """Serve for a moment: subscribe, let the sandbox change things, take what it sends, fetch anew what that names.

    Some deliveries are doubled, some come out of order and some hold only a uuid, as happens at real services.
    """
    started, told = time.perf_counter(), Told()
    keepers = list[Keeper]()
    program = asyncio.create_task(serve(loaded, parts=_PARTS, events=Events(keeping=keepers.append)))
    try:
        async with asyncio.timeout(_PATIENCE) as patience:
            await _until(program, lambda: bool(keepers) and any(keepers[0].ports.journal.endpoints.rows()))
            keeper = keepers[0]
            await _until(program, lambda: not keeper.owes)
            before = keeper.landed
            await asyncio.to_thread(ask, f"{control}/faults", _FAULTS, "PUT")
            only = loaded.connections[0].token.reveal()  # a booking is told to the token that made it
            for turn in range(_ROUNDS):
                patience.reschedule(asyncio.get_running_loop().time() + _PATIENCE)
                asked = {"changes": _CHANGES, "kinds": ["note"] if turn else _KINDS, "token": only}
                made = await asyncio.to_thread(ask, f"{control}/traffic", asked)
                told.changes += len(made["changes"])
                while not (sent := await asyncio.to_thread(ask, f"{control}/deliveries"))["idle"]:  # noqa: ASYNC110 - over HTTP
                    await asyncio.sleep(_LOOK)
                await _until(program, lambda: not keeper.owes)
                _count(told, [d.body for d in keeper.ports.journal.inbox.deliveries(1000)], sent["deliveries"])
                if told.mixed:
                    break
            told.refreshed = keeper.landed - before
            told.complete = told.received >= told.changes == (turn + 1) * _CHANGES
    except TimeoutError:
        pass  # `complete` says it
    finally:
        program.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await program
        await asyncio.to_thread(ask, f"{control}/faults", None, "DELETE")
    told.seconds = time.perf_counter() - started
    return told


def _count(told: Told, bodies: list[bytes], sent: list[dict[str, Any]]) -> None:
    """What was received, and how it came. `sent` are the sandbox's deliveries, as it made them."""
    told.received, told.repeats = len(bodies), len(bodies) - len(set(bodies))
    told.only_uuid = sum(json.loads(body)["data"].keys() == {"uuid"} for body in bodies)
    first = [each["attempts"][0]["at"] for each in sent if each["attempts"]]
    told.out_of_order = sum(any(at > later for later in first[place:]) for place, at in enumerate(first))


async def _until(program: asyncio.Task[None], done: Callable[[], bool]) -> None:
    while not done():
        if program.done():
            program.result()
        await asyncio.sleep(_LOOK)


def pipeline_file(days: int) -> str:
    """The demo's pipeline file, for a service that sells so many days ahead."""
    # Bookings to the end of the last month that has departures.
    return filled(Path(demo.__file__).with_name("pipeline.toml.j2"), days=days, reach=days + 31)


def load(directory: Path, days: int, base_url: str) -> Pipeline:
    """A new project for a service that sells so many days ahead; of a former one only what a demo made is removed."""
    file, port = directory / "pipelines" / "demo.toml", free_port()
    file.parent.mkdir(parents=True, exist_ok=True)
    for former in directory.glob("octo.*"):
        if former.is_file():
            former.unlink()
    file.write_text(pipeline_file(days), encoding="utf-8")
    loaded = pipeline.load(
        file,
        directory=directory,
        environ=environ(),
        overrides={
            **{f"connections.{name}.base_url": base_url for name in ("website", "citytrips", "hotels")},
            "webhooks.url": f"http://127.0.0.1:{port}",
            "webhooks.bind": f"127.0.0.1:{port}",
            "sync.confirm_after": ["0.05s", "0.15s"],
            "publish.enabled": False,
        },
    )
    # As with `confirm_after`: the sandbox does not lag, and nobody wants to watch a demo wait.
    return dataclasses.replace(loaded, webhooks=dataclasses.replace(loaded.webhooks, rest=0.1))


def pull(loaded: Pipeline, control: str) -> tuple[SyncResult, Told, Mapping[str, Any]]:
    """Subscribe, pull everything, be told of changes, make the read copy; also the sandbox's state as it is then."""
    progress = Progress()

    async def run() -> tuple[SyncResult, Told, Mapping[str, Any]]:
        async with open_project(loaded, command="demo", progress=progress) as project:
            views = asyncio.create_task(asyncio.to_thread(keep_marts, project.ports.warehouse, loaded.directory))
            await _subscribe(project.ports)
            progress.total.clear()  # what subscribing has marked the pull marks again
            result = await sync(project.ports, Scope(), command="demo", publishing=False)
            await views
        progress.expect(None, "webhooks: changes are made, told and fetched")
        told = await be_told(loaded, control)
        progress.expect(None, "marts and checks")
        async with open_project(loaded, command="demo") as project:
            result.published, state = await asyncio.gather(
                asyncio.to_thread(mirror_and_publish, project.ports), asyncio.to_thread(_state, loaded, control)
            )
        return result, told, state

    with shown(progress, lines=False):
        return run_until_done(run())


async def _subscribe(ports: Ports) -> None:
    """Before the pull, so that it owes nothing to what changes meanwhile."""
    for name in ports.clients:
        if (endpoint := (await check(ports, name, tokens=new_token)).endpoint) is not None:
            close_gap(ports, name, endpoint.endpoint)


def _state(loaded: Pipeline, control: str) -> Mapping[str, Any]:
    """The sandbox's state, and its departures as each connection is to have them."""
    state: dict[str, Any] = ask(f"{control}/state")
    state["slots"] = []
    for product in state["products"]:
        window = loaded.horizons.availability.window(today_at(product["time_zone"]))
        where = f"product_id={product['id']}&from={window.start}&to={window.end}"
        shown = ask(f"{control}/state/availability?{where}")["slots"]
        for connection in loaded.connections:
            keeps = loaded.products.get(connection.name)
            state["slots"] += shown if keeps is None or keeps.keeps(product["id"]) else []
    return state


def prove(loaded: Pipeline, state: Mapping[str, Any]) -> Proof:
    """The copy against the sandbox's own state."""
    service = demo.of_state(state, loaded)
    with open_read_only(loaded.publish.path) as copy:
        return demo.Proof(service, demo.of_copy(lambda sql: copy.execute(sql).fetchall()))


@dataclass(frozen=True, slots=True)
class Compared:
    """The ledger against the copy: what was planted in it, what was not found, what was found and never planted."""

    matched: int
    planted: dict[str, int]
    missed: list[str]
    unplanted: int

    @property
    def well(self) -> bool:
        """Whether just what was planted was found."""
        return not self.missed and not self.unplanted


def reconcile(loaded: Pipeline, state: Mapping[str, Any]) -> Compared:
    """Write a ledger of the sandbox's bookings with differences in it, and compare the copy with it."""
    window = loaded.reconciliations["ledger"].window.window(today_at(loaded.connections[0].business_time_zone))
    rows, planted = demo_ledger.plant(state, window)
    demo_ledger.write(loaded.directory / "exports" / "ledger.csv", rows)
    outcome = make(loaded, "ledger").outcome
    missed, unplanted = demo_ledger.found(outcome, planted)
    return Compared(
        matched=outcome.counts.get(Bucket.MATCHED, 0),
        planted=dict(Counter(each.word for each in planted)),
        missed=[f"{each.word} ({each.code}) of {each.uuid}" for each in missed],
        unplanted=unplanted,
    )


def show(loaded: Pipeline) -> Path:
    """Publish what was compared too, and write the Overview of it."""
    made = run_in_project(loaded, "demo", mirror_and_publish)
    if made.failed:
        names = ", ".join(failed.check.name for failed in made.failed)
        raise WarehouseError(f"{loaded.publish.path} does not show the comparison, because checks failed: {names}.")
    target = loaded.directory / "report.html"
    write(Source(loaded.publish.path, loaded.directory, now=SystemClock().now), target)
    return target
