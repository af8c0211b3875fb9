"""Subscriptions at a real service over HTTP: exactly one, whatever goes wrong, and no secret anywhere but there."""

import asyncio
import contextlib
import json
import logging
import secrets
import subprocess
import sys
import time
import traceback
from random import Random
from types import SimpleNamespace

import httpx
import pytest
from tests.flows.harness import TOKENS, RunningClock, Wire, reply
from tests.receiver.process import a_pipeline

from octo_sync.errors import AnswerInvalid, AuthenticationRefused, OctoSyncError, ServiceUnavailable
from octo_sync.flows import horizon
from octo_sync.flows.webhooks.plan import HEADER, TYPES, hash_of
from octo_sync.flows.webhooks.receive import Inbox, Routing
from octo_sync.flows.webhooks.subscribe import TOLD_AT, Subscriber, check, close_gap
from octo_sync.journal import Journal
from octo_sync.model import Connection, Limits, Secret
from octo_sync.octo.client import OctoClient
from octo_sync.receiver import endpoints as cache
from octo_sync.receiver.routes import Receiver

BASE = "https://hooks.example.com/octo"
FOREIGN = "https://crm.example.com/in"
PATH = "/notifications/subscriptions"
DAY = 86_400


class Shop:
    """A project's journal and one connection to the service; remembers every secret that was handed out."""

    def __init__(self, service, path, *, name="shop", token="a"):
        self.service, self.path, self.name, self.token = service, path, name, token
        self.clock = RunningClock()
        self.journal = Journal.open(path, clock=self.clock)
        self.given = []

    def tokens(self, size):
        self.given.append(secrets.token_urlsafe(size))
        return self.given[-1]

    @property
    def secrets(self):
        return [text for text in self.given if len(text) == 43]

    def client(self, edit=None, wire=None, **limits):
        connection = Connection(
            name=self.name,
            base_url=self.service.base_url,
            token=Secret(TOKENS.get(self.token, f"sandbox-token-{self.token}"), "the test"),
            limits=Limits(**{"deadline": 2.0, "attempts": 2, "backoff": 0.01, "backoff_cap": 0.05, **limits}),
        )
        transport = wire or (Wire(edit) if edit else None)
        return OctoClient(connection, clock=self.clock, random=Random(1), transport=transport)

    async def run(self, verb="ensure", address=BASE, *, edit=None, wire=None, limits=None, **more):
        async with self.client(edit, wire, **(limits or {})) as client:
            subscriber = Subscriber(self.journal, client, address, clock=self.clock, tokens=self.tokens, **more)
            return await getattr(subscriber, verb)()

    async def check(self, address=BASE, edit=None):
        async with self.client(edit) as client:
            webhooks = SimpleNamespace(webhooks=SimpleNamespace(url=address))
            ports = SimpleNamespace(
                journal=self.journal, clients={self.name: client}, clock=self.clock, pipeline=webhooks
            )
            return await check(ports, self.name, tokens=self.tokens)

    # -- the other side --------------------------------------------------------------------------------------------

    @property
    def there(self):
        """What the service has for this token, foreign ones left out."""
        every = self.service._box.service.store.subscriptions.values()
        return [each for each in every if each.token == self.token and each.url != FOREIGN]

    @property
    def one(self):
        (only,) = self.there
        return only

    def accepts(self, url, headers):
        """Whether a receiver would: the endpoint is known and not retired, and the secret's hash is its own."""
        rows = {row.endpoint: row for row in self.journal.endpoints.rows()}
        row = rows.get(url.rpartition("/")[2])
        return row is not None and hash_of(headers.get(HEADER, "")) == row.secret_hash

    def api(self, method, path=PATH, body=None):
        """Somebody else with the same token."""
        answer = httpx.request(
            method,
            self.service.base_url + path,
            json=body,
            headers={"Authorization": f"Bearer {TOKENS[self.token]}", "Octo-Capabilities": "notifications"},
            trust_env=False,
        )
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def make(self, url, **more):
        return self.api("POST", body={"url": url, "notificationTypes": ["BOOKING_UPDATE"], **more})["id"]

    def asked(self):
        """The calls about subscriptions, e.g. `POST`, since they were last asked for."""
        calls = [each["method"] for each in self.service.requests() if "sub" in each["path"]]
        self.service.forget_requests()
        return calls


@pytest.fixture
def shop(service, tmp_path):
    shop = Shop(service, tmp_path / "journal.sqlite")
    yield shop
    shop.journal.close()


