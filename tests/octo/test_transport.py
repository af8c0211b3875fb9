"""The transport on aiohttp, over real sockets: each way to fail becomes one of httpx's errors, and nothing is done unasked."""

import asyncio
import gc
import gzip
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import time
import weakref
from contextlib import asynccontextmanager

import httpx
import pytest
from tests.absent import absent
from tests.octo.support import TOKEN, client, in_turn, reply, says, serving

from octo_sync.errors import OctoSyncError, ServiceUnavailable
from octo_sync.octo import client as client_module
from octo_sync.octo import endpoints
from octo_sync.octo import transport as transport_module
from octo_sync.octo.transport import AiohttpTransport

CALL = endpoints.products()
GOOD = says(200, b"[]")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MARK = "7f3a-only-in-the-answer"


def request(url, method="GET", *, connect=30.0, **given):
    return httpx.Request(method, url, extensions={"timeout": {"connect": connect}}, **given)


async def fetch(transport, url, method="GET", **given):
    """Status, headers and raw body."""
    answer = await transport.handle_async_request(request(url, method, **given))
    try:
        body = b"".join([piece async for piece in answer.stream])
    finally:
        await answer.aclose()
    return answer.status_code, answer.headers, body


@asynccontextmanager
async def carrier(context=None):
    transport = AiohttpTransport(context)
    try:
        yield transport
    finally:
        await transport.aclose()


def raw(*pieces, reset=False):
    """Writes exactly these bytes, then closes the connection, or resets it."""

    async def handler(seen, writer):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)
        if reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()

    return handler


@asynccontextmanager
async def counting(handler, tls=None):
    """A server, over TLS if wanted; with its origin the connections made, and those of them that are still open."""
    made, still = [], set()

    async def connected(reader, writer):
        made.append(writer)
        still.add(writer)
        try:
            await handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            still.discard(writer)
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{listener.sockets[0].getsockname()[1]}", made, still
    finally:
        listener.close()
        for writer in list(still):
            writer.transport.abort()
        await asyncio.sleep(0.05)


