"""Silence does not forget what it is measured by, however long it lasts."""

import asyncio
import contextlib
import datetime as dt

import pytest
from tests.flows.harness import NOON, QUICK, Project, Service, keeping, settled, small
from tests.flows.virtual import lived

from octo_sync.flows.webhooks.silence import note_rhythms, silences
from octo_sync.journal import Journal, Received
from octo_sync.model import SubjectKind

ADDRESS, HASH = "a" * 32, "0" * 64
DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)
RHYTHM = [NOON - HOUR * 12 * number for number in range(28)]
"""Every twelve hours for two weeks, the last one at noon."""


class Clock:
    moment = NOON

    def now(self):
        return self.moment


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def journal(tmp_path, clock):
    with contextlib.closing(Journal.open(tmp_path / "journal.sqlite", clock=clock)) as journal:
        listen(journal)
        yield journal


def listen(journal):
    journal.endpoints.add(ADDRESS, connection="main", secret_hash=HASH)
    journal.endpoints.activate(ADDRESS, "subscription")


def receive(journal, moments):
    journal.inbox.accept([Received(connection="main", endpoint=ADDRESS, received_at=at, body=b"{}") for at in moments])


@pytest.mark.parametrize("days", [1.1, 6, 20, 29])
def test_a_silence_does_not_end_by_lasting(journal, clock, days):
    receive(journal, RHYTHM)
    clock.moment = NOON + HOUR * 23
    assert silences(journal, ["main"], clock) == {}
    clock.moment = NOON + DAY * days
    assert silences(journal, ["main"], clock) == {"main": DAY * days}


def test_a_silence_outlasts_the_deliveries_and_ends_with_the_next_one(journal, clock):
    receive(journal, RHYTHM)
    for hours in range(0, 60 * 24, 6):
        clock.moment = NOON + HOUR * hours
        note_rhythms(journal, ["main"], clock)
        journal.inbox.prune(clock.moment - 30 * DAY)
        assert bool(silences(journal, ["main"], clock)) == (hours > 24), hours
    assert journal.inbox.last_delivery_at("main") is None
    receive(journal, [clock.moment])
    assert silences(journal, ["main"], clock) == {}
    # One delivery is no rhythm: what it was before counts no more.
    clock.moment += 5 * DAY
    note_rhythms(journal, ["main"], clock)
    assert silences(journal, ["main"], clock) == {}


def test_who_is_switched_off_is_not_silent_when_switched_on_again(journal, clock):
    receive(journal, RHYTHM)
    clock.moment = NOON + 3 * DAY
    note_rhythms(journal, ["main"], clock)
    journal.endpoints.retire([ADDRESS])
    clock.moment = NOON + 90 * DAY
    note_rhythms(journal, ["main"], clock)
    journal.inbox.prune(clock.moment - 30 * DAY)
    journal.endpoints.add("b" * 32, connection="main", secret_hash=HASH)
    assert silences(journal, ["main"], clock) == {}


async def test_a_keeper_notes_the_rhythm_before_it_forgets_the_deliveries(tmp_path):
    with Service(small(bookings=20, days=10, products=2)) as service:
        project = Project(tmp_path, service, limits=QUICK)
        async with project.opened() as opened:
            listen(opened.journal)
            receive(opened.journal, RHYTHM)
        project.clock.advance(days=31)
        async with keeping(project) as keeper:
            await settled(keeper)
            assert keeper.ports.journal.inbox.last_delivery_at("main") is None
            assert set(silences(keeper.ports.journal, ["main"], project.clock)) == {"main"}


@pytest.mark.deep(4)
def test_a_silent_connection_has_its_subscription_looked_at_and_is_pulled_every_15_minutes(tmp_path):
    """Silent ten minutes from now, and told something 35 minutes later."""
    looks = []

    async def life(service):
        async def looked_at(claim):
            looks.append(service.loop.time())
            keeper.ports.journal.subjects.landed([claim], run_id=keeper.ports.run_id)

        project = service.project(tmp_path)
        async with service.keeping(project, actions={SubjectKind.SUBSCRIPTION: looked_at}) as keeper:
            journal = keeper.ports.journal
            listen(journal)
            receive(journal, [at - DAY + HOUR / 6 for at in RHYTHM])
            await asyncio.sleep(45 * 60)
            receive(journal, [service.now()])
            await asyncio.sleep(30 * 60)
            pulls = [run for run in journal.runs.last(50) if run.command == "pull"]
            assert {run.options["part"] for run in pulls} == {"near"}
            return sorted((run.started_at - NOON).total_seconds() for run in pulls)

    first, second, third = lived(life, bookings=20, days=10, products=2)
    assert 600 < first < 700
    assert 900 <= second - first < 1000
    assert 900 <= third - second < 1000
    (look,) = looks
    assert first <= look < first + 60