def assert_good(shop, base=BASE):
    """Exactly one, with everything, and its deliveries would be taken."""
    one = shop.one
    assert one.url.startswith(f"{base}/hooks/")
    assert len(one.url.rpartition("/")[2]) == 32
    assert set(one.types) == set(TYPES)
    assert shop.accepts(one.url, one.headers)
    row = next(row for row in shop.journal.endpoints.rows() if row.endpoint == one.url.rpartition("/")[2])
    assert (row.state, row.subscription_id) == ("active", one.id)
    return one


# -- ensuring -----------------------------------------------------------------------------------------------------------


async def test_the_first_time_makes_one_and_the_second_looks_once(shop):
    first = await shop.run()

    one = assert_good(shop)
    assert (first.state, first.text, first.changed) == ("ok", "made", {"created": 1})
    assert (first.subscription_id, first.endpoint.endpoint) == (one.id, one.url.rpartition("/")[2])
    assert shop.asked() == ["GET", "POST", "GET"]
    second = await shop.run()
    assert (second.text, second.changed, shop.asked()) == ("as it should be", {}, ["GET"])
    assert assert_good(shop) == one


async def test_the_secret_has_32_random_bytes_and_only_its_hash_is_stored(shop):
    await shop.run()

    (secret,) = shop.secrets
    assert shop.one.headers == {HEADER: secret}
    assert len(secret) == 43
    (row,) = shop.journal.endpoints.rows()
    assert row.secret_hash == hash_of(secret)


async def test_the_endpoint_is_durable_and_accepted_before_the_service_hears_of_it(shop):
    accepted = []

    class Watching(Wire):
        async def handle_async_request(self, request):
            if request.method in {"POST", "PATCH"}:
                body = json.loads(await request.aread())
                with Journal.open(shop.path, clock=shop.clock) as receiver:
                    rows = {row.endpoint: row.secret_hash for row in receiver.endpoints.rows()}
                accepted.append(rows.get(body["url"].rpartition("/")[2]) == hash_of(body["headers"][HEADER]))
            return await super().handle_async_request(request)

    await shop.run(wire=Watching(lambda *_: None))
    await shop.run("rotate", wire=Watching(lambda *_: None))

    assert accepted == [True, True]


@pytest.mark.deep(0.1, everyday=2)
@pytest.mark.parametrize(
    "quirks",
    [
        {"create_path_typo_only": True},
        {"subscription_200": True},
        {"subscription_id_key": "subscriptionId"},
        {"subscription_headers_shown": True},
        {"patch_drops_headers": True},
        {"subscriptions_paged": 2},
        {"error_style": "plain404"},
        {"no_capability_echo": True},
    ],
    ids=lambda quirks: next(iter(quirks)),
)
async def test_every_kind_of_service_ends_with_exactly_one(shop, quirks):
    for _ in range(3):
        shop.make(FOREIGN)
    shop.service.quirks(**quirks)

    made = await shop.run()
    assert_good(shop)
    assert (await shop.run()).changed == {}
    shop.service.control("POST", f"/admin/subscriptions/{made.subscription_id}")
    assert (await shop.run()).changed == {"deleted": 1}
    shop.api("PATCH", f"{PATH}/{shop.one.id}", {"notificationTypes": ["BOOKING_UPDATE"]})
    assert (await shop.run()).changed == {"changed": 1}
    assert_good(shop)
    assert (await shop.run("rotate")).changed == {"changed": 1}
    assert_good(shop)
    shop.service.control("DELETE", f"/admin/subscriptions/{shop.one.id}")
    assert (await shop.run()).changed == {"created": 1}
    assert_good(shop)
    await shop.run("remove")
    assert shop.there == []
    assert len(shop.api("GET")) in {2, 3}, "the foreign ones are still there"


@pytest.mark.parametrize("style", ["number", "lower", "answer without headers", "empty patch"])
async def test_odd_answers_of_a_service_change_nothing(shop, style):
    """Ids that are numbers, types in lower case, answers that say nothing: made on the wire, where the sandbox does not."""
    names = {}

    def shown(one):
        if style == "number":
            one = {**one, "id": names.setdefault(one["id"], len(names) + 100)}
        if style == "lower":
            one = {**one, "notificationTypes": [each.lower() for each in one["notificationTypes"]]}
        return one

    async def edit(request, answer):
        if "subscriptions" not in request.url.path:
            return None
        if style == "empty patch" and request.method == "PATCH":
            return httpx.Response(204)
        if answer.status_code >= 300 or not answer.content:
            return None
        body = answer.json()
        return reply([shown(each) for each in body] if isinstance(body, list) else shown(body), answer.status_code)

    first = await shop.run(edit=edit)
    one = assert_url(shop)
    assert (await shop.run(edit=edit)).changed == {}
    assert assert_url(shop) == one
    if style != "number":
        assert (await shop.run("rotate", edit=edit)).changed == {"changed": 1}
        assert assert_url(shop).url != one.url
    else:
        assert first.subscription_id == "100"


