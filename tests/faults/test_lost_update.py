"""No update is lost: not between two notifications of the same bytes, not behind an answer that was on its way.

Pulls are off. The keeper, the inbox and a service share one process, so that thousands of cases take seconds.
"""

import asyncio
import contextlib
import json
import random

import pytest
from tests.flows.harness import QUICK, Wire, api_path

from octo_sync.flows.sync.keep import Keeper
from octo_sync.flows.webhooks.receive import Inbox, Routing

BOOKINGS = 100


@pytest.fixture
def pairs(tier):
    """How often a booking changes twice while the same bytes come twice."""
    return tier.choose(200, 200, 1000)


@pytest.fixture
def copy(synced):
    """A project that has been pulled once; `confirm` are its confirming looks, `rest` how long a subject rests."""

    def make(confirm=(), rest=0.05):
        made = synced()
        made.settings["confirm_after"] = tuple(f"{look}s" for look in confirm)
        made.set_limits(**QUICK, concurrency=16)
        made.webhooks["rest"] = rest
        return made

    return make


class Running:
    """A keeper at work and an inbox that wakes it; `wire` may hold answers back."""

    def __init__(self, keeper, inbox):
        self.keeper, self.inbox = keeper, inbox

    async def deliver(self, uuid):
        """The delivery about a booking; the same bytes each time."""
        body = json.dumps({"notificationType": "BOOKING_UPDATE", "data": {"uuid": uuid}}).encode()
        await self.inbox.receive("main", "e" * 32, body)

    async def settled(self, within=120.0):
        """Wait until nothing is owed, confirming looks included."""
        journal = self.keeper.ports.journal
        async with asyncio.timeout(within):
            while journal.subjects.dirty_count() or journal.timers.next_at():  # noqa: ASYNC110 - a journal has no event
                await asyncio.sleep(0.01)

    def references(self):
        """What the copy says of each booking."""
        found = self.keeper.ports.warehouse.query("select booking_uuid, supplier_reference from core.bookings")
        return dict(found.rows)


@contextlib.asynccontextmanager
async def running(copy, edit=None):
    more = {"transport": Wire.by(edit)} if edit else {}
    async with copy.opened(**more) as opened:
        wake = asyncio.Event()
        names = iter(f"run-{number}" for number in range(100))
        opened.journal.runs.start("serve", "test", run_id=opened.ports.run_id, fence=opened.ports.fence)
        keeper = Keeper(opened.ports, wake, lambda: next(names))
        inbox = Inbox(opened.journal, Routing(opened.ports.pipeline, copy.clock), lambda _: wake.set())
        task = asyncio.create_task(keeper.run())
        try:
            yield Running(keeper, inbox)
            assert not task.done(), task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await inbox.close()


def open_bookings(service):
    found = [b["uuid"] for b in service.state()["bookings"] if b["status"] in ("CONFIRMED", "REDEEMED")]
    assert len(found) >= BOOKINGS
    return sorted(found)[:BOOKINGS]


@pytest.mark.parametrize(
    "confirm",
    [
        pytest.param((), id="without looks"),
        pytest.param((0.05, 0.2), id="with confirming looks", marks=pytest.mark.deep(6)),
    ],
)
async def test_pairs_of_the_same_bytes_with_a_change_between_leave_nothing_stale(service, copy, confirm, pairs):
    chance = random.Random(f"pairs/{confirm}")
    uuids = open_bookings(service)
    stale = []
    async with running(copy(confirm)) as run:

        async def pair(uuid, number):
            for half in "ab":
                await asyncio.to_thread(service.change, uuid, supplier_reference=f"{number}{half}", silent=True)
                await run.deliver(uuid)
                await asyncio.sleep(chance.choice([0, 0, 0.002, 0.01]))

        for number in range(pairs // BOOKINGS):
            await asyncio.gather(*(pair(uuid, number) for uuid in uuids))
            await run.settled()
            said = run.references()
            stale += [(uuid, number, said[uuid]) for uuid in uuids if said[uuid] != f"{number}b"]
    assert stale == []


@pytest.mark.deep(5)
async def test_changes_behind_an_answer_that_is_on_its_way_are_all_seen(service, copy, pairs):
    """The service has answered; before its answer arrives the booking changes once more, and a notification comes."""
    uuids = open_bookings(service)
    held, running_now = {}, []
    behind = 0

    async def edit(request, _):
        nonlocal behind
        number = held.pop(api_path(request).rpartition("/")[2], None)
        if number is not None:
            behind += 1
            uuid = api_path(request).rpartition("/")[2]
            await asyncio.to_thread(service.change, uuid, supplier_reference=f"{number} behind", silent=True)
            await running_now[0].deliver(uuid)
            await asyncio.sleep(0.005)

    missed = []
    async with running(copy(), edit) as run:
        running_now.append(run)
        for number in range(pairs // BOOKINGS):
            held |= dict.fromkeys(uuids, number)
            await asyncio.gather(*(run.deliver(uuid) for uuid in uuids))
            await run.settled()
            said = run.references()
            missed += [uuid for uuid in uuids if said[uuid] != f"{number} behind"]
    assert behind == pairs
    assert missed == []


@pytest.mark.deep(5)
async def test_thousands_of_repeats_about_an_unchanged_booking_cost_at_most_five_requests(service, copy, tier):
    repeats = tier.choose(1000, 1000, 10_000)
    uuid = open_bookings(service)[0]
    async with running(copy(confirm=(0.5, 2), rest=5)) as run:
        service.forget_requests()
        for _ in range(repeats // 100):
            await asyncio.gather(*(run.deliver(uuid) for _ in range(100)))
        await run.settled()
        asked = [r for r in service.requests() if r["path"].endswith(uuid)]
        stored = run.keeper.ports.journal.inbox.counts(run.keeper.ports.clock.now().replace(hour=0))
        assert sum(one.deliveries for one in stored) == repeats
    assert 1 <= len(asked) <= 5, len(asked)
