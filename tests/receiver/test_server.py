"""The limits of the server, on real sockets: slow heads, slow bodies, huge heads, too many connections, an end."""

import asyncio
import contextlib
import resource
import threading
import time

import pytest
from tests.flows.harness import until
from tests.receiver.conftest import booking_body, post

from octo_sync.errors import ConfigError
from octo_sync.pipeline import WebhookSettings
from octo_sync.receiver.server import serving

QUICK = 'header_timeout = "0.3s"\nrequest_timeout = "0.8s"\n'
QUICK_HEAD = 'header_timeout = "0.3s"\nrequest_timeout = "600s"\n'
PATIENT = 'header_timeout = "300s"\nrequest_timeout = "600s"\n'


async def test_a_head_that_drips_is_cut_off_in_time(receiver):
    running = await receiver(QUICK_HEAD)
    started = time.monotonic()
    client = await running.client()

    async def drip():
        with contextlib.suppress(ConnectionError):
            for byte in post(booking_body(), b"X-Long: " + b"x" * 1000):
                await client.say(bytes([byte]))
                await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    answer = await client.answer()
    assert time.monotonic() - started >= 0.3
    assert (answer.status, answer.headers["connection"]) == (408, "close")
    assert await client.ended()
    dripping.cancel()
    assert running.counted("octo_sync_connections_refused_total", reason="slow") == 1


async def test_a_connection_that_says_nothing_is_ended_in_time(receiver):
    running = await receiver(QUICK_HEAD)
    started = time.monotonic()
    client = await running.client()
    assert await client.ended()
    assert time.monotonic() - started >= 0.3


async def test_a_body_that_drips_is_cut_off_in_time_and_nothing_of_it_is_stored(receiver):
    running = await receiver(QUICK)
    client = await running.client()
    await client.say(post(b"", length=1000))

    async def drip():
        with contextlib.suppress(ConnectionError):
            while True:
                await client.say(b"x")
                await asyncio.sleep(0.02)

    dripping = asyncio.create_task(drip())
    answer = await client.answer()
    assert answer.status == 408
    assert await client.ended()
    dripping.cancel()
    assert running.journal.inbox.deliveries() == []


@pytest.mark.parametrize("behind", [b"", post(booking_body("2"))[:-1], post(booking_body("2"))[:9]], ids=len)
async def test_who_has_sent_everything_is_to_come_back_when_the_journal_is_slow(receiver, behind):
    running = await receiver(PATIENT)
    in_hand, gate = threading.Event(), threading.Event()
    real = running.journal.inbox.accept
    running.journal.inbox.accept = lambda items: in_hand.set() or (gate.wait(60) and real(items))
    client = await running.client()
    try:
        await client.say(post(booking_body()) + behind)
        await until(in_hand.is_set)
        (connection,) = running.server.server_state.connections
        connection.look(connection._began + 599)
        assert not connection._ended
        connection.look(connection._began + 601)
        answer = await client.answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert await client.ended()
    finally:
        gate.set()
    assert running.counted("octo_sync_connections_refused_total", reason="unanswered") == 1


async def test_the_time_of_a_request_begins_with_it_and_not_with_its_connection(receiver):
    """Its moments are made up: the server's own look is given them."""
    running = await receiver(PATIENT)
    client = await running.client()
    assert (await client.ask(post(booking_body()))).status == 200
    (connection,) = running.server.server_state.connections
    connection.look(asyncio.get_running_loop().time() + 3600)
    raw = post(booking_body("slow but in time"))
    await client.say(raw[:40])
    await until(lambda: connection._began is not None)
    connection.look(connection._began + 299)
    await client.say(raw[40:-5])
    await until(lambda: not connection._in_head)
    connection.look(connection._began + 599)
    assert (await client.ask(raw[-5:])).status == 200


async def test_a_slow_sender_does_not_hold_up_others(receiver):
    running = await receiver(PATIENT)
    slow = [await running.client() for _ in range(50)]
    for number, client in enumerate(slow):
        await client.say(post(b"", length=1000)[: 40 + number * 3])
    assert (await running.ask(post(booking_body()))).status == 200
    assert not any(client.reader.at_eof() for client in slow)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_head_beyond_the_limit_is_refused_whether_it_comes_at_once_or_in_pieces(receiver, at_once):
    running = await receiver()
    client = await running.client()
    raw = post(booking_body(), b"X-Long: " + b"x" * 16_384)
    if at_once:
        answer = await client.ask(raw)
    else:
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(raw), 1000):
                await client.say(raw[start : start + 1000])
                await asyncio.sleep(0)
        answer = await client.answer()
    assert (answer.status, answer.headers["connection"]) == (431, "close")
    assert running.journal.inbox.deliveries() == []
    assert running.counted("octo_sync_connections_refused_total", reason="head_too_large") == 1


