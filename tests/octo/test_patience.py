"""How the client waits: what 429 asks for, backoff, and the budget of a connection."""

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import ceil, inf

import pytest
from tests.octo.support import StoppedClock, client, in_turn, reply, says, serving

from octo_sync.errors import RateLimited, RequestRefused, ServiceError, ServiceUnavailable
from octo_sync.model import Limits
from octo_sync.octo import endpoints
from octo_sync.octo.budget import REMEMBERED, Budget
from octo_sync.octo.pace import Pace, Stated, retry_after, stated

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CALL = endpoints.products()
GOOD = says(200, b"[]")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 7.5 "}, 7.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1000000000"}, 1e9),
        ({"retry-after": "1e400"}, inf),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:09 GMT"}, 9),
        ({"retry-after": "Fri, 20 Nov 2026 12:00:09 -0000"}, 9),
        ({"retry-after": "Fri, 20 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "Fri, 31 Dec 2027 12:00:00 GMT"}, 406 * 86400),
        ({"retry-after": "Fri, 99 Foo 2026 12:00:09 GMT"}, None),
        ({"octo-ratelimit-retryafter": "11"}, 11),
        ({"octo-ratelimit-retryafter": "11", "retry-after": "3"}, 11),
        ({"octo-ratelimit-retryafter": "rubbish", "retry-after": "3"}, 3),
    ],
)
def test_what_a_service_asks_to_wait_is_read(headers, seconds):
    assert retry_after(headers, NOON) == seconds


SOON = int(NOON.timestamp()) + 40


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"RateLimit-Limit": "100", "RateLimit-Remaining": "5", "RateLimit-Reset": "30"}, Stated(100, None, 5, 30)),
        ({"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "5"}, Stated(100, 60, 5)),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(SOON)}, Stated(None, None, 0, 40)),
        ({"x-rate-limit-remaining": "0", "x-rate-limit-reset": str(SOON * 1000)}, Stated(None, None, 0, 40)),
        ({"x-ratelimit-limit-minute": "60", "x-ratelimit-limit-second": "5"}, Stated(60, 60)),
        ({"ratelimit": "limit=100, remaining=50, reset=5", "ratelimit-policy": "100;w=60"}, Stated(100, 60, 50, 5)),
        ({"ratelimit": '"a";r=50;t=30', "ratelimit-policy": '"a";q=100;w=60'}, Stated(100, 60, 50, 30)),
        (
            {"ratelimit": '"a";r=50;t=30, "b";r=3;t=900', "ratelimit-policy": '"a";q=100;w=60, "b";q=500;w=3600'},
            Stated(500, 3600, 3, 900),
        ),
        ({"octo-ratelimit-limit": "65", "octo-ratelimit-remaining": "64"}, Stated(65, 60, 64)),
        ({"octo-ratelimit-remaining": "0", "octo-ratelimit-retryafter": "12"}, Stated(None, 60, 0, 12)),
        ({"ratelimit-limit": "nan", "ratelimit-remaining": "-1", "ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-limit": "unlimited", "content-length": "100", "retry-after": "5"}, None),
    ],
)
def test_the_limit_that_a_service_tells_is_read_in_every_spelling(headers, told):
    assert stated(headers, NOON) == told


@pytest.mark.parametrize("name", ["Retry-After", "OCTO-RateLimit-RetryAfter"])
async def test_a_429_is_tried_again_after_the_time_it_asks_for(name):
    async with serving(in_turn(says(429, b"", {name: "0.3"}), GOOD)) as server, client(server.origin) as octo:
        await octo.send(CALL)
    assert server.seen[1].at - server.seen[0].at >= 0.29