def assert_url(shop):
    assert shop.accepts(shop.one.url, shop.one.headers)
    return shop.one


# -- healing ------------------------------------------------------------------------------------------------------------


async def test_one_that_was_deleted_at_the_service_is_made_again(shop):
    before = (await shop.run()).subscription_id
    shop.service.control("DELETE", f"/admin/subscriptions/{before}")

    assert (await shop.check()).changed == {"created": 1}

    assert assert_good(shop).id != before
    shop.asked()
    assert (await shop.check()).changed == {}
    assert shop.asked() == ["GET"], "what is gone is not asked for again and again"


async def test_doubles_go_and_the_known_one_stays(shop):
    before = (await shop.run()).subscription_id
    for _ in range(3):
        shop.service.control("POST", f"/admin/subscriptions/{before}")

    assert (await shop.check()).changed == {"deleted": 3}
    assert assert_good(shop).id == before


@pytest.mark.parametrize(
    "edited",
    [
        {"url": "https://elsewhere.example/x"},
        {"url": "http://hooks.example.com/octo"},
        {"notificationTypes": ["PRODUCT_UPDATE"]},
    ],
)
async def test_one_that_was_edited_at_the_service_is_put_right_with_a_new_secret(shop, edited):
    before = (await shop.run()).subscription_id
    old = shop.one.headers[HEADER]
    shop.api("PATCH", f"{PATH}/{before}", edited)

    assert (await shop.check()).changed == {"changed": 1}

    assert assert_good(shop).id == before
    assert shop.one.headers[HEADER] != old


async def test_a_new_address_of_ours_moves_the_subscription(shop):
    before = (await shop.run()).subscription_id

    assert (await shop.check("https://new.example.com")).changed == {"changed": 1}

    assert assert_good(shop, "https://new.example.com").id == before


async def test_wrong_secrets_move_it_to_a_subscription_of_its_own(shop):
    before = (await shop.run()).subscription_id
    shop.api("PATCH", f"{PATH}/{before}", {"headers": {HEADER: "somebody else's"}})
    assert (await shop.check()).changed == {}, "a service that hides headers cannot tell"
    shop.journal.endpoints.refused([shop.one.url.rpartition("/")[2]])

    assert (await shop.check()).changed == {"created": 1, "deleted": 1}

    assert assert_good(shop).id != before
    assert (await shop.check()).changed == {}


@pytest.mark.parametrize("cause", ["lost", "refused", "another url", "removed"])
async def test_only_what_was_lost_at_the_service_is_called_lost_and_each_gap_is_closed(shop, cause, monkeypatch):
    marks = []
    monkeypatch.setattr(horizon, "subjects", lambda *_: ["everything"])

    def gap(done, url=BASE):
        told = SimpleNamespace(
            journal=shop.journal,
            pipeline=SimpleNamespace(webhooks=SimpleNamespace(url=url)),
            mark=lambda subjects, _: marks.extend(subjects),
        )
        return close_gap(told, "shop", done.endpoint.endpoint)

    first = await shop.run()
    assert (gap(first), gap(await shop.check()), len(marks)) == ("", "", 1)
    url = "https://new.example.com" if cause == "another url" else BASE
    if cause == "lost":
        shop.service.control("DELETE", f"/admin/subscriptions/{first.subscription_id}")
    elif cause == "refused":
        shop.journal.endpoints.refused([first.endpoint.endpoint])
    elif cause == "removed":
        await shop.run("remove")
        await shop.run()
    told = gap(await shop.check(url), url)
    assert (told, len(marks)) == (cause if cause in {"lost", "refused"} else "", 2)
    shop.service.control("DELETE", f"/admin/subscriptions/{shop.one.id}")
    assert (gap(await shop.check(url), url), len(marks)) == ("lost", 3), "also after it"


async def test_a_service_that_shows_headers_tells_of_a_wrong_secret_itself(shop):
    shop.service.quirks(subscription_headers_shown=True)
    before = (await shop.run()).subscription_id
    for headers in ({HEADER: "somebody else's"}, {}):
        shop.api("PATCH", f"{PATH}/{before}", {"headers": headers})
        assert (await shop.check()).changed == {"changed": 1}
        assert assert_good(shop).id == before


async def test_a_journal_that_was_lost_takes_over_what_it_left_behind(shop, tmp_path):
    before = (await shop.run()).subscription_id
    shop.journal.close()
    shop.journal = Journal.open(tmp_path / "new.sqlite", clock=shop.clock)

    assert (await shop.run()).changed == {"changed": 1}

    assert assert_good(shop).id == before


