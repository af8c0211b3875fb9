"""What nobody notifies about: holds, bookings not looked at for long, silence, a short call budget. Pure decisions first."""

import asyncio
import dataclasses
import datetime as dt

import pytest
from tests.flows.harness import NOON, QUICK, Project, Service, booking, keeping, settled, small
from tests.flows.virtual import lived

from octo_sync.flows.sync.due import THINNED, Known, calls_within, due_holds, due_verifications, verify_within
from octo_sync.flows.webhooks.silence import silent_for, usual_pause
from octo_sync.journal import DeliveryCount, Timer
from octo_sync.model import Source
from octo_sync.octo.pace import Pace

HOUR = dt.timedelta(hours=1)


def hours(*at, each=5):
    return [DeliveryCount(connection="main", hour=NOON - HOUR * h, deliveries=each, odd=0) for h in at]


@pytest.mark.parametrize(
    ("counts", "last", "after", "silent"),
    [
        pytest.param(hours(30, 28, 26, 24), NOON - 24 * HOUR, 0, 24 * HOUR, id="much longer than its two hours"),
        pytest.param(hours(30, 28, 26, 4), NOON - 4 * HOUR, 0, None, id="nights of 22 hours are its rhythm"),
        pytest.param(hours(5, 4, 3, 2), NOON - HOUR / 2, 0, None, id="half an hour is never silence"),
        pytest.param(hours(30, 20, each=3), NOON - 20 * HOUR, 0, None, id="too few to have a rhythm"),
        pytest.param([], None, 60, None, id="never began"),
        pytest.param([], NOON - HOUR, 60, HOUR, id="a fixed limit"),
        pytest.param([], NOON - dt.timedelta(seconds=59), 60, None, id="within a fixed limit"),
    ],
)
def test_silence_is_measured_by_the_connections_own_rhythm(counts, last, after, silent):
    assert silent_for(usual_pause(counts), last, NOON, after=after) == silent


def test_the_usual_pause_is_the_longest_between_two_hours():
    assert usual_pause(hours(50, 49, 40, 38)) == 9 * HOUR


def known(number, *, status="CONFIRMED", days=5, expires=None, verified=0.0):
    return Known(
        subject=booking(f"b{number}"),
        status=status,
        local_date=NOON.date() + dt.timedelta(days=days),
        expires_at=None if expires is None else NOON + dt.timedelta(seconds=expires),
        verified_at=NOON - dt.timedelta(seconds=verified),
    )


def test_a_hold_is_looked_at_when_it_ends_and_again_until_it_is_over():
    holds = [
        known(1, status="ON_HOLD", expires=-2, verified=600),
        known(2, status="ON_HOLD", expires=30, verified=600),
        known(3, status="ON_HOLD", expires=-20, verified=10),  # looked at after its end: again in a minute
        known(4, status="ON_HOLD", verified=301),
        known(5, status="CONFIRMED", expires=-2),
    ]
    due, following = due_holds(holds, NOON)
    assert due == [booking("b1"), booking("b4")]
    assert following == NOON + dt.timedelta(seconds=31)
    assert due_holds([known(3, status="ON_HOLD", expires=-200, verified=61)], NOON)[0] == [booking("b3")]
    endless = dataclasses.replace(known(6, status="ON_HOLD"), expires_at=dt.datetime.max.replace(tzinfo=dt.UTC))
    assert due_holds([endless], NOON)[0] == []


def test_the_closer_travel_the_sooner_a_booking_is_verified():
    day, today = dt.timedelta(days=1), NOON.date()
    ages = [verify_within(today + dt.timedelta(days=d), today, day) for d in (0, 1, 7, 14, 100)]
    assert ages == [day / 24, day / 14, day / 2, day, day]
    assert verify_within(today - day, today, day) == verify_within(None, today, day) == day


def test_the_most_overdue_bookings_come_first_and_no_more_than_the_budget():
    bookings = [known(1, days=0, verified=4000), known(2, days=30, verified=80000), known(3, days=1, verified=86400)]
    due = due_verifications(bookings, NOON, within=dt.timedelta(days=1), at_most=lambda _: 1)
    assert due == {"main": [booking("b3")]}
    due = due_verifications(bookings, NOON, within=dt.timedelta(days=1), at_most=lambda _: 5)
    assert due == {"main": [booking("b3"), booking("b1")]}


