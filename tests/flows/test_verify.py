"""Verify --live: what differs from the service is found, also by a sample, and nothing counts as equal that was left out."""

import asyncio
import datetime as dt
import json

import click
import duckdb
import httpx
import pytest
from tests.flows.harness import QUICK, Wire, api_path, reply, verify

from octo_sync.app import project as app
from octo_sync.app import verify as verifying
from octo_sync.cli import verify as command

BOOKING, SLOT = "core.bookings", "core.availability"


@pytest.fixture
def service(larger):
    return larger


@pytest.fixture
def project(project):
    return project(limits=QUICK, publish=True)


def spoil_the_copy(project):
    """One booking and one departure of the read copy say something else than the service."""
    with duckdb.connect(str(project.directory / "octo.read.duckdb")) as db:
        for table, key, column in (
            (BOOKING, "booking_uuid", "supplier_reference"),
            (SLOT, "availability_id", "status"),
        ):
            db.execute(
                f"update {table} set {column} = 'WRONG' where {key} = "
                f"(select min({key}) from {table} where not is_deleted)"
            )


async def test_a_sample_as_large_as_the_whole_finds_every_difference(project, service):
    await project.sync()
    spoil_the_copy(project)
    service.forget_requests()
    found = await verify(project, sample=1000)
    asked = {request["path"].rsplit("/", 1)[-1] for request in service.requests()}
    assert {"products", "availability", "bookings"} <= asked
    assert not found.comparison.equal
    assert {t for t, rows in found.comparison.differing.items() if rows} == {BOOKING, SLOT}
    assert found.complete


@pytest.mark.deep(5)
async def test_a_sample_of_what_is_equal_asks_for_no_more_than_it_drew(project, service, capsys):
    await project.sync()
    service.forget_requests()
    found = await verify(project, sample=2)
    asked = [request["path"].rsplit("/", 1)[-1] for request in service.requests()]
    assert sum(path in ("availability", "bookings") for path in asked) >= 2
    assert found.comparison.equal
    assert found.complete
    with click.Context(command.command):
        assert command._live(found, project.pipeline, limit=5) == 0
    assert "Contacts and notes are not compared." in capsys.readouterr().out
    # The drawn, the supplier and the products, each of them once.
    assert found.subjects == 4
    assert asked.count("products") == 1


@pytest.mark.deep(3)
@pytest.mark.parametrize("sample", [None, 1000])
async def test_what_was_answered_incompletely_is_named_and_counts_as_not_asked(project, capsys, sample):
    await project.sync()

    def spoil(request, response):
        """One of the products has no id that could be read."""
        if api_path(request) == "/products":
            products = json.loads(response.content)
            products[0]["options"] = "none"
            return reply(products)
        return None

    found = await verify(project, sample=sample, transport=Wire.by(spoil))
    assert found.comparison.equal, "what could be compared is equal"
    assert not found.complete
    assert "incomplete" in found.failed["main:products"]
    assert any("options" in why for why in found.failed.values()), "the record and what is wrong with it"
    with click.Context(command.command):
        assert command._live(found, project.pipeline, limit=5) == 5
    out, err = capsys.readouterr()
    assert out.startswith("incomplete")
    assert "main:products" in err


async def test_values_that_are_kept_and_shown_no_more_count_as_not_compared(project, service, capsys):
    await project.sync()
    priced = project.query("select count(*) from core.bookings where retail_amount is not null and not is_deleted")[0][
        0
    ]
    service.quirks(ignored_capability=["pricing"])

    found = await verify(project)

    assert found.comparison.equal, "what could be compared is equal"
    assert found.comparison.kept[BOOKING] == priced > 0
    assert not found.complete
    with click.Context(command.command):
        assert command._live(found, project.pipeline, limit=50) == 5
    out, err = capsys.readouterr()
    assert out.startswith("incomplete")
    assert f"core.bookings: {priced} rows with values that the service shows no more" in err


async def test_of_a_service_that_does_not_answer_one_line_says_why(project, capsys):
    await project.sync()

    def away(request, _response):
        raise httpx.ConnectError("refused", request=request)

    found = await verify(project, transport=Wire.by(away))
    assert not found.complete
    with click.Context(command.command):
        assert command._live(found, project.pipeline, limit=5) == 5
    out, err = capsys.readouterr()
    assert out == "incomplete  nothing could be compared\n"
    assert [line.partition(":")[0] for line in err.splitlines()] == ["main"]


async def test_what_the_marts_do_not_call_complete_is_not_called_so_here(project, monkeypatch):
    for module in (app, verifying):
        monkeypatch.setattr(module, "SystemClock", lambda: project.clock)
    await project.sync()
    missed = (
        "insert into ops.absences select connection_id, 'core.bookings', to_json([booking_uuid])::varchar, 'booking', "
        "to_json([booking_uuid])::varchar, 0, 1, now() from core.bookings where local_date > '2026-11-21' limit 1"
    )
    async with project.opened() as opened:
        opened.ports.warehouse.run_script([missed])
    found = await asyncio.to_thread(verifying.verify_claims, project.pipeline)
    assert [problem.partition(" is not complete")[0] for problem in found.problems] == [
        "main: booking",
        "main: bookings",
    ]


@pytest.mark.deep(5)
async def test_beside_another_process_the_copy_that_readers_have_is_looked_at(project, monkeypatch, capsys):
    for module in (app, verifying):
        monkeypatch.setattr(module, "SystemClock", lambda: project.clock)
    await project.sync()
    alone = await asyncio.to_thread(verifying.verify_claims, project.pipeline)
    assert (alone.problems, alone.of_readers) == ([], False)
    assert alone.subjects > 2

    async with project.opened():
        beside = await asyncio.to_thread(verifying.verify_claims, project.pipeline)
        with duckdb.connect(str(project.directory / "octo.read.duckdb")) as db:
            db.execute("delete from ops.coverage where resource = 'products'")
            db.execute("insert into core.availability select * from core.availability limit 1")
        spoiled = await asyncio.to_thread(verifying.verify_claims, project.pipeline)

    assert (beside.problems, beside.subjects, beside.of_readers) == ([], alone.subjects, True)
    assert {"main:products was never verified", "check unique_keys returned 1 rows"} <= set(spoiled.problems)
    with click.Context(command.command):
        assert command._claims(beside, limit=5) == 0
    assert "Checked what is published" in capsys.readouterr().out


async def test_what_a_service_leaves_out_of_long_lists_differs_because_half_months_are_asked_for(project, service):
    def edit(request, answer):
        if api_path(request) != "/bookings":
            return None
        first, last = (dt.date.fromisoformat(request.url.params[f"localDate{end}"]) for end in ("Start", "End"))
        return reply(answer.json()[: -1 if (last - first).days > 18 else None])

    assert (await project.sync(transport=Wire.by(edit))).status == "ok"
    found = await verify(project, transport=Wire.by(edit))
    assert found.complete
    assert {table for table, rows in found.comparison.differing.items() if rows} >= {BOOKING}
    here, there = found.comparison.rows[BOOKING]
    assert here < there


async def test_a_product_that_its_list_lacks_is_asked_for_by_its_id_as_a_pull_does(project, service):
    await project.sync()

    def edit(request, answer):
        return reply(answer.json()[1:]) if api_path(request) == "/products" else None

    found = await verify(project, transport=Wire.by(edit), only=["products"])
    assert found.complete
    assert found.comparison.equal
