"""What goes wrong on the wire during one call, and what must come of it."""

import asyncio
import dataclasses
import gzip
import tracemalloc
import zlib

import pytest
from tests.octo.support import TOKEN, client, in_turn, reply, says, serving

from octo_sync.errors import AnswerInvalid, AnswerTooLarge, RequestRefused, ServiceUnavailable
from octo_sync.octo import endpoints
from octo_sync.octo.body import Body, BodyInvalid

CALL = endpoints.products()
RESERVE = endpoints.reserve("p", "o", "a", unit_items=[{"unitId": "adult"}])
GOOD = says(200, b"[]")


def raw(*pieces: bytes, close: bool = True, pause: float = 0.0):
    """Writes exactly these bytes."""

    async def handler(seen, writer):
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if close:
            writer.close()
        else:
            await asyncio.sleep(30)

    return handler


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("status", [500, 502, 503, 504, 506, 507, 508, 510, 511])
async def test_a_server_error_is_tried_again(status):
    async with serving(in_turn(says(status, b"<html>"), GOOD)) as server, client(server.origin) as octo:
        assert (await octo.send(CALL)).body == b"[]"
    assert len(server.seen) == 2


@pytest.mark.parametrize("status", [501, 505, 520])
async def test_other_server_errors_are_not_tried_again(status):
    async with serving(says(status)) as server, client(server.origin) as octo:
        with pytest.raises(ServiceUnavailable):
            await octo.send(CALL)
    assert len(server.seen) == 1


async def test_a_service_that_stays_down_is_given_up_after_the_allowed_attempts():
    body = b'{"error":"INTERNAL_SERVER_ERROR","errorMessage":"it broke","stack":"secret internals"}'
    async with serving(says(500, body)) as server, client(server.origin) as octo:
        with pytest.raises(ServiceUnavailable, match='500 INTERNAL_SERVER_ERROR "it broke"') as caught:
            await octo.send(CALL)
    assert (caught.value.status, caught.value.code) == (500, "INTERNAL_SERVER_ERROR")
    assert "internals" not in str(caught.value)
    assert len(server.seen) == 3


async def test_a_reservation_is_never_sent_twice():
    async with serving(says(503)) as server, client(server.origin) as octo:
        with pytest.raises(ServiceUnavailable):
            await octo.send(RESERVE)
    assert len(server.seen) == 1
    async with serving(raw(HEAD + b"Content-Length: 99\r\n\r\n{")) as server, client(server.origin) as octo:
        with pytest.raises(ServiceUnavailable):
            await octo.send(RESERVE)
    assert len(server.seen) == 1


async def test_a_service_that_is_not_there_is_unavailable():
    async with serving(GOOD) as server:
        pass
    async with client(server.origin) as octo:
        with pytest.raises(ServiceUnavailable, match=r"could not connect .*; check connections\.\w+\.base_url, or try"):
            await octo.send(CALL)


async def test_a_host_that_does_not_exist_is_unavailable():
    async with client("http://nowhere.invalid") as octo:
        with pytest.raises(ServiceUnavailable, match=r"nowhere\.invalid.*; check connections\.\w+\.base_url, or try"):
            await octo.send(CALL)


async def test_a_hanging_service_costs_no_more_than_the_deadline():
    async with serving(raw(close=False)) as server, client(server.origin, limits={"deadline": 0.3}) as octo:
        with pytest.raises(ServiceUnavailable, match=r"within 0\.3 s"):
            await octo.send(CALL)


async def test_one_byte_at_a_time_costs_no_more_than_the_deadline():
    drip = raw(HEAD + b"Content-Length: 100\r\n\r\n[", *[b" "] * 50, pause=0.02, close=False)
    async with serving(drip) as server, client(server.origin, limits={"deadline": 0.3}) as octo:
        with pytest.raises(ServiceUnavailable, match="no whole answer"):
            await octo.send(CALL)


