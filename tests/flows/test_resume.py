"""A run that was cut off is taken up where it stopped; nothing that has landed is asked for again."""

import asyncio
import datetime as dt
import json
from collections import Counter

import pytest
from tests.flows.harness import Wire, api_path

from octo_sync.flows.sync.pull import Scope
from octo_sync.journal import Timer
from octo_sync.model import Source, Subject, SubjectKind


def the_day_after(day):
    """The first day that an availability request is for: it asks for the one before, too."""
    return (dt.date.fromisoformat(day) + dt.timedelta(days=1)).isoformat()


def wanted(request):
    """What a request asks for, whatever its headers."""
    params = dict(request.url.params)
    body = json.loads(request.content) if request.content else {}
    return api_path(request), *sorted(params.items()), *sorted(body.items())


def landed(copy):
    return {tuple(row) for row in copy.query("select resource, key from ops.coverage")}


@pytest.mark.deep(2, everyday=["3"])
@pytest.mark.parametrize("after", [3, 14])
async def test_a_cancelled_run_is_taken_up_and_no_landed_window_is_fetched_twice(project, service, after):
    copy = project(sync={"batch_bodies": 2}, limits={"concurrency": 2})
    asked = []

    def edit(request, _answer):
        asked.append(wanted(request))
        if len(asked) == after:
            running.cancel()

    running = asyncio.ensure_future(copy.sync(transport=Wire.by(edit), scope=Scope()))
    with pytest.raises(asyncio.CancelledError):
        await running
    assert copy.query("select 1 from ops.runs where status = 'ok'") == []
    done = landed(copy)
    first, again = list(asked), []

    def watch(request, _answer):
        again.append(wanted(request))

    result = await copy.sync(transport=Wire.by(watch), scope=Scope())
    assert result.status == "ok"
    assert result.resumed or not done
    assert copy.differences() == []
    months = {key: json.loads(key)[0] for resource, key in done if resource == "bookings"}
    for month in months.values():
        assert not [a for a in again if a[0] == "/bookings" and ("localDateStart", f"{month}-01") in a]
    for resource, key in done:
        if resource == "availability":
            product, option, month = json.loads(key)
            repeated = [
                a
                for a in again
                if a[0] == "/availability"
                and ("productId", product) in a
                and ("optionId", option) in a
                and any(k == "localDateStart" and the_day_after(v).startswith(month) for k, v in a[1:])
            ]
            assert not repeated
    # What was on the wire when the run was cut off may be asked for once more, nothing a third time.
    assert max(Counter(first + again).values()) <= 2


async def test_a_cancelled_run_is_recorded_as_interrupted(project):
    copy = project()

    def edit(_request, _answer):
        running.cancel()

    running = asyncio.ensure_future(copy.sync(transport=Wire.by(edit), scope=Scope()))
    with pytest.raises(asyncio.CancelledError):
        await running
    async with copy.opened() as opened:
        assert opened.journal.runs.last(1)[0].status == "interrupted"


@pytest.mark.deep(0.6)
async def test_a_pull_that_was_finished_is_not_taken_up_but_begun_anew(synced):
    copy = synced()
    result = await copy.sync(scope=Scope())
    assert not result.resumed
    assert result.totals.subjects > 30


@pytest.mark.deep(1)
async def test_a_run_asked_to_be_full_begins_anew_even_after_a_cut(project, service):
    copy = project()

    def edit(request, _answer):
        if api_path(request) == "/availability":
            running.cancel()

    running = asyncio.ensure_future(copy.sync(transport=Wire.by(edit), scope=Scope()))
    with pytest.raises(asyncio.CancelledError):
        await running
    service.forget_requests()
    result = await copy.sync(scope=Scope(full=True))
    assert not result.resumed
    assert any(r["path"].endswith("/supplier") for r in service.requests())
    assert copy.differences() == []


@pytest.mark.deep(0.6)
async def test_a_pull_that_was_cut_off_yesterday_begins_anew(project, service):
    copy = project()

    def edit(request, _answer):
        if api_path(request) == "/availability":
            running.cancel()

    running = asyncio.ensure_future(copy.sync(transport=Wire.by(edit), scope=Scope()))
    with pytest.raises(asyncio.CancelledError):
        await running
    copy.clock.advance(hours=20)
    service.control("PUT", "/clock", {"advance": 20 * 3600})
    result = await copy.sync(scope=Scope())
    assert not result.resumed
    assert result.status == "ok"


@pytest.mark.deep(2)
@pytest.mark.parametrize("only", ["products", "availability", "bookings"])
async def test_a_part_can_be_pulled_alone(project, service, only):
    copy = project()
    await copy.sync(scope=Scope(only=frozenset({only})))
    tables = copy.warehouse()
    assert tables["core.products"]
    assert bool(tables["core.bookings"]) is (only == "bookings")
    assert bool(tables["core.availability"]) is (only == "availability")
    await copy.sync(scope=Scope())
    assert copy.differences() == []


@pytest.mark.deep(2)
async def test_a_sync_does_what_a_receiver_left_to_be_confirmed(project, service):
    copy = project()
    assert (await copy.sync()).status == "ok"
    uuid = service.state()["bookings"][0]["uuid"]
    subject = Subject("main", SubjectKind.BOOKING, (uuid,))
    async with copy.opened() as opened:
        now = copy.clock.now()
        late = now + dt.timedelta(hours=1)
        opened.journal.timers.set(
            [
                Timer(subject=subject, name="confirm-1", due_at=now, source=Source.CONFIRM),
                Timer(subject=subject, name="confirm-2", due_at=late, source=Source.CONFIRM),
            ]
        )
    service.forget_requests()
    assert (await copy.sync()).status == "ok"
    assert f"/bookings/{uuid}" in [r["path"] for r in service.requests()]
    async with copy.opened() as opened:
        assert [t.name for t in opened.journal.timers.rows()] == ["confirm-2"]