async def test_nobody_elses_is_touched(shop):
    shop.make(FOREIGN)
    shop.make(f"{BASE}/other/{'x' * 32}")
    others = {each["id"] for each in shop.api("GET")}
    other = Shop(shop.service, shop.path, name="other", token="a")
    others.add((await other.run()).subscription_id)

    await shop.run()
    await shop.run("rotate")
    await shop.run("remove")

    assert {each["id"] for each in shop.api("GET")} == others
    assert (await other.run()).changed == {}
    other.journal.close()


# -- doubt --------------------------------------------------------------------------------------------------------------


async def test_a_create_that_times_out_but_succeeded_is_found_again(shop):
    shop.service.faults({"fault": "create_timeout", "seconds": 30.0, "count": 1})

    done = await shop.run(limits={"deadline": 0.5})

    assert (done.text, done.changed) == ("found again", {"adopted": 1})
    assert_good(shop)
    assert len(shop.secrets) == 1


@pytest.mark.deep(0.1, everyday=4)
@pytest.mark.parametrize("fault", ["status_5xx", "truncated", "chopped", "html_200", "empty_200", "reset", "malformed"])
@pytest.mark.parametrize("method", ["POST", "PATCH", "GET", "DELETE"])
async def test_whatever_breaks_once_there_is_exactly_one_after_the_next_check(shop, fault, method):
    if method != "POST":
        before = (await shop.run()).subscription_id
        shop.service.control("POST", f"/admin/subscriptions/{before}")
    shop.service.faults({"fault": fault, "count": 1, "match": {"method": method, "path": "/notifications.*"}})
    verb = "rotate" if method == "PATCH" else "ensure"

    for _ in range(3):
        try:
            await shop.run(verb)
            break
        except (ServiceUnavailable, AnswerInvalid):
            continue

    assert_good(shop)
    await shop.run()
    assert_good(shop)


async def test_an_answer_without_an_id_is_doubt_and_not_a_second_subscription(shop):
    def edit(request, answer):
        return reply({"fine": True}, 201) if request.method == "POST" else None

    done = await shop.run(edit=edit)

    assert done.changed == {"adopted": 1}
    assert_good(shop)


async def test_a_create_that_always_fails_is_tried_twice_and_said(shop):
    shop.service.faults({"fault": "status_5xx", "match": {"method": "POST", "path": "/notifications.*"}})

    with pytest.raises(ServiceUnavailable, match="create_subscription"):
        await shop.run()

    assert shop.asked().count("POST") == 2
    assert shop.there == []
    shop.service.faults()
    assert (await shop.run()).changed == {"created": 1}
    assert_good(shop)


async def test_a_list_that_cannot_be_read_in_whole_never_leads_to_a_second_try(shop):
    def edit(request, answer):
        if request.method == "GET":
            return reply({"data": [], "next": True})
        return reply({"error": "X", "errorMessage": "x"}, 500)

    with pytest.raises(ServiceUnavailable):
        await shop.run(edit=edit)

    assert len(shop.there) == 1


async def test_one_that_a_cut_list_leaves_out_is_looked_up_by_its_id(shop):
    before = (await shop.run()).subscription_id

    def edit(request, answer):
        return reply([]) if request.method == "GET" and request.url.path.endswith(PATH) else None

    assert (await shop.run(edit=edit)).changed == {}
    assert shop.one.id == before


async def test_an_update_without_effect_ends_in_a_new_subscription(shop):
    before = (await shop.run()).subscription_id
    shop.api("PATCH", f"{PATH}/{before}", {"notificationTypes": ["BOOKING_UPDATE"]})

    def edit(request, answer):
        if request.method == "PATCH":
            shop.service._box.service.store.subscriptions[before] = frozen

    frozen = shop.one
    done = await shop.run(edit=edit)

    assert (done.changed["created"], done.changed["deleted"]) == (1, 1)
    assert assert_good(shop).id != before


async def test_a_rotation_without_effect_ends_in_a_new_subscription(shop):
    before = (await shop.run()).subscription_id
    frozen = shop.one

    def edit(request, answer):
        if request.method == "PATCH":
            shop.service._box.service.store.subscriptions[before] = frozen

    done = await shop.run("rotate", edit=edit)

    assert done.changed == {"changed": 1, "created": 1, "deleted": 1}
    assert assert_good(shop).id != before


