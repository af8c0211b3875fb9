"""Services that permit little: their pace is kept, by all requests and by the next run, and a pull ends by itself."""

import asyncio
import dataclasses
import json
from collections import Counter
from datetime import timedelta
from math import ceil
from random import Random
from types import SimpleNamespace

import httpx
import pytest
from tests.flows.harness import Asked
from tests.flows.virtual import lived

from octo_sync.errors import RateLimited
from octo_sync.flows.sync.paces import Paces
from octo_sync.model import SubjectKind
from octo_sync.octo.budget import Budget
from octo_sync.octo.pace import Pace

REFUSED = {"error": "TOO_MANY_REQUESTS", "errorMessage": "Too many requests."}
PLACES = {"bookings": (-200, 120), "availability": (0, 240)}


class Permits:
    """So many requests in so many seconds; a refusal says how long to wait, if `how` makes a header of it."""

    def __init__(self, service, count, seconds=60.0, how=lambda wait: {"Retry-After": str(ceil(wait))}, tell=None):
        self.service, self.count, self.seconds, self.how, self.tell = service, count, seconds, how, tell
        self.times, self.statuses = [], Counter()

    def __call__(self, _, response):
        now = self.service.loop.time()
        self.times = [moment for moment in self.times if moment > now - self.seconds]
        if len(self.times) >= self.count:
            self.statuses[429] += 1
            return httpx.Response(429, headers=self.how(self.times[0] + self.seconds - now), json=REFUSED)
        self.times.append(now)
        self.statuses[response.status_code] += 1
        if self.tell:
            response.headers.update(
                self.tell(self.count, self.count - len(self.times), self.times[0] + self.seconds - now)
            )
        return None


def told(limit, left, resets_in):
    return {"RateLimit-Limit": str(limit), "RateLimit-Remaining": str(left), "RateLimit-Reset": str(ceil(resets_in))}


async def synced(service, project, edit):
    """A run: its result, its seconds, its requests, when it was expected to end."""
    service.edit, begin, before = edit, service.loop.time(), len(service.log)
    ends = []
    async with project.opened(transport=service.way) as opened:
        opened.ports.progress.changed = lambda progress: ends.append((progress.ends_at, progress.pace))
        result = await sync_in(opened)
    return result, service.loop.time() - begin, len(service.log) - before, [(at, pace) for at, pace in ends if at]


async def sync_in(opened):
    from octo_sync.flows.sync.pull import Scope
    from octo_sync.flows.sync.run import sync

    return await sync(opened.ports, Scope(full=True), command="test", publishing=False)


