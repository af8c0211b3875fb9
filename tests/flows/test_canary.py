"""The canary: a hold that must be told of; what it measures, and what it says when nobody tells."""

import asyncio
import datetime as dt

import pytest
from tests.flows.harness import NOON
from tests.flows.test_notify import state, told
from tests.flows.test_silence import ADDRESS, HASH

from octo_sync.app.project import dashboard_source
from octo_sync.errors import RequestRefused
from octo_sync.flows.webhooks.canary import Canary, fly, forget, holds, last
from octo_sync.flows.webhooks.silence import silences
from octo_sync.journal import Received


class Skies:
    """A project with an open address, in which deliveries are accepted as the service makes holds."""

    def __init__(self, project, ports):
        self.project, self.ports = project, ports
        ports.journal.endpoints.add(ADDRESS, connection="main", secret_hash=HASH)
        ports.journal.endpoints.activate(ADDRESS, "subscription")
        self.product = project.service.state()["products"][0]["id"]
        self.known = {one["uuid"] for one in project.service.state()["bookings"]}

    def holds(self):
        """Bookings that were made since: (uuid, status)."""
        bookings = self.project.service.state()["bookings"]
        return [(one["uuid"], one["status"]) for one in bookings if one["uuid"] not in self.known]

    def deliver(self, uuid, after=0.0):
        at = self.ports.clock.now() + dt.timedelta(seconds=after)
        body = f'{{"data":{{"uuid":"{uuid}"}}}}'.encode()
        self.ports.journal.inbox.accept([Received(connection="main", endpoint=ADDRESS, received_at=at, body=body)])

    async def hold(self):
        """The uuid of the hold that is made, as soon as the service has it."""
        async with asyncio.timeout(60):
            while not self.holds():  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.02)
        return last(self.ports.journal, "main").held

    async def fly(self, patience=0.3):
        return await fly(self.ports, "main", self.product, patience=patience)


@pytest.fixture
async def skies(synced, service):
    project = synced()
    async with project.opened() as opened:
        yield Skies(project, opened.ports)
    service.faults()


async def test_a_hold_that_is_told_is_measured_and_released(skies):
    flying = asyncio.create_task(skies.fly(patience=60))
    uuid = await skies.hold()
    assert skies.holds() == [(uuid, "ON_HOLD")]
    skies.deliver("another")
    skies.deliver(uuid, after=1.5)
    skies.deliver(uuid, after=90)
    canary = await flying
    assert canary == last(skies.ports.journal, "main")
    assert 1.0 < canary.lag < 60
    assert (canary.problem, canary.held, canary.is_untold) == (None, None, False)
    assert uuid in holds(skies.ports.journal, ["other", "main"])
    assert uuid in dashboard_source(skies.project.pipeline, skies.project.clock).canaries(), "pages know it"
    assert [status for _, status in skies.holds()] in (["CANCELLED"], ["EXPIRED"])


async def test_holds_are_remembered_for_as_long_as_pages_tell_of_them(skies):
    made = []
    for days in (0, 7, 2):
        skies.project.clock.advance(days=days)
        await skies.fly()
        made = [uuid for uuid, _ in skies.holds()]
    kept = holds(skies.ports.journal, ["main"])
    assert [uuid in kept for uuid in made].count(True) == len(made) - 1 == 2


async def test_a_hold_of_which_nobody_tells_is_silence_until_something_comes(skies):
    journal = skies.ports.journal
    canary = await skies.fly()
    assert canary.is_untold
    assert canary.text == "not told"
    assert [status for _, status in skies.holds()] in (["CANCELLED"], ["EXPIRED"])
    assert silences(journal, ["main"], skies.ports.clock).keys() == {"main"}
    skies.deliver("another", after=0.01)
    assert silences(journal, ["main"], skies.ports.clock) == {}


@pytest.mark.parametrize("fault", ["status_5xx", "no_room", "no_product"])
async def test_where_no_hold_can_be_made_nothing_is_known(skies, service, fault):
    if fault == "no_product":
        skies.product = "no-such-product"
    elif fault == "no_room":
        service.faults({"fault": "empty_list", "match": {"path": "/availability$"}})
    else:
        service.faults({"fault": "status_5xx", "match": {"method": "POST", "path": "/bookings$"}})
    canary = await skies.fly()
    known = "nobody knows whether a hold was made: " if fault == "status_5xx" else "no hold could be made: "
    assert canary.text.startswith(known)
    assert ("no free departure" in canary.problem) == (fault == "no_room")
    assert silences(skies.ports.journal, ["main"], skies.ports.clock) == {}