class Refusing(Wire):
    """Refuses a method before the service hears of it, and calls `look` before every request."""

    def __init__(self, method, look=lambda: None, answer=405):
        super().__init__(lambda *_: None)
        self._method, self._look, self._answer = method, look, answer
        self.refused = 0

    async def handle_async_request(self, request):
        self._look()
        if request.method != self._method:
            return await super().handle_async_request(request)
        self.refused += 1
        if isinstance(self._answer, int):
            return httpx.Response(self._answer, stream=httpx.ByteStream(b""))
        raise self._answer


async def test_a_service_that_refuses_updates_gets_a_new_one_before_the_old_one_goes(shop):
    before = (await shop.run()).subscription_id
    sizes = []

    done = await shop.run("rotate", wire=Refusing("PATCH", lambda: sizes.append(len(shop.there))))

    assert done.changed == {"created": 1, "deleted": 1}
    assert assert_good(shop).id != before
    assert min(sizes) == 1


async def test_an_update_that_was_refused_is_not_asked_for_again(shop):
    before = (await shop.run()).subscription_id
    shop.api("PATCH", f"{PATH}/{before}", {"notificationTypes": ["BOOKING_UPDATE"]})
    wire = Refusing("PATCH")

    assert (await shop.run(wire=wire)).changed == {"created": 1, "deleted": 1}

    assert wire.refused == 1
    assert assert_good(shop).id != before


async def test_one_that_cannot_be_deleted_is_left_and_said(shop):
    before = (await shop.run()).subscription_id
    twin = shop.service.control("POST", f"/admin/subscriptions/{before}")["id"]

    done = await shop.run(wire=Refusing("DELETE"))
    removed = await shop.run("remove", wire=Refusing("DELETE"))

    assert (done.state, twin in done.text) == ("ok", True)
    assert (removed.state, twin in removed.text) == ("unavailable", True)
    assert shop.journal.endpoints.rows(), "what still comes is still accepted"


