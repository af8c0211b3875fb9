"""What goes out: paths, headers, bodies."""

import asyncio
import json
from datetime import date

import pytest
from tests.octo.support import TOKEN, client, in_turn, says, serving

from octo_sync.errors import ConfigError, RequestRefused
from octo_sync.model import Secret
from octo_sync.octo import endpoints

LIST = says(200, b"[]")


async def test_every_request_carries_the_token_the_capabilities_and_a_language():
    async with serving(LIST) as server, client(server.origin) as octo:
        await octo.ask(endpoints.products())
    sent = server.seen[0]
    assert (sent.method, sent.target) == ("GET", "/octo/v1/products")
    assert sent.headers["authorization"] == f"Bearer {TOKEN}"
    assert sent.headers["octo-capabilities"] == "octo/pricing, octo/content, octo/extras"
    assert sent.headers["accept-language"] == "en"
    assert sent.headers["accept"] == "application/json"
    assert sent.headers["accept-encoding"] == "gzip, deflate"
    assert sent.headers["cache-control"] == "no-cache"
    assert sent.headers["user-agent"].startswith("octo-sync/")
    assert "content-type" not in sent.headers


async def test_the_capabilities_header_is_sent_even_when_empty():
    async with serving(LIST) as server, client(server.origin, capabilities=()) as octo:
        await octo.ask(endpoints.products())
    assert server.seen[0].headers["octo-capabilities"].strip() == ""


async def test_capabilities_can_be_spelled_short():
    given = {"capabilities": ("octo/pricing", "content", "ventrata/x"), "capability_spelling": "short"}
    async with serving(LIST) as server, client(server.origin, **given) as octo:
        await octo.ask(endpoints.products())
    assert server.seen[0].headers["octo-capabilities"] == "pricing, content, ventrata/x"


async def test_an_operation_can_send_other_capabilities_or_no_header_at_all():
    overrides = {"products": None, "supplier": ("content",)}
    handler = in_turn(LIST, says(200, b'{"id":"s"}'))
    async with serving(handler) as server, client(server.origin, capability_overrides=overrides) as octo:
        await octo.ask(endpoints.products())
        await octo.ask(endpoints.supplier())
    assert "octo-capabilities" not in server.seen[0].headers
    assert server.seen[1].headers["octo-capabilities"] == "octo/content"


async def test_subscription_calls_switch_notifications_on_and_others_do_not():
    async with serving(LIST) as server, client(server.origin, capabilities=("pricing",)) as octo:
        await octo.list_subscriptions()
        await octo.ask(endpoints.products())
    assert server.seen[0].headers["octo-capabilities"] == "octo/pricing, octo/notifications"
    assert server.seen[1].headers["octo-capabilities"] == "octo/pricing"


async def test_static_headers_are_added_and_cannot_replace_the_token():
    headers = {"Octo-Env": "test", "Authorization": "Bearer other", "User-Agent": "mine"}
    async with serving(LIST) as server, client(server.origin, headers=headers) as octo:
        await octo.ask(endpoints.products())
    assert server.seen[0].headers["octo-env"] == "test"
    assert server.seen[0].headers["user-agent"] == "mine"
    assert server.seen[0].headers["authorization"] == f"Bearer {TOKEN}"


async def test_a_user_in_the_address_does_not_replace_the_token():
    async with serving(LIST) as server, client(server.origin.replace("//", "//ann:pw@")) as octo:
        await octo.ask(endpoints.products())
    assert server.seen[0].headers["authorization"] == f"Bearer {TOKEN}"


async def test_a_call_can_ask_for_another_language():
    async with serving(LIST) as server, client(server.origin, languages=("de", "fr")) as octo:
        await octo.ask(endpoints.products())
        await octo.ask(endpoints.products(language="fr"))
    assert [seen.headers["accept-language"] for seen in server.seen] == ["de", "fr"]


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("a/b", "a%2Fb"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("x?y#z", "x%3Fy%23z"),
        ("2026-01-01T12:00:00+01:00|e", "2026-01-01T12%3A00%3A00%2B01%3A00%7Ce"),
        ("50%25", "50%2525"),
        ("Ünï", "%C3%9Cn%C3%AF"),
        ("a b\r\nX: 1", "a%20b%0D%0AX%3A%201"),
    ],
)
async def test_an_id_stays_one_segment_of_the_path(name, segment):
    async with serving(says(200, b'{"id":"p","options":[]}')) as server, client(server.origin) as octo:
        await octo.ask(endpoints.product(name))
    assert server.seen[0].target == f"/octo/v1/products/{segment}"


@pytest.mark.parametrize(("name", "why"), [("", "An empty id"), ("\ud800", "not valid Unicode")])
def test_an_id_that_cannot_be_asked_for_is_refused_before_anything_is_sent(name, why):
    with pytest.raises(RequestRefused, match=f"{why}.*nothing was sent"):
        endpoints.booking(name)


async def test_availability_is_asked_for_without_units_by_whole_days():
    async with serving(LIST) as server, client(server.origin) as octo:
        await octo.ask(endpoints.availability("p", "DEFAULT", date(2026, 11, 1), date(2026, 11, 30)))
    assert (server.seen[0].method, server.seen[0].target) == ("POST", "/octo/v1/availability")
    assert server.seen[0].headers["content-type"] == "application/json"
    assert json.loads(server.seen[0].body) == {
        "productId": "p",
        "optionId": "DEFAULT",
        "localDateStart": "2026-11-01",
        "localDateEnd": "2026-11-30",
    }