async def test_a_429_with_a_date_is_tried_again_then():
    headers = {"Retry-After": "Fri, 20 Nov 2026 12:00:01 GMT"}
    clock = StoppedClock(NOON + timedelta(seconds=0.7))
    async with serving(in_turn(says(429, b"", headers), GOOD)) as server, client(server.origin, clock=clock) as octo:
        await octo.send(CALL)
    assert server.seen[1].at - server.seen[0].at >= 0.29


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "-5"}, {"Retry-After": "soon"}])
async def test_a_429_that_asks_for_nothing_sensible_is_tried_again_after_a_short_wait(headers):
    limits = {"requests_per_minute": 60_000.0}
    handler = in_turn(says(429, b"", headers), GOOD)
    async with serving(handler) as server, client(server.origin, limits=limits) as octo:
        await octo.send(CALL)
    assert len(server.seen) == 2, "and not later than the deadline"


async def test_an_absurd_wait_ends_the_connection_until_somebody_has_a_reason_to_try():
    handler = in_turn(says(429, b"", {"Retry-After": "1000000000"}), GOOD)
    async with serving(handler) as server, client(server.origin, limits={"retry_after_cap": 0.3}) as octo:
        for _ in range(2):
            with pytest.raises(RateLimited, match="1,000,000,000 s, longer than") as caught:
                await octo.send(CALL, patient=True)
            assert caught.value.retry_after == 1e9
        assert len(server.seen) == 1
        octo.readmit()
        await octo.send(CALL, patient=True)
    assert server.seen[1].at - server.seen[0].at >= 0.29


async def test_a_wait_beyond_the_deadline_is_not_begun_but_told():
    async with serving(says(429, b"slow down", {"Retry-After": "30"})) as server, client(server.origin) as octo:
        with pytest.raises(RateLimited, match="429") as caught:
            await octo.send(CALL)
    assert caught.value.retry_after == 30
    assert len(server.seen) == 1


async def test_a_pause_that_one_call_was_asked_for_holds_for_the_whole_connection():
    async with serving(in_turn(says(429, b"", {"Retry-After": "30"}), GOOD)) as server, client(server.origin) as octo:
        with pytest.raises(RateLimited):
            await octo.send(CALL)
        with pytest.raises(RateLimited, match="held back by this connection's own budget") as caught:
            await octo.send(CALL)
    assert caught.value.status is None
    assert 0 < (caught.value.retry_after or 0) <= 30
    assert len(server.seen) == 1


async def test_a_503_may_ask_for_time_too():
    async with serving(in_turn(says(503, b"", {"Retry-After": "0.3"}), GOOD)) as server, client(server.origin) as octo:
        await octo.send(CALL)
    assert server.seen[1].at - server.seen[0].at >= 0.29


async def test_the_same_seed_gives_the_same_waits(monkeypatch):
    real = asyncio.sleep
    waits: list[float] = []

    own = asyncio.get_running_loop()

    async def noted(delay: float, result: object = None) -> object:
        if asyncio.get_running_loop() is not own:  # a server of another test, in a thread of its own
            return await real(delay, result)
        waits.append(delay)
        return await real(0)

    async def run(seed: int) -> list[float]:
        waits.clear()
        limits = {"attempts": 6, "backoff": 0.01, "backoff_cap": 0.05, "deadline": 5.0}
        async with serving(says(503)) as server, client(server.origin, seed=seed, limits=limits) as octo:
            with monkeypatch.context() as patched:
                patched.setattr(asyncio, "sleep", noted)
                with pytest.raises(ServiceUnavailable):
                    await octo.send(CALL)
        return [wait for wait in waits if wait > 0]

    random.seed(1)
    first = await run(7)
    random.seed(2)
    assert await run(7) == first
    assert await run(8) != first
    assert len(first) == 5
    for number, wait in enumerate(first):
        longest = min(0.05, 0.01 * 2**number)
        assert longest / 2 <= wait <= longest