@pytest.mark.parametrize("per_hour", [0, 1, 10, 59, 60, 61, 600])
def test_a_budget_is_spread_over_the_hour_and_none_of_it_is_lost_or_doubled(per_hour):
    minute = dt.timedelta(minutes=1)
    for begin in (NOON, NOON + dt.timedelta(minutes=7, seconds=13.5)):
        calls = [calls_within(per_hour, minute, begin + minute * n) for n in range(180)]
        assert all(sum(calls[n : n + 60]) == per_hour for n in range(120))
        assert max(calls) - min(calls) <= 1


@pytest.fixture(scope="module")
def service():
    with Service(small(bookings=40, days=10, products=3)) as running:
        yield running


@pytest.mark.deep(3)
async def test_old_bookings_are_asked_for_within_the_budget(tmp_path, service):
    service.reset()
    project = Project(tmp_path, service, limits=QUICK, sync={"verify_bookings_within": "1h", "verify_budget": 180})
    async with keeping(project) as keeper:
        keeper.pull("full")
        await settled(keeper)
        service.forget_requests()
        project.clock.advance(hours=30)
        keeper._looked_after_at = float("-inf")
        await settled(keeper)
        held = {b["uuid"] for b in service.state()["bookings"] if b["status"] == "ON_HOLD"}
        asked = {r["path"].removeprefix("/bookings/") for r in service.requests()} - held
        assert 1 <= len(asked) <= 3
        assert asked <= {b["uuid"] for b in service.state()["bookings"]}


@pytest.mark.deep(2)
@pytest.mark.parametrize(("budget", "pace", "per_hour"), [(10, None, 10), (0, None, 0), (600, Pace(1, 120.0), 15)])
def test_a_budget_of_less_than_a_call_a_minute_is_kept(tmp_path, budget, pace, per_hour):
    async def life(service):
        project = service.project(tmp_path, sync={"verify_bookings_within": "1s", "verify_budget": budget})
        async with service.keeping(project) as keeper:
            keeper.pull("full")
            await asyncio.sleep(60)
            keeper.ports.clients["main"].budget.pace = pace
            began = len(service.log)
            await asyncio.sleep(3600)
            states = {f"/bookings/{b.uuid}": b.status for b in service.app.service.store.bookings.values()}
            return [path for _, path in service.log[began:] if states.get(path) in ("CONFIRMED", "ON_HOLD")]

    asked = lived(life, bookings=60, days=20, products=3)
    assert len(asked) == per_hour


def looks(count, due):
    return [
        Timer(subject=booking(f"b{i}"), name=f"confirm-{n}", due_at=due, source=Source.CONFIRM)
        for i in range(count)
        for n in (1, 2)
    ]


@pytest.mark.deep(2)
async def test_a_short_call_budget_leaves_out_earlier_confirming_looks_until_the_rest_fits(tmp_path, service):
    service.reset()
    project = Project(
        tmp_path,
        service,
        limits={**QUICK, "deadline": "10s", "requests_per_minute": 600},
        sync={"confirm_after": ("5s", "30s")},
    )
    async with keeping(project) as keeper:
        keeper.pull("full")
        await settled(keeper)
        journal, due = keeper.ports.journal, keeper.ports.clock.now() + dt.timedelta(seconds=20)
        few = looks(10, due)
        journal.timers.set(few)
        await settled(keeper)
        assert len(journal.timers.rows(limit=5000)) == 20
        many = looks(400, due)
        journal.timers.set(many)
        await settled(keeper)
        left = journal.timers.rows(limit=5000)
        assert journal.settings.get(THINNED, connection="main")
        assert {t.subject for t in left} == {t.subject for t in many}, "every subject keeps a look"
        # 601 are one too many: of those, 300 and the first of another one, the earlier look went; the other 499 fit.
        assert (len(left), sum(t.name == "confirm-1" for t in left)) == (499, 99)