async def test_a_head_that_never_ends_is_refused_before_it_fills_the_memory(receiver):
    running = await receiver()
    client = await running.client()
    await client.say(b"POST / HTTP/1.1\r\n")
    sent = 0
    with contextlib.suppress(ConnectionError):
        for number in range(100_000):
            await client.say(b"X-%d: " % number + b"y" * 100 + b"\r\n")
            sent += 110
            if client.reader.at_eof():
                break
            await asyncio.sleep(0)
    assert sent < 5_000_000
    assert await client.ended()


async def test_a_head_below_the_limit_passes_with_a_large_body_behind_it(receiver):
    running = await receiver()
    raw = post(b"x" * 65_000, b"X-Long: " + b"x" * 15_500)
    client = await running.client()
    for _ in range(3):
        assert (await client.ask(raw)).status == 200


async def test_one_connection_too_many_is_told_to_come_back_and_the_others_go_on(receiver):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip("not enough file descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    try:
        running = await receiver(PATIENT)
        kept = [await running.client() for _ in range(1000)]
        assert (await kept[-1].ask(post(booking_body()))).status == 200
        over = await running.client()
        answer = await over.answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert await over.ended()
        assert running.counted("octo_sync_connections_refused_total", reason="too_many") == 1
        assert (await kept[0].ask(post(booking_body()))).status == 200
        await kept.pop().close()
        await until(lambda: len(running.server.server_state.connections) < 1000)
        assert (await running.ask(post(booking_body()))).status == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"\x00" * 100,
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused_and_the_server_stands(receiver, raw):
    running = await receiver()
    client = await running.client()
    await client.say(raw)
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        assert (await client.answer()).status in {400, 401}
    assert (await running.ask(post(booking_body()))).status == 200


async def test_an_upgrade_is_not_one(receiver):
    running = await receiver()
    raw = post(booking_body(), b"Connection: Upgrade", b"Upgrade: websocket")
    with contextlib.suppress(asyncio.IncompleteReadError, TimeoutError):
        await (await running.client()).ask(raw, within=0.5)
    assert (await running.ask(post(booking_body()))).status == 200


async def test_a_stop_finishes_the_answer_in_hand_and_takes_no_more(receiver):
    running = await receiver()
    in_hand, gate = threading.Event(), threading.Event()
    real = running.journal.inbox.accept
    running.journal.inbox.accept = lambda items: in_hand.set() or (gate.wait(60) and real(items))
    client = await running.client()
    await client.say(post(booking_body()))
    await until(in_hand.is_set)
    running.server.stopping.set()
    await until(lambda: not any(server.is_serving() for server in running.server.servers))
    with pytest.raises(ConnectionRefusedError):
        await running.client()
    gate.set()
    assert (await client.answer()).status == 200


async def test_an_address_that_cannot_be_had_is_said_in_a_sentence(receiver):
    running = await receiver()
    taken = running.server.url.removeprefix("http://")
    with pytest.raises(ConfigError, match=f"webhooks.bind: cannot listen on {taken}: .*End what listens there"):
        async with serving(running.server.config.app, WebhookSettings(bind=taken)):
            pass
    with pytest.raises(
        ConfigError, match=r"cannot listen on 192\.0\.2\.1:1: .*\. Choose another address that this machine"
    ):
        async with serving(running.server.config.app, WebhookSettings(bind="192.0.2.1:1")):
            pass
    with pytest.raises(ConfigError, match=r"nowhere\.invalid is no address of this machine"):
        async with serving(running.server.config.app, WebhookSettings(bind="nowhere.invalid:1")):
            pass


async def test_it_listens_on_ipv6_as_well(receiver):
    app = (await receiver()).server.config.app
    try:
        async with serving(app, WebhookSettings(bind="[::1]:0")) as server:
            assert server.url.startswith("http://[::1]:")
    except ConfigError:
        pytest.skip("this machine has no IPv6")