class Ticking:
    """Runs a budget on a loop whose time is ours."""

    def __init__(self, monkeypatch, **limits) -> None:
        self.now = 1000.0
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: self.now)
        self.budget = Budget(Limits(**limits))

    def go(self) -> float:
        """Wait as long as the budget wants, then start; the time of the start."""
        while (wait := self.budget.wait()) > 0:
            self.now += wait
        self.budget.over()
        return self.now

    def ask(self, service: Callable[[float], tuple[int, float | None]]) -> int:
        """One request, answered at once by `service` with a status and a wait; its status."""
        status, asked = service(started := self.go())
        self.now += 0.01
        self.budget.heard(status, started=started, asked=asked)
        return status


@pytest.fixture
async def ticking(monkeypatch):
    with monkeypatch.context() as patched:
        yield lambda **limits: Ticking(patched, **limits)


@pytest.mark.parametrize("rate", [1, 7, 60, 65, 600, 6000])
async def test_no_minute_ever_holds_more_requests_than_allowed(ticking, rate):
    clock = ticking(requests_per_minute=float(rate), concurrency=6)
    starts = [clock.go() for _ in range(rate * 3)]
    for first, next_minute in zip(starts, starts[rate:], strict=False):
        assert next_minute - first >= 60 - 1e-6
    assert starts[-1] - starts[0] <= 60 * 3.6


async def test_without_a_rate_nothing_waits(ticking):
    clock = ticking()
    assert len({clock.go() for _ in range(1000)}) == 1


def permits(count: int, seconds: float, *, says_so: bool = True) -> Callable[[float], tuple[int, float | None]]:
    """A service that lets so many requests through in any so many seconds."""
    times: list[float] = []

    def service(now: float) -> tuple[int, float | None]:
        times[:] = [moment for moment in times if moment > now - seconds]
        if len(times) >= count:
            return 429, ceil(times[0] + seconds - now) if says_so else None
        times.append(now)
        return 200, None

    return service


@pytest.mark.parametrize(
    ("count", "seconds", "says_so"),
    [(1, 1, True), (2, 60, True), (5, 1, True), (5, 1, False), (30, 60, True), (30, 60, False), (100, 3600, True)],
)
async def test_a_pace_that_only_refusals_tell_is_learned_and_kept(ticking, count, seconds, says_so):
    clock = ticking(retry_after_cap=3600.0)
    service = permits(count, seconds, says_so=says_so)
    while clock.budget.pace is None:
        clock.ask(service)
    begin = clock.now
    statuses = [clock.ask(service) for _ in range(count * 10)]
    assert statuses.count(429) <= 1
    assert clock.budget.pace.requests <= count + 1
    assert clock.now - begin <= (seconds + 2) * 10 * (1.1 if says_so else 2)


@pytest.mark.parametrize(
    ("status", "rows", "pause", "limits"),
    [
        (429, 1, 0, {}),
        (503, 3, 0, {}),
        (429, 3, 7200, {}),
        (429, 3, 0, {"requests_per_minute": 2.0, "retry_after_cap": 100.0}),
    ],
    ids=["once", "an outage", "little was asked", "longer than may be asked for"],
)
async def test_refusals_that_show_no_limit_leave_no_pace(ticking, status, rows, pause, limits):
    clock = ticking(**limits)
    for _ in range(rows):
        for _ in range(5):
            assert clock.ask(lambda _: (200, None)) == 200
            clock.now += pause
        clock.ask(lambda _: (status, 60.0))
    clock.ask(lambda _: (200, None))
    assert clock.budget.pace is None


async def test_a_pace_that_was_kept_and_refused_all_the_same_is_found_out_anew(ticking):
    clock = ticking()
    clock.budget.pace = Pace(10, 60.0)
    service = permits(4, 60)
    statuses = [clock.ask(service) for _ in range(40)]
    assert clock.budget.pace.requests == 4
    assert 1 <= statuses.count(429) <= 4


@pytest.mark.parametrize("left", [0, 3])
async def test_no_more_requests_go_than_are_left(ticking, left):
    clock = ticking()
    clock.budget.heard(200, started=clock.go(), told=Stated(100, None, left, 30))
    begin = clock.now
    assert [clock.go() for _ in range(left)] == [begin] * left
    assert clock.go() >= begin + 30