async def test_the_deadline_covers_all_attempts_together():
    slow = {"deadline": 0.4, "attempts": 50, "backoff": 0.05, "backoff_cap": 0.05}
    async with serving(says(503)) as server, client(server.origin, limits=slow) as octo:
        with pytest.raises(ServiceUnavailable):
            await octo.send(CALL)
    assert len(server.seen) < 50


async def test_after_a_timeout_the_connection_still_works():
    handler = in_turn(raw(close=False), GOOD)
    async with serving(handler) as server, client(server.origin, limits={"deadline": 0.2, "concurrency": 1}) as octo:
        with pytest.raises(ServiceUnavailable):
            await octo.send(CALL)
        patient = dataclasses.replace(octo.connection.limits, deadline=60.0)
        octo.connection = dataclasses.replace(octo.connection, limits=patient)
        assert (await octo.send(CALL)).body == b"[]"


@pytest.mark.parametrize(
    "broken",
    [
        raw(HEAD + b"Content-Length: 100\r\n\r\n[1,"),
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n[1,\r\n"),
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n[1,\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nContent-Le"),
        raw(b"SSH-2.0-OpenSSH_9.6\r\n"),
        raw(HEAD + b"Content-Length: ten\r\n\r\n[]"),
        raw(HEAD + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(b"[1, 2, 3]")[:-9]),
        raw(),
    ],
    ids=["short", "chunk missing", "bad chunk", "cut head", "not http", "bad length", "short gzip", "no answer"],
)
async def test_a_broken_answer_is_read_again_and_never_used(broken):
    async with serving(in_turn(broken, GOOD)) as server, client(server.origin) as octo:
        assert (await octo.send(CALL)).body == b"[]"
        assert len(server.seen) == 2
    async with serving(broken) as server, client(server.origin) as octo:
        with pytest.raises(ServiceUnavailable):
            await octo.send(CALL)
        assert len(server.seen) == 3


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<!doctype html><title>Maintenance</title>", "text/html"),
        (b"", "application/json"),
        (b" \n ", "application/json"),
        (b"null", "application/json"),
        (b"\xef\xbb\xbf[]", "application/json"),
        ("[]".encode("utf-16"), "application/json"),
        ("[1]".encode("utf-16-le"), "application/json"),
        ("[1]".encode("utf-16-be"), "application/json"),
    ],
    ids=["html", "empty", "blank", "null", "bom", "utf-16", "utf-16-le", "utf-16-be"],
)
async def test_a_200_with_something_else_than_json_is_invalid(body, kind):
    async with serving(says(200, body, {"Content-Type": kind})) as server, client(server.origin) as octo:
        with pytest.raises(AnswerInvalid, match=rf"answered 200 with something that is not JSON \({kind}") as caught:
            await octo.send(CALL)
    assert caught.value.status == 200
    assert "Maintenance" not in str(caught.value)


async def test_a_content_length_that_is_too_small_leaves_json_that_is_cut_off():
    cut = raw(HEAD + b'Content-Length: 9\r\n\r\n[{"id":"1', b'"}]', pause=0.02)
    async with serving(cut) as server, client(server.origin) as octo:
        with pytest.raises(AnswerInvalid, match="cut off"):
            await octo.send(CALL)


async def test_an_answer_with_more_than_its_content_length_is_never_used():
    # In one piece the parser sees what cannot be the next answer, before it gives out this one.
    for more in (b'[{"id":"1"}]', b"[       ]x", b"[       ][       ]"):
        long = raw(HEAD + b"Content-Length: 9\r\n\r\n" + more)
        async with serving(long) as server, client(server.origin) as octo:
            with pytest.raises(ServiceUnavailable, match="cannot be read"):
                await octo.send(CALL)
            assert len(server.seen) == 3


async def test_a_body_that_ends_with_the_connection_is_checked_for_its_end():
    async with serving(raw(HEAD + b'\r\n[{"id":"1"},{"id')) as server, client(server.origin) as octo:
        with pytest.raises(AnswerInvalid, match="cut off"):
            await octo.send(CALL)


