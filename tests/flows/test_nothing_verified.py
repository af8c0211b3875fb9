"""No false all-clear: a run in which nothing was verified has failed, and one that is stopped says what it did."""

import asyncio

import httpx
import pytest
from tests.flows.harness import Asked, reply
from tests.flows.virtual import Virtual, lived

from octo_sync.flows.sync.pull import Scope
from octo_sync.flows.sync.run import sync

WRONG = Virtual.base_url.removesuffix("/v1")
NONE = {"error": "NOT_FOUND", "errorMessage": "no"}


def asked_below(path):
    """A service whose other addresses are 404, as a proxy's are."""

    def edit(request, _):
        return None if request.url.path.startswith(path) else httpx.Response(404, content=b"<h1>Not Found</h1>")

    return edit


def test_the_first_404_says_base_url_before_a_second_request_is_made(tmp_path):
    async def life(service):
        service.edit = asked_below("/octo/v1/")
        result = await service.project(tmp_path, base_url=WRONG).sync(transport=service.way, publishing=True)
        return result, service.log

    result, log = lived(life)
    assert (result.status, result.published) == ("failed", None)
    assert [path for _, path in log] == ["/octo/products"]
    assert 'check base_url: nothing is at its path "/octo"' in str(result.troubles[0].error)


def test_one_wrong_address_of_two_is_partial_and_the_other_is_kept(tmp_path):
    async def life(service):
        service.edit = asked_below("/octo/v1/")
        two = {"main": Asked(availability=(0, 3)), "other": Asked(token="a", base_url=WRONG)}
        return await service.project(tmp_path, connections=two).sync(transport=service.way)

    result = lived(life)
    assert (result.status, [t.connection for t in result.troubles]) == ("partial", ["other"])


def test_a_refused_product_list_is_a_failed_run_whatever_else_was_answered(tmp_path):
    async def life(service):
        service.edit = lambda request, _: reply(NONE, 400) if request.url.path.endswith("/products") else None
        return await service.project(tmp_path, bookings=(-3, 3)).sync(transport=service.way, publishing=True)

    result = lived(life)
    assert result.totals.subjects > 0, "bookings were"
    assert (result.status, result.published) == ("failed", None)


def test_an_address_that_was_edited_is_asked_from_the_beginning(tmp_path):
    """A pull that was cut off is not taken up at another address."""

    async def life(service):
        project = service.project(tmp_path)
        service.edit = lambda *_: httpx.Response(503) if len(service.log) > 5 else None
        assert (await project.sync(transport=service.way, scope=Scope())).troubles
        service.log.clear()
        service.edit = asked_below("/octo/v1/")
        project.connections["main"].base_url = WRONG
        project.write()
        result = await project.sync(transport=service.way, scope=Scope())
        return result.status, [path for _, path in service.log]

    assert lived(life) == ("failed", ["/octo/products"])


def test_serve_calls_no_pull_well_that_verified_nothing_and_asks_once_in_five_minutes(tmp_path):
    async def life(service):
        service.edit = asked_below("/octo/v1/")
        project = service.project(tmp_path, base_url=WRONG, publish=True, sync={"backoff_cap": "300s"})
        said, pings = [], []
        async with service.keeping(project, say=said.append, all_is_well=lambda: pings.append(1)) as keeper:
            keeper.pull("full")
            await asyncio.sleep(1500)
            runs = [run.status for run in keeper.ports.journal.runs.last(1)]
        return said, pings, runs, len(service.log)

    said, pings, runs, requests = lived(life)
    assert any("check base_url" in sentence for sentence in said)
    assert (pings, runs) == ([], ["failed"])
    assert requests <= 7
    assert not (tmp_path / "octo.read.duckdb").exists()


def test_a_run_that_is_stopped_says_what_it_did(tmp_path):
    async def life(service):
        project = service.project(tmp_path, availability=(0, 200))
        async with project.opened(transport=service.way) as opened:
            run = asyncio.create_task(sync(opened.ports, Scope(), command="test"))
            while not (landed := opened.ports.progress.done.get("products")):  # noqa: ASYNC110 - it knows no event
                await asyncio.sleep(0.05)
            run.cancel()
            await asyncio.wait([run])
            (ran,) = opened.journal.runs.last(1)
            return ran, landed, len(service.log)

    ran, landed, requests = lived(life, days=200)
    assert ran.status == "interrupted"
    assert ran.counts["requests"] == requests > 2
    assert ran.counts["subjects"] >= landed == 1
    assert ran.counts["rows_written"] > 0


@pytest.mark.deep(3)
def test_pulls_that_end_with_serve_say_what_they_did(tmp_path):
    async def life(service):
        project = service.project(tmp_path, limits={"requests_per_minute": 30})
        async with service.keeping(project) as keeper:
            keeper.pull("full")
            await asyncio.sleep(20)
            keeper.stop_pulls()
            (ran,) = keeper.ports.journal.runs.last(1)
            return ran, keeper.counts(), len(service.log)

    ran, counts, requests = lived(life)
    assert ran.status == "interrupted"
    assert ran.counts == counts
    assert counts["requests"] == requests > 5
    assert counts["subjects"] > 0


def test_bookings_that_will_be_made_are_not_asked_for(tmp_path):
    """Where days of bookings are days of booking, and from the first run on, as soon as an answer has shown that."""

    async def life(service):
        project, months = service.project(tmp_path, bookings=(-60, 300)), []

        def edit(request, _):
            if request.url.path.endswith("/bookings"):
                months.append((request.url.params["localDateStart"], request.url.params["localDateEnd"]))

        service.edit = edit
        for _ in range(2):
            assert (await project.sync(transport=service.way)).status == "ok"
        return months

    months = lived(life, bookings=60, quirks={"booking_date_is_creation": True})
    asked = [("2026-09-21", "2026-09-30"), ("2026-10-01", "2026-10-31"), ("2026-11-01", "2026-11-21")]
    assert months == asked * 2