def answering(answer):
    """For `counting`: `answer(head, writer)` for each request."""

    async def handler(reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            await answer(head, writer)

    return handler


async def eventually(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in the other program's sockets
            await asyncio.sleep(0.01)


FAILURES = {
    "reset before the head": (raw(reset=True), httpx.ReadError),
    "closed without an answer": (raw(), httpx.RemoteProtocolError),
    "closed within the head": (raw(HEAD + f"X-Note: {MARK}".encode()), httpx.RemoteProtocolError),
    "not http": (raw(f"SSH-2.0-{MARK}\r\n\r\n".encode()), httpx.RemoteProtocolError),
    "bad status line": (raw(f"HTTP/1.1 abc {MARK}\r\n\r\n".encode()), httpx.RemoteProtocolError),
    "bad header": (raw(HEAD + f"X y\x00: {MARK}\r\n\r\n".encode()), httpx.RemoteProtocolError),
    "bad length": (raw(HEAD + f"Content-Length: {MARK}\r\n\r\n[]".encode()), httpx.RemoteProtocolError),
    "two lengths": (raw(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n[]"), httpx.RemoteProtocolError),
    "header too long": (raw(HEAD + b"X: " + MARK.encode() * 5_000 + b"\r\n\r\n"), httpx.RemoteProtocolError),
    "too many headers": (raw(HEAD + f"X: {MARK}\r\n".encode() * 500 + b"\r\n"), httpx.RemoteProtocolError),
    "endless head": (raw(HEAD, *[b"X" * 50_000] * 5), httpx.RemoteProtocolError),
    "reset within the body": (raw(HEAD + b"Content-Length: 99\r\n\r\n[", reset=True), httpx.RemoteProtocolError),
    "body too short": (raw(HEAD + f"Content-Length: 99\r\n\r\n{MARK}".encode()), httpx.RemoteProtocolError),
    "last chunk missing": (raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n"), httpx.RemoteProtocolError),
    "bad chunk": (
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n", f"{MARK}\r\n".encode()),
        httpx.RemoteProtocolError,
    ),
}


@pytest.mark.parametrize(("handler", "kind"), FAILURES.values(), ids=FAILURES)
async def test_whatever_breaks_is_one_of_httpx_s_errors_and_its_text_quotes_nothing(handler, kind):
    async with serving(handler) as server, carrier() as transport, asyncio.timeout(60):
        with pytest.raises(kind) as caught:
            await fetch(transport, f"{server.origin}/products?reference=Ann", headers={"Authorization": TOKEN})
    assert type(caught.value) is kind
    assert str(caught.value)
    for secret in (MARK, TOKEN, "Ann", server.origin):
        assert secret not in str(caught.value)


@pytest.mark.deep(0.1, everyday=6)
@pytest.mark.parametrize("handler", [handler for handler, _ in FAILURES.values()], ids=FAILURES)
async def test_whatever_breaks_is_tried_again_and_at_last_our_own_error(handler):
    async with serving(in_turn(handler, GOOD)) as server, client(server.origin) as octo:
        assert (await octo.send(CALL)).body == b"[]"
    async with serving(handler) as server, client(server.origin) as octo:
        with pytest.raises(ServiceUnavailable, match="broke off") as caught:
            await octo.send(CALL)
        assert len(server.seen) == 3
    assert MARK not in str(caught.value)


async def test_nobody_listening_is_a_connect_error():
    async with serving(GOOD) as server:
        pass
    async with carrier() as transport:
        with pytest.raises(httpx.ConnectError, match="Connect call failed"):
            await fetch(transport, server.origin)
        with pytest.raises(httpx.ConnectError):
            await fetch(transport, "http://nowhere.invalid/")


async def test_tls_to_a_port_that_does_not_speak_it_is_a_connect_error():
    async def plain(reader, writer):
        writer.write(b"220 mail.example ESMTP\r\n")

    async with counting(plain) as (origin, _, _), carrier(httpx.create_ssl_context()) as transport:
        with pytest.raises(httpx.ConnectError):
            await fetch(transport, origin.replace("http", "https"))


async def test_a_handshake_that_never_ends_costs_the_connect_timeout():
    async def silent(reader, writer):
        await reader.read()

    async with counting(silent) as (origin, _, _):
        address = origin.replace("http", "https")
        async with carrier(httpx.create_ssl_context()) as transport, asyncio.timeout(60):
            with pytest.raises(httpx.ConnectTimeout):
                await fetch(transport, address, connect=0.3)
        async with client(address, limits={"connect_timeout": 0.1, "attempts": 1}) as octo:
            with pytest.raises(ServiceUnavailable, match=r"nobody answering within 0\.1 s"):
                await octo.send(CALL)


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        absent("needs openssl to make a certificate")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=pier"
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return key, cert


async def test_a_certificate_must_be_trusted_and_for_this_host(certificate):
    key, cert = certificate
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(cert, key)

    async def handler(head, writer):
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n[]")

    async with counting(answering(handler), theirs) as (origin, _, _):
        named = origin.replace("127.0.0.1", "localhost")
        async with carrier(ssl.create_default_context(cafile=cert)) as transport:
            assert (await fetch(transport, named))[2] == b"[]"
            with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
                await fetch(transport, origin)
        async with client(named, limits={"attempts": 1}) as octo:
            with pytest.raises(ServiceUnavailable, match=r"(?i)certificate"):
                await octo.send(CALL)


async def test_one_connection_serves_many_requests_and_closes_with_the_client():
    async def handler(head, writer):
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n[]")

    async with counting(answering(handler)) as (origin, made, still):
        async with client(origin) as octo:
            for _ in range(20):
                await octo.send(CALL)
            await asyncio.gather(*(octo.send(CALL) for _ in range(30)))
            assert len(made) <= octo.connection.limits.concurrency
            assert len(still) == len(made)
        await eventually(lambda: not still)


async def test_a_kept_connection_does_not_keep_the_answers_it_brought():
    async def handler(seen, writer):
        await reply(writer, 200, b"[", {"Content-Length": "2"})
        await asyncio.sleep(0.02)
        writer.write(b"]")

    async with serving(handler) as server, carrier() as transport:
        left = []
        for _ in range(3):
            answer = await transport.handle_async_request(request(server.origin))
            assert b"".join([piece async for piece in answer.stream]) == b"[]"
            await answer.aclose()
            left.append(weakref.ref(answer.stream))
        del answer
        gc.collect()
        assert [ref() for ref in left] == [None, None, None]


async def test_an_answer_without_a_body_keeps_its_connection_and_a_refused_length_does_not():
    async def handler(head, writer):
        if b"/big" in head:
            writer.write(HEAD + b"Content-Length: 1000000000\r\n\r\n[")
        else:
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with counting(answering(handler)) as (origin, made, still), carrier() as transport:
        for _ in range(3):
            assert (await fetch(transport, origin))[0] == 204
        assert len(made) == 1
        answer = await transport.handle_async_request(request(f"{origin}/big"))
        await answer.aclose()
        await eventually(lambda: not still)
        assert (await fetch(transport, origin))[0] == 204


@pytest.mark.parametrize("head", [b"", HEAD + b"Content-Length: 99\r\n\r\n["], ids=["no answer", "half an answer"])
async def test_a_cancelled_request_leaves_no_connection_open(head):
    async def handler(_, writer):
        writer.write(head)

    async with counting(answering(handler)) as (origin, made, still), client(origin, limits={"deadline": 30.0}) as octo:
        task = asyncio.create_task(octo.send(CALL))
        await eventually(lambda: still)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: not still)
        assert len(made) == 1


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
async def test_a_kept_connection_that_breaks_is_not_used_for_a_second_try_unasked(method):
    asked = []

    async def handler(head, writer):
        asked.append(head.split()[0].decode())
        if len(asked) == 1:
            writer.write(HEAD + b"Content-Length: 2\r\n\r\n[]")
        else:
            writer.close()

    async with counting(answering(handler)) as (origin, made, _), carrier() as transport:
        await fetch(transport, origin)
        with pytest.raises(httpx.RemoteProtocolError):
            await fetch(transport, origin, method)
        assert asked == ["GET", method]
        assert len(made) == 1


@pytest.mark.parametrize("late", [False, True])
async def test_an_answer_nobody_asked_for_is_never_given_to_the_next_request(late):
    extra = HEAD + b"Content-Length: 9\r\n\r\n[1, 2, 3]"

    async def handler(head, writer):
        whole = HEAD + b"Content-Length: 2\r\n\r\n[]"
        writer.write(whole if late else whole + extra)
        if late:
            await writer.drain()
            await asyncio.sleep(0.02)
            writer.write(extra)

    async with counting(answering(handler)) as (origin, made, _), carrier() as transport:
        for _ in range(3):
            assert (await fetch(transport, origin))[2] == b"[]"
            await asyncio.sleep(0.05)
        assert len(made) == 3


async def test_a_service_that_always_speaks_first_is_left_after_a_few_connections(monkeypatch):
    async def greeted(self, conn):
        raise transport_module._StaleError

    async def silent(reader, writer):
        await reader.read()

    monkeypatch.setattr(transport_module._Request, "send", greeted)
    async with counting(silent) as (origin, made, still), carrier() as transport:
        with pytest.raises(httpx.RemoteProtocolError, match="before it is asked"):
            await fetch(transport, origin)
        assert len(made) == transport_module.CONNECTIONS
        await eventually(lambda: not still)


async def test_an_address_may_be_of_the_sixth_version():
    try:
        listener = await asyncio.start_server(lambda _, writer: writer.close(), "::1", 0)
    except OSError:
        pytest.skip("needs IPv6")
    port = listener.sockets[0].getsockname()[1]
    async with carrier() as transport:
        with pytest.raises(httpx.RemoteProtocolError, match="without an answer"):
            await fetch(transport, f"http://[::1]:{port}/x?y=1")
    listener.close()
    await asyncio.sleep(0.05)


async def test_an_interim_answer_is_passed_over():
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    async with serving(raw(interim, HEAD + b"Content-Length: 2\r\n\r\n[]")) as server, carrier() as transport:
        assert (await fetch(transport, server.origin))[::2] == (200, b"[]")


async def test_a_header_of_some_kilobytes_is_read():
    handler = says(200, b"[]", {"Content-Security-Policy": "x" * 30_000})
    async with serving(handler) as server, carrier() as transport:
        _, headers, _ = await fetch(transport, server.origin)
    assert len(headers["content-security-policy"]) == 30_000


async def test_nothing_is_inflated_followed_or_kept():
    packed = gzip.compress(b"[]")
    handler = in_turn(
        says(200, packed, {"Content-Encoding": "gzip", "Set-Cookie": "session=1"}),
        says(307, b"", {"Location": "/elsewhere", "Set-Cookie": "session=2"}),
    )
    async with serving(handler) as server, carrier() as transport:
        assert (await fetch(transport, server.origin))[2] == packed
        status, headers, _ = await fetch(transport, server.origin)
        await fetch(transport, server.origin)
    assert (status, headers["location"]) == (307, "/elsewhere")
    assert [seen.target for seen in server.seen] == ["/", "/", "/"]
    assert [seen.headers.get("cookie") for seen in server.seen] == [None, None, None]


async def test_what_goes_out_is_what_was_asked_for_and_nothing_else():
    target = "/a%2Fb/%41/..%2E/c%7Ed?x=%2B1&y=%C3%BC&z=a+b%20c"
    async with serving(GOOD) as server, carrier() as transport:
        await fetch(transport, server.origin.replace("//", "//ann:pw@") + target, headers={"X-Own": "1"})
        await fetch(transport, f"{server.origin}/x", "POST", content=b'{"a":1}')
        await fetch(transport, f"{server.origin}/x", "POST")
    assert server.seen[0].target == target
    assert set(server.seen[0].headers) == {"host", "x-own"}
    assert (server.seen[1].body, server.seen[1].headers["content-length"]) == (b'{"a":1}', "7")
    assert "content-type" not in server.seen[1].headers
    assert server.seen[2].body == b""


@pytest.mark.parametrize(
    "headers",
    [{"X-Bad": "a\r\nX-Evil: 1"}, {"X-Bad": "a\0b"}, {b"X-Bad": b"\xff"}],
    ids=["newline", "nul", "not ascii"],
)
async def test_a_header_that_cannot_be_sent_is_our_own_mistake(headers):
    async with serving(GOOD) as server, carrier() as transport:
        with pytest.raises(httpx.LocalProtocolError):
            await fetch(transport, server.origin, headers=headers)
    assert server.seen == []


@pytest.mark.parametrize("name", ["http_proxy", "ALL_PROXY"])
async def test_no_proxy_of_the_environment_is_heard(monkeypatch, name):
    async with serving(says(200, b'[{"id":"by proxy"}]')) as proxy, serving(GOOD) as server:
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.setenv(name, proxy.origin)
        async with client(server.origin) as octo:
            assert (await octo.send(CALL)).body == b"[]"
        assert proxy.seen == []


async def test_loading_the_transport_is_not_part_of_the_first_call_s_deadline(monkeypatch):
    real = client_module._transport

    def slow(*given, **named):
        time.sleep(0.3)
        return real(*given, **named)

    monkeypatch.setattr(client_module, "_transport", slow)
    async with serving(GOOD) as server, client(server.origin, limits={"deadline": 0.2}) as octo:
        assert (await octo.send(CALL)).body == b"[]"


async def test_a_transport_that_is_handed_in_is_used_and_closed():
    closed = []

    class Mine(httpx.MockTransport):
        async def aclose(self):
            closed.append(True)

    mine = Mine(lambda _: httpx.Response(200, content=b'[{"id":"mine"}]'))
    async with client("https://mine.invalid", extra={"transport": mine}) as octo:
        assert (await octo.send(CALL)).body == b'[{"id":"mine"}]'
    assert closed == [True]


async def test_errors_of_a_closed_client_are_not_mistaken_for_the_service_s(monkeypatch):
    async with serving(GOOD) as server:
        octo = client(server.origin)
        await octo.send(CALL)
        await octo.aclose()
        with pytest.raises((RuntimeError, OctoSyncError)):
            await octo.send(CALL)
    assert len(server.seen) == 1


def test_the_http_library_is_loaded_when_the_first_request_goes_out():
    program = "import sys, octo_sync.app.project, octo_sync.octo.client; print('aiohttp' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"


async def test_a_slow_reader_holds_the_service_back():
    sent = 0

    async def handler(seen, writer):
        nonlocal sent
        writer.write(HEAD + b"\r\n")
        while sent < 2**26:
            writer.write(b" " * 65536)
            await writer.drain()
            sent += 65536

    async with serving(handler) as server, carrier() as transport:
        answer = await transport.handle_async_request(request(server.origin))
        pieces = answer.stream.__aiter__()
        await anext(pieces)
        await asyncio.sleep(0.3)
        assert sent < 2**24
        await pieces.aclose()
        await answer.aclose()


async def test_a_reply_in_small_pieces_arrives_whole():
    pieces = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (b"[", b'{"id":', b'"1"}', b"]")]
    handler = raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *pieces, b"0\r\n\r\n")
    async with serving(handler) as server, client(server.origin) as octo:
        assert (await octo.send(CALL)).body == b'[{"id":"1"}]'
        assert octo.stats.bytes == 12


async def test_bytes_of_refusals_are_counted_too():
    async def handler(seen, writer):
        await reply(writer, 400, b'{"error":"BAD_REQUEST","errorMessage":"no"}')

    async with serving(handler) as server, client(server.origin) as octo:
        with pytest.raises(OctoSyncError):
            await octo.send(CALL)
        assert octo.stats.bytes == 43
