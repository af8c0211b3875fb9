"""The demo's acts: what it plays with the sandbox beside the pull."""

import asyncio
import contextlib
import json
import socket
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from octo_sync.app.serve import Events, serve

if TYPE_CHECKING:
    from octo_sync.flows.sync.keep import Keeper
    from octo_sync.pipeline import Pipeline

_CHANGES = 18
_KINDS = ["note", "redeem", "decide", "closeout", "capacity", "product"]
"""Changes that are told in full: a sale also takes places, and those nobody tells of."""
_ROUNDS = 6
"""Times that changes are made until their deliveries are as mixed as is promised, which is left to chance."""
_FAULTS = [{"fault": "delivery_doubled", "share": 0.2}, {"fault": "delivery_reordered", "share": 0.3, "seconds": 0.2}]
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


async def be_told(loaded: "Pipeline", control: str) -> Told:
    """Serve for a moment: subscribe, let the sandbox change things, take what it sends, fetch anew what that names.

    Some deliveries are doubled, some come out of order and some hold only a uuid, as happens at real services.
    """
    started, told = time.perf_counter(), Told()
    keepers: list[Keeper] = []
    program = asyncio.create_task(serve(loaded, events=Events(keeping=keepers.append)))
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


async def _until(program: "asyncio.Task[None]", done: Callable[[], bool]) -> None:
    while not done():
        if program.done():
            program.result()
        await asyncio.sleep(_LOOK)