@pytest.mark.deep(5, everyday=["retry-after"])
@pytest.mark.parametrize(
    ("how", "tell", "most"),
    [
        (lambda wait: {"Retry-After": str(ceil(wait))}, None, 12),
        (lambda _: {}, None, 24),
        (lambda _: {"Retry-After": "1"}, None, 24),
        (lambda wait: {"Retry-After": str(ceil(wait))}, told, 0),
    ],
    ids=["retry-after", "silent", "always-1", "told"],
)
def test_the_pace_of_a_service_is_kept_and_remembered_for_the_next_run(tmp_path, how, tell, most):
    async def life(service):
        project = service.project(tmp_path, **PLACES)
        runs = []
        for _ in range(2):
            permits = Permits(service, 20, how=how, tell=tell)
            result, seconds, requests, expected = await synced(service, project, permits)
            assert (result.status, result.failed) == ("ok", {})
            runs.append((seconds, requests, permits.statuses[429], expected, service.now()))
        return runs

    (first, again) = lived(life, bookings=30, days=300, products=5)
    seconds, requests, refused, expected, ended = first
    assert refused <= most
    windows = (requests - refused) // 20
    assert windows >= 3
    assert seconds <= (windows + 1) * (62 if most <= 12 else 95)
    assert expected, "who watches is told when it will be over"
    at, pace = expected[len(expected) // 2]
    assert "main permits 20 requests" in pace
    assert abs((ended - at).total_seconds()) < (65 if most <= 12 else 95), (
        "one window off at most, each as long as above"
    )
    assert again[2] == 0, "the next run knows it from its first request"


def test_a_few_refusals_among_many_requests_cost_their_wait_and_nothing_else(tmp_path):
    """122 requests, one in twenty 429 with `Retry-After: 1`."""

    async def life(service):
        numbers, found = Random(5), []
        project = service.project(tmp_path, **PLACES)

        def edit(request, response):
            if numbers.random() < 0.05:
                return httpx.Response(429, headers={"Retry-After": "1"}, json=REFUSED)
            return None

        for _ in range(2):
            result, seconds, requests, _ = await synced(service, project, edit)
            assert result.status == "ok"
            found.append((seconds, requests))
        return found

    for seconds, requests in lived(life, bookings=30, days=300, products=7):
        assert 110 < requests < 140
        assert seconds < 15


@pytest.mark.deep(2)
def test_a_third_of_failures_of_all_kinds_does_not_keep_a_run_from_its_end(tmp_path):
    async def life(service):
        numbers = Random(4)
        project = service.project(tmp_path, sync={"backoff": "2s", "backoff_cap": "300s"}, **PLACES)

        def edit(request, response):
            match int(numbers.random() * 20):
                case 0:
                    return httpx.Response(500, json=REFUSED)
                case 1:
                    return httpx.Response(503, json=REFUSED)
                case 2:
                    return httpx.Response(429, headers={"Retry-After": "1"}, json=REFUSED)
                case 3:
                    return httpx.Response(200, content=response.content[:-9])
                case 4:
                    return httpx.Response(200, content=b"<html>")
                case 5:
                    raise httpx.ReadError("reset")
            return None

        return await synced(service, project, edit)

    result, seconds, _, _ = lived(life, bookings=30, days=300, products=8)
    assert result.status == "ok"
    assert seconds < 60


def test_an_absurd_wait_ends_the_run_with_what_it_has(tmp_path):
    async def life(service):
        project = service.project(tmp_path, **PLACES)

        def edit(request, response):
            if len(service.log) > 20:
                return httpx.Response(429, headers={"Retry-After": "1000000000"}, json=REFUSED)
            return None

        return await synced(service, project, edit)

    result, seconds, requests, _ = lived(life, bookings=30, days=300, products=5)
    assert result.status == "partial"
    assert result.totals.subjects >= 10
    assert [type(t.error) for t in result.troubles] == [RateLimited]
    assert "1,000,000,000 s" in str(result.troubles[0].error)
    assert seconds < 5
    assert requests <= 26


def test_an_hour_that_is_asked_for_is_waited_and_is_no_failure(tmp_path):
    async def life(service):
        project = service.project(tmp_path, bookings=(-30, 40), availability=(0, 40))
        return await synced(service, project, Permits(service, 5, 3600.0))

    result, seconds, _, _ = lived(life, bookings=10, days=40, products=1)
    assert result.status == "ok"
    assert 3600 < seconds < 2.1 * 3600


def test_a_pace_is_forgotten_after_a_day(tmp_path):
    async def life(service):
        project = service.project(tmp_path, bookings=(-10, 10), availability=(0, 10))
        await synced(service, project, Permits(service, 4))
        async with project.opened(transport=service.way) as opened:
            noted = json.loads(opened.journal.settings.get("pace", connection="main"))
            known = [opened.ports.clients["main"].budget.pace]
            assert known[0].requests == noted["requests"] == 4
        noted["at"] = (service.now() - timedelta(days=1)).isoformat()
        async with project.opened() as opened:
            opened.journal.settings.set("pace", json.dumps(noted), connection="main")
        async with project.opened(transport=service.way) as opened:
            return [*known, opened.ports.clients["main"].budget.pace]

    known, later = lived(life, bookings=10, days=20, products=3)
    assert (known.requests, later) == (4, None)


def test_who_takes_a_connection_over_goes_on_with_what_its_former_owner_has_asked(tmp_path):
    """Else each of several workers would ask as much as the service permits in all."""

    async def life(service):
        async with service.project(tmp_path).opened(transport=service.way) as opened:
            ports = opened.ports
            client, asked = ports.clients["main"], {}
            shared = dataclasses.replace(ports, share=SimpleNamespace(owned={"main": 1}))
            for name, after in (("former", 0.0), ("same", 0.0), ("next", 0.0), ("late", 61.0)):
                await asyncio.sleep(after)
                client.budget = Budget(client.connection.limits)
                paces = Paces(dataclasses.replace(shared, run_id="former" if name == "same" else name))
                if name == "former":
                    client.budget.pace = Pace(20, 60.0)
                    for _ in range(15):
                        client.budget.wait()
                        client.budget.over()
                    paces.note(list(SubjectKind), at_once=True)
                else:
                    paces.take("main")
                asked[name] = client.budget.asked(service.loop.time()), client.budget.pace.requests
            return asked

    assert lived(life, bookings=1, days=1, products=1) == {
        "former": (15, 20),
        "same": (0, 20),
        "next": (15, 20),
        "late": (0, 20),
    }


def test_who_takes_a_connection_over_waits_as_long_as_its_former_owner_was_asked_to(tmp_path):
    async def life(service):
        async with service.project(tmp_path).opened(transport=service.way) as opened:
            client, waits = opened.ports.clients["main"], {}
            shared = dataclasses.replace(opened.ports, share=SimpleNamespace(owned={"main": 1}))
            for name, after in (("former", 0.0), ("next", 10.0), ("late", 31.0)):
                await asyncio.sleep(after)
                client.budget = Budget(client.connection.limits)
                paces = Paces(dataclasses.replace(shared, run_id=name))
                if name == "former":
                    client.budget.wait()
                    client.budget.heard(429, started=service.loop.time(), asked=40.0)
                    client.budget.over()
                    paces.note(list(SubjectKind), at_once=True)
                else:
                    paces.take("main")
                waits[name] = round(client.budget.wait())
            return waits

    assert lived(life, bookings=1, days=1, products=1) == {"former": 40, "next": 30, "late": 0}


def test_what_another_worker_asked_does_not_shorten_a_wait_of_ones_own(tmp_path):
    async def life(service):
        async with service.project(tmp_path).opened(transport=service.way) as opened:
            now, budget = service.loop.time(), Budget(opened.ports.clients["main"].connection.limits)
            budget.wait()
            budget.heard(429, started=now, asked=40.0)
            budget.over()
            budget.charge(3, now)
            budget.charge(3, now, held=5.0)
            return round(budget.wait())

    assert lived(life, bookings=1, days=1, products=1) == 40


@pytest.mark.deep(1)
def test_one_connection_that_is_held_leaves_the_others_alone(tmp_path):
    async def life(service):
        places = {**PLACES, "availability": (0, 100)}
        two = {"main": Asked(**places), "other": Asked(token="a", **places)}
        project = service.project(tmp_path, connections=two)
        ended = {}

        def edit(request, response):
            if request.headers["authorization"].endswith("-a"):
                ended["other"] = service.loop.time()
                return None
            return slow(request, response)

        slow = Permits(service, 10)
        result, seconds, _, _ = await synced(service, project, edit)
        return result.status, seconds, ended["other"]

    status, seconds, other = lived(life, bookings=30, days=120, products=4)
    assert status == "ok"
    assert seconds > 60
    assert other < 30