async def test_an_object_where_a_list_is_promised_is_invalid():
    async with serving(says(200, b'{"products":[]}')) as server, client(server.origin) as octo:
        with pytest.raises(AnswerInvalid, match="an object where a list is promised"):
            await octo.send(CALL)


async def test_an_error_object_with_200_is_not_an_answer():
    body = b'{"error":"INVALID_PRODUCT_ID","errorMessage":"no such product","productId":"p"}'
    async with serving(says(200, body)) as server, client(server.origin) as octo:
        with pytest.raises(AnswerInvalid, match="INVALID_PRODUCT_ID"):
            await octo.send(endpoints.product("p"))


@pytest.mark.parametrize("status", [202, 204, 206, 299])
async def test_only_200_and_201_are_whole_answers(status):
    body = b"" if status == 204 else b"[]"
    async with serving(says(status, body)) as server, client(server.origin) as octo:
        with pytest.raises(AnswerInvalid, match=str(status)):
            await octo.send(CALL)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity", "GZIP", "x-gzip", "raw deflate", "two members"])
async def test_compressed_answers_are_inflated(encoding):
    body = b'[{"id":"%s"}]' % (b"x" * 500_000)
    packers = {
        "deflate": (zlib.compress, "deflate"),
        "identity": (bytes, "identity"),
        "raw deflate": (lambda data: (c := zlib.compressobj(wbits=-15)).compress(data) + c.flush(), "deflate"),
        "two members": (lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]) + b"\0\0", "gzip"),
    }
    pack, name = packers.get(encoding, (gzip.compress, encoding))
    handler = says(200, pack(body), {"Content-Encoding": name})
    async with serving(handler) as server, client(server.origin, limits={"max_inflation": 2000}) as octo:
        assert (await octo.send(CALL)).body == body


@pytest.mark.parametrize("name", ["br", "zstd", "gzip, gzip"])
async def test_an_encoding_nobody_asked_for_is_invalid(name):
    async with serving(says(200, b"[]", {"Content-Encoding": name})) as server, client(server.origin) as octo:
        with pytest.raises(AnswerInvalid, match="not asked for"):
            await octo.send(CALL)


async def test_rubbish_that_claims_to_be_gzip_is_invalid():
    async with serving(says(200, b"[]" * 9, {"Content-Encoding": "gzip"})) as server, client(server.origin) as octo:
        with pytest.raises(AnswerInvalid, match="not valid gzip"):
            await octo.send(CALL)


@pytest.mark.parametrize("wbits", [31, 15, -15], ids=["gzip", "zlib", "raw"])
def test_the_last_bytes_are_inflated_also_when_all_input_was_taken_in_before(wbits):
    for size in range(262_380, 262_420):
        packer = zlib.compressobj(wbits=wbits)
        packed = packer.compress(b"a" * size) + packer.flush()
        body = Body("gzip" if wbits == 31 else "deflate", max_size=10**9, max_inflation=10**9)
        body.feed(packed)
        assert body.finish() == b"a" * size


def test_a_body_of_many_encodings_is_refused_at_once():
    with pytest.raises(BodyInvalid):
        Body("br", max_size=1, max_inflation=1)


def _bomb(mebibytes: int) -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join([packer.compress(b" " * 2**20) for _ in range(mebibytes)]) + packer.flush()


async def test_a_gzip_bomb_is_stopped_with_little_memory():
    bomb = _bomb(200)
    assert len(bomb) < 250_000
    handler = says(200, bomb, {"Content-Encoding": "gzip"})
    async with serving(handler) as server, client(server.origin) as octo:
        tracemalloc.start()
        with pytest.raises(AnswerTooLarge, match="200 times its compressed size"):
            await octo.send(CALL)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 32 * 2**20