async def test_a_departure_whose_cut_off_has_passed_is_not_held(skies, service):
    now = skies.ports.clock.now()
    tomorrow, late = (now + dt.timedelta(days=1)).date(), {}
    for slot in service.slots(**{"from": tomorrow.isoformat(), "to": tomorrow.isoformat()}):
        late.setdefault((slot["product_id"], slot["option_id"]), slot)
    products = {one["id"]: one for one in service.state()["products"]}
    default = {(id_, each["id"]) for id_, one in products.items() for each in one["options"] if each["default"]}
    found = [
        slot for each, slot in late.items()
        if each in default and slot["available"] and dt.datetime.fromisoformat(slot["utc_cutoff"]) <= now
    ]  # fmt: skip
    skies.product = found[0]["product_id"]
    canary = await skies.fly()
    assert canary.problem is None
    ((uuid, _),) = skies.holds()
    assert service.booking(uuid)["availability_id"] != found[0]["availability_id"]


@pytest.mark.parametrize(("refused", "tried"), [(1, 2), (2, 3), (9, 3)])
async def test_a_departure_that_is_refused_leaves_a_few_others_to_be_tried(skies, service, monkeypatch, refused, tried):
    service.faults(
        {"fault": "status_5xx", "code": 400, "count": refused, "match": {"method": "POST", "path": "/bookings$"}}
    )
    client, asked = skies.ports.clients["main"], []

    async def noting(call, **more):
        if call.operation == "reserve":
            asked.append((call.json["uuid"], call.json["availabilityId"]))
        return await type(client).ask(client, call, **more)

    monkeypatch.setattr(client, "ask", noting, raising=False)
    canary = await skies.fly()
    assert len(asked) == tried == len({uuid for uuid, _ in asked})
    starts = {slot["availability_id"]: slot["local_date"] for slot in service.slots()}
    assert len({starts[id_] for _, id_ in asked}) == tried, "each of another day"
    assert canary.held is None
    if refused >= tried:
        assert canary.text.startswith("no hold could be made: 3 departures tried; the last: ")
        assert skies.holds() == []
    else:
        assert canary.is_untold
        assert [uuid for uuid, _ in skies.holds()] == [asked[-1][0]]


async def test_a_hold_that_was_left_by_a_stop_is_released_by_the_next_one(skies):
    flying = asyncio.create_task(skies.fly(patience=60))
    uuid = await skies.hold()
    flying.cancel()
    await asyncio.wait([flying])
    assert skies.holds() == [(uuid, "ON_HOLD")]
    assert silences(skies.ports.journal, ["main"], skies.ports.clock) == {}, "nobody waited long enough"
    await skies.fly()
    assert {status for _, status in skies.holds()} <= {"CANCELLED", "EXPIRED"}
    assert len(skies.holds()) == 2


async def test_a_hold_whose_answer_is_lost_is_released_by_the_next_one(skies, service):
    service.faults({"fault": "reset", "count": 1, "match": {"method": "POST", "path": "/bookings$"}})
    lost = await skies.fly()
    assert lost.text.startswith("nobody knows whether a hold was made: ")
    assert skies.holds() == [(lost.held, "ON_HOLD")]
    assert silences(skies.ports.journal, ["main"], skies.ports.clock) == {}, "nothing is known"
    canary = await skies.fly()
    assert (canary.problem, canary.held) == (None, None)
    assert [status in ("CANCELLED", "EXPIRED") for _, status in skies.holds()] == [True, True]


async def test_a_service_that_knows_only_the_older_way_releases_it_too(skies):
    sent = []
    client = skies.ports.clients["main"]

    async def only_delete(call, **more):
        sent.append((call.method, call.operation))
        if call.operation == "cancel" and call.method == "POST":
            raise RequestRefused("There is no such path.")
        return await type(client).send(client, call, **more)

    client.send = only_delete
    await skies.fly()
    assert sent[-2:] == [("POST", "cancel"), ("DELETE", "cancel")]
    assert {status for _, status in skies.holds()} <= {"CANCELLED", "EXPIRED"}


async def test_who_has_no_canary_any_more_is_not_silent_because_of_one(skies):
    await skies.fly()
    forget(skies.ports.journal, "main")
    assert last(skies.ports.journal, "main") is None
    assert silences(skies.ports.journal, ["main"], skies.ports.clock) == {}


def test_dead_webhooks_are_told_once_until_a_hold_is_told_again():
    dead, alive = Canary(NOON), Canary(NOON, lag=0.4)
    unknown, waiting = Canary(NOON, problem="refused"), Canary(NOON, held="u-1")
    first, memory = told({}, state(canary=dead))
    again, memory = told(memory, state(canary=dead))
    for other in (waiting, unknown, waiting):
        during, memory = told(memory, state(canary=other))
        assert during == []
    still, memory = told(memory, state(canary=dead))
    over, memory = told(memory, state(canary=alive))
    anew, memory = told(memory, state(canary=dead))
    assert (first, again, still, over, anew) == (["webhooks_dead"], [], [], [], ["webhooks_dead"])
