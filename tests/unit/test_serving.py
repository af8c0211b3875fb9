"""What ends or breaks beside the worker does not take it along."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest
from tests.flows.reconcile_outcome import outcome

from octo_sync.app import reconcile as reconciling
from octo_sync.app import serve as serving
from octo_sync.errors import QueryError
from octo_sync.flows.sync.keep import PARTS
from octo_sync.model import Secret


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (QueryError("It is so."), "reconcile ledger failed: It is so."),
        (ValueError("a bug"), "reconcile ledger failed: it broke (ValueError); please report this."),
    ],
)
def test_a_comparison_that_breaks_is_said_and_the_next_one_is_made(monkeypatch, error, sentence):
    def breaks(_pipeline, name, **_):
        if name == "ledger":
            raise error
        return SimpleNamespace(outcome=outcome())

    monkeypatch.setattr(reconciling, "make", breaks)
    wanted = {"ledger": SimpleNamespace(after_sync=True), "crm": SimpleNamespace(after_sync=True)}
    events = serving.Events()
    said = []
    events.say = said.append
    ports = SimpleNamespace(pipeline=SimpleNamespace(reconciliations=wanted), journal=None, run_id="run-1")
    serving._reconcile(SimpleNamespace(clock=None, events=events), ports)
    assert said == [sentence, "reconcile crm: 11 differences, 2 new; over the limits: mismatched>0 (3)"]


def test_a_report_is_sent_on_mondays_beside_all_else_where_somebody_asked_for_it():
    made = {}

    class Schedules:
        def cron(self, name, expression, _, *, aside=False):
            assert aside, "nothing waits for a mail"
            made[name] = expression

        def every(self, *_):
            pass

    parts = dict.fromkeys(PARTS)
    pipeline = SimpleNamespace(
        schedule=SimpleNamespace(**parts, time_zone="UTC"),
        webhooks=SimpleNamespace(check_every=60),
        canaries={},
        told={"report": Secret("mailto:team@example.com", "pipeline file")},
    )
    program = SimpleNamespace(
        pipeline=pipeline,
        means=SimpleNamespace(schedules=lambda *_, **__: Schedules()),
        wake=None,
        subscriptions={},
        events=serving.Events(),
    )
    keeper = SimpleNamespace(ports=SimpleNamespace(journal=None, clock=None, clients={}))
    serving._schedules(program, keeper)
    assert made == {"report": "0 7 * * 1"}
    made.clear()
    pipeline.told = {}
    serving._schedules(program, keeper)
    assert made == {}, "nobody asked for a report"


async def test_a_sender_that_stalls_takes_no_time_of_the_landing_in_hand():
    landed, stalls = asyncio.Event(), asyncio.Event()

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            landed.set()

    @contextlib.asynccontextmanager
    async def listening():
        yield
        await stalls.wait()

    receiving = contextlib.AsyncExitStack()
    await receiving.enter_async_context(listening())
    worker = asyncio.create_task(work())
    await asyncio.sleep(0)
    stopping = asyncio.create_task(serving._stopped(worker, receiving))
    async with asyncio.timeout(60):
        await landed.wait()
    assert not stopping.done()
    stalls.set()
    await stopping