class _KilledError(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_what_a_kill_left_half_done_is_finished_by_the_next_check(shop, moment):
    def kill(request, answer):
        if request.method == "POST":
            raise _KilledError

    with pytest.raises(_KilledError):
        await shop.run(wire=Wire(kill) if moment == "after" else Refusing("POST", answer=_KilledError()))
    assert len(shop.there) == (1 if moment == "after" else 0)

    done = await shop.check()

    assert done.changed == ({"adopted": 1} if moment == "after" else {"created": 1})
    assert_good(shop)


# -- rotation -----------------------------------------------------------------------------------------------------------


async def test_rotation_moves_it_and_accepts_both_until_the_new_one_was_seen(shop):
    await shop.run()
    old = shop.one
    await shop.run("rotate")
    new = assert_good(shop)

    assert new.id == old.id
    assert new.url != old.url
    assert new.headers[HEADER] != old.headers[HEADER]
    assert shop.accepts(old.url, old.headers), "a delivery that was on its way"
    shop.clock.advance(hours=23)
    await shop.check()
    assert shop.accepts(old.url, old.headers), "nothing has come to the new address yet"
    shop.journal.endpoints.seen({new.url.rpartition("/")[2]: new.id})
    await shop.check()
    assert shop.accepts(old.url, old.headers), "the service may still try an old delivery again"
    shop.clock.advance(minutes=61)
    await shop.check()
    assert not shop.accepts(old.url, old.headers)
    assert_good(shop)


async def test_rotation_costs_no_delivery_before_it_while_it_is_under_way_or_after_it(service, tmp_path, monkeypatch):
    """Through the receiver itself: both addresses are open from the moment that the service may use them."""
    monkeypatch.setattr(cache, "_APART", 0.0)
    shop, pipeline = Shop(service, tmp_path / "journal.sqlite", name="acme"), a_pipeline(tmp_path)
    inbox, open_ones = Inbox(shop.journal, Routing(pipeline, shop.clock)), cache.EndpointCache(shop.journal)
    sent = []
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(shop.journal.close)
        stack.push_async_callback(inbox.close)
        stack.push_async_callback(open_ones.close)
        app = Receiver(inbox, open_ones, pipeline.webhooks)
        sender = await stack.enter_async_context(httpx.AsyncClient(transport=httpx.ASGITransport(app)))

        async def deliver(url, headers):
            # For an address that nobody knows the journal is read anew, so that what was closed in it is closed now.
            assert (await sender.post(f"{BASE}/hooks/{'u' * 32}")).status_code == 401
            body = {"notificationType": "BOOKING_UPDATE", "data": {"uuid": f"b-{len(sent)}"}}
            sent.append(body)
            return (await sender.post(url, json=body, headers=headers)).status_code

        async def under_way(request, _):
            if request.method == "PATCH":
                # The service has changed it, and the answer is still on its way.
                new = json.loads(request.content)
                assert new["url"] != old.url
                assert [await deliver(new["url"], new["headers"]), await deliver(old.url, old.headers)] == [200, 200]

        await shop.run()
        old = shop.one
        assert await deliver(old.url, old.headers) == 200
        await shop.run("rotate", edit=under_way)
        new = shop.one
        for hours in (0, 0.9):
            shop.clock.advance(hours=hours)
            await shop.check()
            assert [await deliver(one.url, one.headers) for one in (old, new)] == [200, 200]
        stored = [json.loads(one.body) for one in shop.journal.inbox.deliveries(100)]
        assert (len(sent), stored) == (7, sent)
        shop.clock.advance(hours=0.2)
        await shop.check()
        assert [await deliver(one.url, one.headers) for one in (old, new)] == [401, 200]


async def test_a_former_secret_is_refused_after_a_day_at_the_latest(shop):
    await shop.run()
    old = shop.one
    await shop.run("rotate")
    shop.clock.advance(seconds=DAY + 60)

    await shop.check()

    assert not shop.accepts(old.url, old.headers)
    assert_good(shop)


async def test_rotating_for_the_first_time_makes_one(shop):
    assert (await shop.run("rotate")).changed == {"created": 1}
    assert_good(shop)


async def test_an_update_whose_answer_got_lost_is_told_by_its_address(shop):
    await shop.run()
    old = shop.one

    def edit(request, answer):
        return httpx.Response(502) if request.method == "PATCH" else None

    done = await shop.run("rotate", edit=edit)

    assert done.changed == {"adopted": 1}
    assert assert_good(shop).id == old.id
    assert shop.one.url != old.url
    assert shop.accepts(old.url, old.headers)


# -- removal ------------------------------------------------------------------------------------------------------------


async def test_removal_leaves_nothing_behind_and_is_safe_to_repeat(shop):
    before = (await shop.run()).subscription_id
    shop.service.control("POST", f"/admin/subscriptions/{before}")
    shop.make(f"{BASE}/hooks/{'z' * 32}")

    removed = await shop.run("remove")

    assert (removed.state, removed.changed) == ("off", {"deleted": 3})
    assert shop.there == []
    assert shop.journal.endpoints.rows() == []
    again = await shop.run("remove")
    assert (again.state, again.changed) == ("off", {})


async def test_removal_needs_no_address(shop):
    await shop.run()

    await shop.run("remove", "")

    assert shop.there == []


async def test_a_check_does_not_undo_a_removal_and_a_person_can(shop):
    await shop.run()
    await shop.run("remove")
    shop.service.forget_requests()

    checked = await shop.check()
    assert (checked.state, checked.text, shop.asked()) == ("off", "removed on request", [])
    assert (await shop.run()).changed == {"created": 1}
    assert (await shop.check()).state == "ok"


async def test_a_removal_that_was_cut_off_is_finished_by_the_next_check(shop):
    await shop.run()
    shop.service.faults({"fault": "status_5xx", "match": {"method": "DELETE"}})
    with pytest.raises(ServiceUnavailable):
        await shop.run("remove")
    assert shop.accepts(shop.one.url, shop.one.headers)
    shop.service.faults()

    assert (await shop.check()).changed == {"deleted": 1}
    assert shop.there == []
    assert shop.journal.endpoints.rows() == []


async def test_a_removal_during_a_check_wins(shop):
    def edit(request, answer):
        if request.method == "GET":
            shop.journal.settings.set("subscription_removed_at", "now", connection="shop")

    assert (await shop.check(edit=edit)).state == "off"
    assert shop.there == []


async def test_without_an_address_nothing_is_asked(shop):
    checked = await shop.check("")

    assert (checked.state, shop.asked()) == ("off", [])


# -- services and tokens that cannot ------------------------------------------------------------------------------------


@pytest.mark.deep(0.2, everyday=1)
@pytest.mark.parametrize("status", [400, 403, 404, 405, 422, 501])
async def test_a_service_without_subscriptions_is_said_and_no_error(shop, status):
    error = {"error": "NOPE", "errorMessage": "not here"}

    done = await shop.run(edit=lambda *_: reply(error, status))

    assert done.state == "unavailable"
    assert "pulls go on alone" in done.text
    assert shop.journal.endpoints.rows() == []


@pytest.mark.parametrize("token", ["readonly", "none"])
async def test_a_token_without_the_ability_is_said_after_few_calls(shop, token):
    shop.token = token

    done = await shop.run()

    assert (done.state, "octo:write.notifications" in done.text) == ("unavailable", True)
    assert len(shop.asked()) <= 3
    assert [row.state for row in shop.journal.endpoints.rows(retired=True)] in ([], ["retired"])


async def test_a_service_that_ignores_the_capability_is_said(shop):
    shop.service.quirks(ignored_capability=["notifications"])

    assert (await shop.run()).state == "unavailable"


async def test_a_refused_token_is_an_error_of_its_own(shop):
    shop.token = "revoked"

    with pytest.raises(AuthenticationRefused):
        await shop.run()


async def test_a_service_that_drops_types_is_taken_as_it_is_and_said(shop):
    def edit(request, answer):
        return changed(answer, notificationTypes=["BOOKING_UPDATE"])

    done = await shop.run(edit=edit)

    assert (done.state, done.text) == ("ok", "made; the service leaves out AVAILABILITY_UPDATE, PRODUCT_UPDATE")
    assert len(shop.there) == 1
    await assert_rests(shop, done, edit)
    # An edit is still seen: what is accepted is this address with these types, and nothing else.
    types = ["PRODUCT_UPDATE"]
    mended = await shop.check(edit=lambda *both: changed(both[1], notificationTypes=types))
    assert mended.changed
    moved = await shop.check("https://moved.example.com", edit=edit)
    assert (moved.changed, shop.one.url.startswith("https://moved.example.com/hooks/")) == ({"changed": 1}, True)


async def test_a_service_that_spells_the_address_its_own_way_is_taken_as_it_is(shop):
    def edit(request, answer):
        return changed(answer, url=lambda url: url.replace("/octo/", "//octo/") + "?")

    await assert_rests(shop, await shop.run(edit=edit), edit)
    # Once the service shows it as it was sent, that other spelling is an edit.
    assert (await shop.check()).changed == {}
    assert (await shop.check(edit=edit)).changed == {"changed": 1}


async def test_a_service_that_stops_showing_the_secret_is_taken_as_it_is(shop):
    await shop.run(edit=lambda _, answer: changed(answer, headers=lambda _: shop.one.headers))
    edit = lambda _, answer: changed(answer, headers={HEADER: "***"})  # noqa: E731

    await assert_rests(shop, await shop.check(edit=edit), edit)


def changed(answer, **values):
    """The answer with these values in each subscription; None where it has none, as a wire's edit says "as it is"."""
    if answer.status_code == 204 or answer.status_code >= 300:
        return None
    edit = lambda one: one | {k: v(one.get(k)) if callable(v) else v for k, v in values.items()}  # noqa: E731
    body = answer.json()
    return reply([edit(each) for each in body] if isinstance(body, list) else edit(body), answer.status_code)


async def assert_rests(shop, done, edit):
    """Later checks look once and change nothing, so that nothing is asked for again either."""
    shop.journal.settings.set(TOLD_AT, done.endpoint.endpoint, connection="shop")
    url = shop.one.url
    for _ in range(2):
        shop.service.forget_requests()
        checked = await shop.check(edit=edit)
        assert (checked.state, checked.changed, shop.asked(), shop.one.url) == ("ok", {}, ["GET"], url)
        assert not close_gap(SimpleNamespace(journal=shop.journal), "shop", checked.endpoint.endpoint)


async def test_a_service_that_never_comes_to_rest_costs_few_calls(shop):
    def edit(request, answer):
        if request.method == "GET" and request.url.path.endswith(PATH):
            return reply([])
        return httpx.Response(404) if request.method == "GET" else None

    with pytest.raises(ServiceUnavailable, match="come to rest"):
        await shop.run(edit=edit)

    assert shop.asked().count("POST") == 2


async def test_endpoints_that_nothing_came_of_do_not_pile_up(shop):
    shop.service.faults({"fault": "status_5xx", "match": {"method": "POST", "path": "/notifications.*"}})
    for _ in range(3):
        with pytest.raises(ServiceUnavailable):
            await shop.check()
        shop.clock.advance(seconds=DAY)

    assert len(shop.journal.endpoints.rows()) == 2


# -- looking ------------------------------------------------------------------------------------------------------------


async def test_looking_tells_whose_everything_is_and_changes_nothing(shop):
    other = Shop(shop.service, shop.path, name="other")
    await other.run()
    other.journal.close()
    mine = (await shop.run()).subscription_id
    twin = shop.service.control("POST", f"/admin/subscriptions/{mine}")["id"]
    shop.make(FOREIGN)
    before = shop.api("GET")

    shown = await shop.run("look")

    assert shop.api("GET") == before
    assert {each.subscription_id: each.state for each in shown[:2]} == {mine: "current", twin: "surplus"}
    assert [each.whose for each in shown] == ["ours", "ours", "another connection's", "somebody else's"]
    assert [each.state for each in shown[2:]] == ["", ""]
    whole = {each.url.rpartition("/")[2] for each in shop.there}
    assert all(segment not in each.url for each in shown for segment in whole)
    shop.api("PATCH", f"{PATH}/{twin}", {"notificationTypes": ["BOOKING_UPDATE"]})
    shop.api("PATCH", f"{PATH}/{mine}", {"notificationTypes": ["BOOKING_UPDATE"]})
    assert [each.state for each in await shop.run("look") if each.whose == "ours"].count("to mend") == 1
    assert {each.state for each in await shop.run("look", "")} == {""}


# -- several at once ----------------------------------------------------------------------------------------------------


async def test_many_at_once_end_with_exactly_one(shop):
    """In one process, so that their calls interleave at every await."""
    shop.service.faults({"fault": "latency", "seconds": 0.02, "share": 0.5})
    for verbs in (["ensure"] * 6, ["ensure", "rotate"] * 3):
        await asyncio.gather(*(shop.run(verb) for verb in verbs))
        assert len(shop.there) == 1
        assert shop.accepts(shop.one.url, shop.one.headers)
        await shop.run()
        assert_good(shop)


PROGRAM = """
import asyncio, os, secrets, sys, time
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from octo_sync.flows.webhooks.subscribe import Subscriber
from octo_sync.journal import Journal
from octo_sync.model import Connection, Secret
from octo_sync.octo.client import OctoClient
class Clock:
    def now(self): return datetime.now(UTC)
url, token, path, base = sys.argv[1:]
async def main():
    clock = Clock()
    connection = Connection(name="shop", base_url=url, token=Secret(token))
    for line in sys.stdin:
        with Journal.open(Path(path), clock=clock) as journal:
            async with OctoClient(connection, clock=clock, random=Random()) as client:
                while time.time() < float(line): pass
                subscriber = Subscriber(journal, client, base, clock=clock, tokens=secrets.token_urlsafe)
                print((await subscriber.ensure()).state, flush=True)
asyncio.run(main())
"""


@pytest.mark.deep(5)
def test_two_processes_ensuring_at_once_ten_times_end_with_one(shop):
    arguments = [shop.service.base_url, TOKENS["a"], str(shop.path), BASE]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    raced = 0
    try:
        for _ in range(10):
            for each in shop.there:
                shop.service.control("DELETE", f"/admin/subscriptions/{each.id}")
            shop.service.forget_requests()
            for process in processes:
                process.stdin.write(f"{time.time() + 0.3}\n")
                process.stdin.flush()
            assert [process.stdout.readline() for process in processes] == ["ok\n", "ok\n"]
            assert len(shop.there) == 1
            assert shop.accepts(shop.one.url, shop.one.headers)
            raced += shop.asked().count("POST") > 1
    finally:
        for process in processes:
            process.communicate(timeout=120)
    assert raced, "they never met, so this proved nothing"


# -- secrets ------------------------------------------------------------------------------------------------------------


async def test_no_secret_is_in_a_log_a_traceback_an_outcome_or_the_journals_bytes(shop, caplog):
    """A service that repeats what it was sent in its errors, in whole and in part, must not make us repeat it."""
    caplog.set_level(logging.DEBUG)
    said = []

    def echo(cut):
        def edit(request, answer):
            if request.method in {"POST", "PATCH"}:
                secret = json.loads(request.content)["headers"][HEADER]
                return reply({"error": "BAD", "errorMessage": f"no {secret[:cut]}"}, 400 if cut else 500)
            return None

        return edit

    said.append(await shop.run())
    said.append(await shop.run("rotate"))
    said.append(await shop.run("rotate", edit=echo(43)))
    await shop.run("remove")
    said += [await shop.run(edit=echo(cut)) for cut in (43, 20, 8)]
    for edit in (echo(0), lambda request, _: httpx.Response(500) if request.method == "POST" else None):
        try:
            said.append(await shop.run(edit=edit))
        except OctoSyncError as error:
            said += [*traceback.format_exception(error), repr(error.__context__), repr(error.__cause__)]
    said.append(await shop.run("look"))
    said.append([row.model_dump() for row in shop.journal.endpoints.rows(retired=True)])
    texts = "\n".join(str(each) for each in (*said, *caplog.messages)).encode()
    files = b"".join(each.read_bytes() for each in shop.path.parent.glob("journal.sqlite*"))

    assert len(shop.secrets) >= 7
    assert "action=subscription_created connection=shop" in caplog.text
    for secret in shop.secrets:
        for piece in (secret[at : at + 8].encode() for at in range(36)):
            assert piece not in texts
            assert piece not in files