async def test_a_limit_that_is_told_is_the_pace(ticking):
    clock = ticking()
    clock.budget.heard(200, started=clock.go(), told=Stated(50, 60, 49))
    assert clock.budget.permits == Pace(50, 60)
    begin = clock.now
    assert all(clock.go() == begin for _ in range(49))
    assert clock.go() >= begin + 60


async def test_a_limit_that_is_told_without_its_window_is_a_pace_once_a_window_began(ticking):
    clock = ticking()
    clock.budget.heard(200, started=clock.go(), told=Stated(60, None, 1, 2))
    assert clock.budget.permits is None
    clock.go()
    assert clock.go() >= 1002
    clock.budget.heard(200, started=clock.now, told=Stated(60, None, 59, 60))
    assert clock.budget.permits == Pace(60, 60)


async def test_a_pace_of_more_requests_than_are_remembered_is_kept(ticking):
    clock = ticking()
    clock.budget.pace = Pace(2 * REMEMBERED, 3600.0)
    assert {clock.go() for _ in range(REMEMBERED)} == {1000.0}
    assert 1800 <= clock.budget.wait() <= 1900
    assert 1800 <= clock.budget.needs(REMEMBERED) <= 1900


async def test_who_is_refused_all_the_time_gives_up_after_more_than_a_minute(ticking):
    for asked, least in ((None, 60), (1.0, 60), (600.0, 3000), (3600.0, 3600)):
        clock = ticking()
        begin, count = clock.now, 0
        while clock.budget.gave_up is None and count < 50:
            clock.ask(lambda _, asked=asked: (429, asked))
            count += 1
        assert clock.budget.gave_up
        assert count <= 8
        assert least <= clock.now - begin <= 3700


async def test_when_so_many_requests_will_be_done_is_told(ticking):
    clock = ticking(requests_per_minute=30.0)
    assert clock.budget.needs(60) == 120
    clock.budget.pace = Pace(10, 60.0)
    assert clock.budget.needs(10) == 20
    assert 290 <= clock.budget.needs(60) <= 310
    assert ticking().budget.needs(1000) is None


async def test_too_many_refusals_in_a_minute_hold_the_connection_back(ticking):
    clock = ticking(max_4xx_per_minute=3, requests_per_minute=60_000.0)
    begin = clock.now
    for status in (400, 404, 429):
        clock.budget.heard(status, started=clock.go())
        clock.now += 1
    assert clock.go() >= begin + 60
    for status in (200, 500, 200, 200):
        clock.budget.heard(status, started=clock.go())
    assert clock.budget.wait() == 0


async def test_a_connection_with_too_many_refusals_stops_asking():
    async with serving(says(400)) as server, client(server.origin, limits={"max_4xx_per_minute": 5}) as octo:
        for _ in range(5):
            with pytest.raises(RequestRefused):
                await octo.send(CALL)
        with pytest.raises(RateLimited, match="own budget"):
            await octo.send(CALL)
    assert len(server.seen) == 5


async def test_a_rate_is_kept_on_the_wire():
    limits = {"requests_per_minute": 1200.0, "concurrency": 2}
    async with serving(GOOD) as server, client(server.origin, limits=limits) as octo:
        begun = asyncio.get_running_loop().time()  # on a busy machine the first may be seen late, but none too early
        await asyncio.gather(*(octo.send(CALL) for _ in range(10)))
    assert server.seen[-1].at - begun >= 8 * 0.05 - 0.02


async def test_one_connection_in_trouble_does_not_hold_another_back():
    async def sick(seen, writer):
        await reply(writer, 429, b"", {"Retry-After": "60"})

    async with serving(sick) as one, serving(GOOD) as two, client(one.origin) as ill, client(two.origin) as well:
        results = await asyncio.gather(*(ill.send(CALL) for _ in range(10)), return_exceptions=True)
        assert all(isinstance(result, ServiceError) for result in results)
        await well.send(CALL)
