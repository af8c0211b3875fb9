"""The client runs under a clock that is not real: all its waiting is the event loop's."""

import asyncio
import random
import selectors
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from octo_sync.errors import ServiceUnavailable
from octo_sync.model import Connection, Limits, Secret
from octo_sync.octo import endpoints
from octo_sync.octo.client import OctoClient


class Selector(selectors.SelectSelector):
    """Instead of waiting it moves the time."""

    now = 0.0

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout:
            self.now += timeout
        return ready


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.selector = Selector()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now


class Clock:
    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def now(self) -> datetime:
        return datetime(2026, 11, 20, tzinfo=UTC) + timedelta(seconds=self.loop.time())


def run(seed: int, statuses: list[int], headers: list[tuple[bytes, bytes]], **limits) -> tuple[list[float], object]:
    """The moments of the requests, and what came of the call."""
    loop = Loop()
    moments: list[float] = []
    given = iter(statuses)

    async def app(scope, receive, send) -> None:
        moments.append(loop.time())
        status = next(given)
        if not status:
            raise ConnectionResetError("the peer is gone")
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"[]"})

    async def main() -> object:
        connection = Connection(name="s", base_url="http://s/octo", token=Secret("t"), limits=Limits(**limits))
        transport = httpx.ASGITransport(app)
        client = OctoClient(connection, clock=Clock(loop), random=random.Random(seed), transport=transport)
        async with client as octo:
            try:
                return (await octo.send(endpoints.products())).body
            except ServiceUnavailable as error:
                return error

    try:
        return moments, loop.run_until_complete(main())
    finally:
        loop.close()


def test_hours_of_waiting_take_no_time_and_the_same_seed_gives_the_same_moments():
    limits = {"attempts": 20, "deadline": 50_000.0, "backoff": 60.0, "backoff_cap": 3600.0}
    first = run(3, [503] * 19 + [200], [], **limits)
    assert first[1] == b"[]"
    assert first[0][-1] > 20_000
    assert run(3, [503] * 19 + [200], [], **limits) == first
    assert run(4, [503] * 19 + [200], [], **limits)[0] != first[0]


@pytest.mark.parametrize("value", [b"30", b"Fri, 20 Nov 2026 00:00:30 GMT"])
def test_half_a_minute_is_waited_to_the_second(value):
    moments, body = run(1, [429, 200], [(b"retry-after", value)], backoff=0.1)
    assert moments == [0.0, 30.0]
    assert body == b"[]"


def test_a_transport_that_raises_the_systems_own_errors_is_a_broken_connection():
    moments, body = run(1, [0, 200], [], backoff=0.1)
    assert len(moments) == 2
    assert body == b"[]"
    assert isinstance(run(1, [0, 0], [], attempts=2)[1], ServiceUnavailable)