async def test_a_bomb_in_an_error_body_is_stopped_and_the_status_counts():
    handler = says(400, _bomb(64), {"Content-Encoding": "gzip"})
    async with serving(handler) as server, client(server.origin) as octo:
        tracemalloc.start()
        with pytest.raises(RequestRefused, match="400"):
            await octo.send(CALL)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 8 * 2**20


async def test_a_declared_10_gb_body_is_not_even_begun():
    async with serving(raw(HEAD + b"Content-Length: 10000000000\r\n\r\n[")) as server, client(server.origin) as octo:
        with pytest.raises(AnswerTooLarge, match="larger than 268,435,456 bytes; ask for a smaller window"):
            await octo.send(CALL)
    assert len(server.seen) == 1


@pytest.mark.parametrize("framing", [b"", b"Transfer-Encoding: chunked\r\n"])
async def test_an_endless_body_is_left_at_the_cap(framing):
    sent = 0

    async def handler(seen, writer):
        nonlocal sent
        writer.write(HEAD + framing + b"\r\n")
        piece = b" " * 65536
        try:
            while True:
                writer.write(b"10000\r\n%s\r\n" % piece if framing else piece)
                await writer.drain()
                sent += len(piece)
        except ConnectionError:
            pass

    async with serving(handler) as server, client(server.origin, limits={"max_body": 3_000_000}) as octo:
        tracemalloc.start()
        with pytest.raises(AnswerTooLarge):
            await octo.send(CALL)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert sent < 16_000_000
    assert peak < 8_000_000


async def test_an_endless_error_body_is_left_soon():
    async def handler(seen, writer):
        writer.write(b"HTTP/1.1 404 Not Found\r\n\r\n")
        while True:  # until the client hangs up
            writer.write(b" " * 65536)
            await writer.drain()

    async with serving(handler) as server, client(server.origin) as octo:
        with pytest.raises(RequestRefused, match="404"):
            await octo.send(CALL)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed_and_the_token_stays_here(status):
    async with serving(GOOD) as other:
        target = {"Location": f"{other.origin}/octo/v1/products?x=1"}
        async with serving(says(status, b"", target)) as server, client(server.origin) as octo:
            with pytest.raises(RequestRefused, match=f"a redirect to {other.origin}; ") as caught:
                await octo.send(CALL)
        assert caught.value.status == status
        assert other.seen == []
        assert TOKEN not in str(caught.value)


async def test_a_redirect_to_rubbish_is_refused_too():
    for location in ({}, {"Location": "http://[::1"}, {"Location": "//user:pw@evil.example/x"}):
        async with serving(says(302, b"", location)) as server, client(server.origin) as octo:
            with pytest.raises(RequestRefused, match="redirect") as caught:
                await octo.send(CALL)
            assert "user" not in str(caught.value)


async def test_a_body_that_is_not_json_inside_is_invalid_when_it_is_decoded():
    for body in (b"[1,]", b"[" * 100_000 + b"]" * 100_000, b'["\xff"]', b"[NaN]", b'{"a":"\\ud800"}'):
        call = endpoints.list_subscriptions()
        async with serving(says(200, body)) as server, client(server.origin) as octo:
            answer = await octo.send(call)
            with pytest.raises(AnswerInvalid, match="not JSON"):
                answer.json()


async def test_a_slow_answer_does_not_hold_back_others():
    held, go = asyncio.Event(), asyncio.Event()

    async def handler(seen, writer):
        if seen.number == 2:
            held.set()
            await go.wait()
        await reply(writer, 200, b"[]")

    async with serving(handler) as server, client(server.origin) as octo:
        await octo.send(CALL)
        slow = asyncio.create_task(octo.send(CALL))
        await held.wait()
        await octo.send(CALL)
        go.set()
        await slow


async def test_ten_megabytes_arrive_whole():
    body = b'[{"id":"%s"}]' % (b"x" * 10_000_000)
    async with serving(says(200, body)) as server, client(server.origin) as octo:
        assert (await octo.send(CALL)).body == body
