"""What is edited elsewhere while `serve` runs is noticed within half a minute, at the cost of few calls."""

import asyncio
import contextlib
import io
import json
import logging
from functools import partial
from random import Random
from types import SimpleNamespace

import httpx
import pytest
from tests.flows.harness import TOKENS, reply
from tests.flows.virtual import lived
from tests.simulation.program import _Scheduler
from tests.simulation.wire import ask

from octo_sync.app import logs
from octo_sync.app import serve as serving
from octo_sync.app.project import open_project
from octo_sync.errors import JournalError
from octo_sync.flows.webhooks.noticing import watch_tokens
from octo_sync.model import Secret
from octo_sync.octo import endpoints
from octo_sync.octo.pace import Pace
from octo_sync.pipeline.schedule import Schedules

LISTS = "/notifications/subscriptions"
REFUSED = {"error": "UNAUTHORIZED", "errorMessage": "no"}


@contextlib.asynccontextmanager
async def served(service, project, said):
    """The worker of `serve`, with the schedules that it has, in virtual time; its keeper."""
    with project.file.open("a") as file:
        file.write('[webhooks]\nurl = "https://hooks.example.com"\n')
    means = serving.Means(
        opening=partial(open_project, transport=service.way),
        schedules=lambda zone, clock, **more: Schedules(zone, clock, scheduler=_Scheduler(clock), **more),
    )
    keepers = []
    events = serving.Events(say=said.append, keeping=keepers.append)
    running = asyncio.create_task(
        serving.serve(
            project.pipeline,
            parts=frozenset({"worker"}),
            events=events,
            clock=service,
            random=Random(1),
            means=means,
        )
    )
    try:
        await asyncio.sleep(40)
        yield keepers[0]
    finally:
        running.cancel()
        await asyncio.wait([running])


async def told(service, method, path="", body=None, token="all"):
    """Ask the service itself, as the account's holder does in its pages."""
    headers = {"Authorization": f"Bearer {TOKENS[token]}", "Octo-Capabilities": "octo/notifications"}
    request = httpx.Request(method, f"{service.base_url}{LISTS}{path}", headers=headers, json=body)
    _, _, answer, _ = await ask(service.app, request)
    return json.loads(answer) if answer else None


def token_file(project):
    """The file that the project's token is in from now on."""
    secret = project.file.parent / "token"
    secret.write_text(f"{TOKENS['a']}\n")
    text = project.file.read_text()
    line = next(each for each in text.splitlines() if each.startswith("token"))
    project.file.write_text(text.replace(line, 'token = { file = "token" }'))
    return secret


async def within(seconds, service, condition):
    """The virtual seconds until it holds; more than asked for means that it did not."""
    began = service.loop.time()
    while not await condition() and service.loop.time() - began <= seconds:  # noqa: ASYNC110 - it knows no event
        await asyncio.sleep(0.5)
    return service.loop.time() - began


@pytest.mark.deep(2, everyday=["types"])
@pytest.mark.parametrize("edit", ["types", "url", "deleted"])
def test_an_edited_or_deleted_subscription_is_put_right_within_half_a_minute(tmp_path, edit):
    async def life(service):
        project, said = service.project(tmp_path, bookings=(-3, 3), availability=(0, 3)), []
        async with served(service, project, said):
            (one,) = await told(service, "GET")
            path, before = f"/{one['id']}", service.loop.time()
            body = {"url": one["url"], "notificationTypes": one["notificationTypes"]}
            if edit == "deleted":
                await told(service, "DELETE", path)
            elif edit == "types":
                await told(service, "PATCH", path, body | {"notificationTypes": ["BOOKING_UPDATE"]})
            else:
                await told(service, "PATCH", path, body | {"url": "https://elsewhere.example.com/x"})

            async def right():
                found = await told(service, "GET")
                return [(len(s["notificationTypes"]), s["url"].split("/hooks/")[0]) for s in found] == [
                    (3, "https://hooks.example.com")
                ]

            took = await within(40, service, right)
            await asyncio.sleep(600)
            looks = [moment for moment in service.asked(LISTS) if moment > before + 60]
        return took, said, looks

    took, said, looks = lived(life, bookings=20, days=10, products=2)
    assert took <= 30
    assert any("a full pull has started" in sentence for sentence in said)
    assert len(looks) <= 600 / 20, "one request each time, and no more than that"