async def test_bookings_are_asked_for_with_the_filters_of_the_specification():
    async with serving(LIST) as server, client(server.origin) as octo:
        await octo.ask(endpoints.bookings(start=date(2026, 11, 1), end=date(2026, 11, 30)))
        await octo.ask(endpoints.bookings(reseller_reference="A&B 1"))
    assert server.seen[0].target == "/octo/v1/bookings?localDateStart=2026-11-01&localDateEnd=2026-11-30"
    assert server.seen[1].target in {
        "/octo/v1/bookings?resellerReference=A%26B+1",
        "/octo/v1/bookings?resellerReference=A%26B%201",
    }


def test_a_call_without_its_required_filter_is_not_even_built():
    with pytest.raises(ValueError, match="needs"):
        endpoints.bookings()
    with pytest.raises(ValueError, match="together"):
        endpoints.bookings(start=date(2026, 1, 1))
    with pytest.raises(ValueError, match="exactly one"):
        endpoints.availability("p", "o", date(2026, 1, 1))
    with pytest.raises(ValueError, match="exactly one"):
        endpoints.availability("p", "o", date(2026, 1, 1), date(2026, 1, 1), local_date=date(2026, 1, 1))


def test_null_is_sent_and_what_is_not_given_is_not():
    assert endpoints.update("u", notes=None).json == {"notes": None}
    assert endpoints.update("u").json == {}


def test_a_confirmation_has_a_contact_which_octo_requires_though_nobody_is_named():
    for said in ({}, {"contact": None}, {"contact": {}}):
        assert endpoints.confirm("u", notes="x", **said).json == {"notes": "x", "contact": {}}
    assert endpoints.confirm("u", contact={"fullName": "Ann"}).json == {"contact": {"fullName": "Ann"}}


async def test_on_start_is_called_for_each_attempt_and_the_last_one_orders_the_answer():
    numbers = iter(range(41, 99))
    async with serving(in_turn(says(503), says(503), LIST)) as server, client(server.origin) as octo:
        answer = await octo.send(endpoints.products(), on_start=lambda: next(numbers))
    assert answer.request_seq == 43


async def test_an_answer_knows_its_bytes_headers_and_digest():
    handler = in_turn(says(200, b"[ ]", {"X-Request-Id": "r1"}), says(200, b"[]"))
    async with serving(handler) as server, client(server.origin) as octo:
        first, second = await octo.send(endpoints.products()), await octo.send(endpoints.products())
    assert (first.status, first.body, first.headers["x-request-id"], first.json()) == (200, b"[ ]", "r1", [])
    assert len(first.digest) == 32
    assert first.digest != second.digest


async def test_the_client_counts_what_it_did():
    async with serving(in_turn(says(503), says(200, b"[1]"))) as server, client(server.origin) as octo:
        await octo.send(endpoints.products())
    assert (octo.stats.requests, octo.stats.retries, octo.stats.bytes) == (2, 1, 3)
    assert octo.stats.by_status == {503: 1, 200: 1}
    assert octo.stats.unanswered == 0


async def test_the_client_counts_what_ended_without_an_answer_once_it_has_ended():
    asked, never = asyncio.Event(), asyncio.Event()

    async def silent(*_):
        asked.set()
        await never.wait()

    async with serving(silent) as server, client(server.origin) as octo:
        sending = asyncio.create_task(octo.send(endpoints.products()))
        async with asyncio.timeout(60):
            await asked.wait()
        assert octo.stats.unanswered == 0, "an answer may still come"
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert (octo.stats.requests, octo.stats.unanswered) == (1, 1)


async def test_cookies_are_neither_kept_nor_sent_back():
    async with serving(says(200, b"[]", {"Set-Cookie": "a=b; Path=/"})) as server, client(server.origin) as octo:
        await octo.ask(endpoints.products())
        await octo.ask(endpoints.products())
    assert "cookie" not in server.seen[1].headers


async def test_one_socket_serves_many_calls():
    ports = set()

    async def handler(seen, writer):
        ports.add(writer.get_extra_info("peername"))
        await LIST(seen, writer)

    async with serving(handler) as server, client(server.origin) as octo:
        for _ in range(5):
            await octo.ask(endpoints.products())
    assert len(ports) == 1


async def test_no_more_requests_are_open_at_once_than_allowed():
    open_now = most = 0

    async def handler(seen, writer):
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.02)
        open_now -= 1
        await LIST(seen, writer)

    async with serving(handler) as server, client(server.origin, limits={"concurrency": 3}) as octo:
        await octo.ask(endpoints.products())
        await asyncio.gather(*(octo.ask(endpoints.products()) for _ in range(12)))
    assert most == 3


@pytest.mark.parametrize(
    "address", ["http://[::1", "ftp://h", "//h", "h.example/octo", "http://", "http://h:x", "http://h?a="]
)
def test_an_address_that_cannot_be_asked_is_a_configuration_error(address):
    with pytest.raises(ConfigError, match='base_url of connection "pier"'):
        client(address)


@pytest.mark.parametrize("token", ["", "a\r\nX: 1", "tökén", " padded"])
def test_a_token_that_no_header_can_hold_is_a_configuration_error_that_does_not_show_it(token):
    with pytest.raises(ConfigError, match="environment variable X") as caught:
        client("http://127.0.0.1:1", token=Secret(token, "environment variable X"))
    assert not token or token not in str(caught.value)