@pytest.mark.deep(3)
def test_holds_that_end_with_the_calendar_keep_nobody_from_a_subscription(tmp_path):
    async def life(service):
        ends = {f"booking[{status}].utcExpiresAt": "9999-12-31T23:59:59-05:00" for status in ("ON_HOLD", "CONFIRMED")}
        service.app.service.quirks.update({"fields_set": ends})
        project = service.project(tmp_path, bookings=(-12, 12), availability=(0, 3))
        async with served(service, project, []) as keeper:
            await asyncio.sleep(120)
            query = "select max(utc_expires_at) from core.bookings where status = 'ON_HOLD'"
            return await told(service, "GET"), keeper.ports.warehouse.query(query).rows

    subscriptions, ((last,),) = lived(life, bookings=60, days=20, products=3)
    assert len(subscriptions) == 1
    assert last.year == 9999


def test_another_token_in_its_file_is_used_within_half_a_minute(tmp_path):
    """The former one is revoked before the file is written, so that the connection is given up in between."""

    async def life(service):
        patient = {"backoff": "2s", "backoff_cap": "300s"}
        project = service.project(tmp_path, bookings=(-3, 3), availability=(0, 3), sync=patient)
        said, good = [], ["a"]
        secret = token_file(project)
        answered = []

        def edit(request, _):
            token = request.headers["authorization"].removeprefix("Bearer ")
            if token != TOKENS[good[0]]:
                return reply(REFUSED, 401)
            answered.append((service.loop.time(), token))
            return None

        service.edit = edit
        async with served(service, project, said):
            good[0] = "b"
            await asyncio.sleep(60)
            secret.write_text("two words\nand two lines")
            await asyncio.sleep(30)
            secret.write_text(f"{TOKENS['b']}\n")
            written = service.loop.time()

            async def used():
                return bool(answered) and answered[-1][1] == TOKENS["b"]

            took = await within(40, service, used)
            await asyncio.sleep(1)
        return took, said, [moment for moment, token in answered if token == TOKENS["b"] and moment < written]

    took, said, early = lived(life, bookings=20, days=10, products=2)
    assert took <= 30
    assert not early
    assert sum("holds no token" in sentence for sentence in said) == 1
    assert any("another token in file token" in sentence for sentence in said)
    assert not any(token in sentence for token in TOKENS.values() for sentence in said)


def test_a_token_that_is_found_after_a_refusal_is_in_no_log_line(tmp_path, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    stream = io.StringIO()
    logs.show("text", secrets=[TOKENS["a"]], stream=stream)

    async def life(service):
        project = service.project(tmp_path)
        secret = token_file(project)
        service.edit = lambda request, _: reply(REFUSED, 401) if TOKENS["a"] in str(request.headers.raw) else None
        async with project.opened(transport=service.way) as opened:
            secret.write_text(TOKENS["b"])
            await opened.ports.clients["main"].send(endpoints.supplier())
        logging.getLogger("octo_sync").warning("action=x token=%s", TOKENS["b"])

    lived(life)
    assert "action=x token=[secret]" in stream.getvalue().replace('"', "")


async def test_a_token_that_could_not_be_used_is_used_at_the_next_look():
    client = SimpleNamespace(token=Secret("a", "file token", lambda: Secret("b", "file token")))
    tried, said, used = [], [], asyncio.Event()

    async def changed(name, token):
        tried.append((name, token.reveal()))
        if len(tried) == 1:
            raise JournalError("The journal cannot be written.")
        used.set()

    watching = asyncio.create_task(watch_tokens({"main": client}, 0, changed, said.append))
    await asyncio.wait([watching, asyncio.create_task(used.wait())], return_when=asyncio.FIRST_COMPLETED, timeout=5)
    watching.cancel()
    assert tried == [("main", "b")] * 2
    assert said[0] == "main: token: The journal cannot be written. It is looked at again until that is mended."


@pytest.mark.deep(4)
def test_a_service_that_permits_little_is_asked_less_often_and_that_is_said(tmp_path):
    async def life(service):
        project, said = service.project(tmp_path, bookings=(-3, 3), availability=(0, 3)), []
        async with served(service, project, said) as keeper:
            keeper.ports.clients["main"].budget.pace = Pace(4, 60.0)
            await asyncio.sleep(400)
            before = service.loop.time()
            await asyncio.sleep(1200)
            return [moment for moment in service.asked(LISTS) if moment > before], said

    looks, said = lived(life, bookings=20, days=10, products=2)
    assert 3 <= len(looks) <= 5
    assert "main: permits 4 requests a minute, so its subscription is looked at every 300 s only." in said


@pytest.mark.deep(3)
def test_a_service_without_subscriptions_is_asked_every_four_minutes(tmp_path):
    async def life(service):
        project = service.project(tmp_path, bookings=(-3, 3), availability=(0, 3))
        service.edit = lambda request, _: httpx.Response(404) if LISTS in request.url.path else None
        async with served(service, project, []):
            before = service.loop.time()
            await asyncio.sleep(2400)
            return [moment for moment in service.asked(LISTS) if moment > before]

    assert 8 <= len(lived(life, bookings=20, days=10, products=2)) <= 11
