"""Deliveries over a socket: who is let in, what is stored, what is answered."""

import asyncio
import gzip
import hashlib
import json
from itertools import pairwise

import pytest
from tests.receiver.conftest import booking_body, post
from tests.receiver.process import ENDPOINT, SECRET

from octo_sync.errors import JournalError
from octo_sync.model import Subject, SubjectKind
from octo_sync.receiver import endpoints as cache
from octo_sync.receiver import routes as module

APART = 0.2


@pytest.fixture(autouse=True)
def _looks_follow_sooner(monkeypatch):
    """A second between two looks into the journal would be waited for by each test of an address that is not known."""
    monkeypatch.setattr(cache, "_APART", APART)


def bodies(running):
    return [one.body for one in running.journal.inbox.deliveries(1000)]


# ── stored, then acknowledged ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_delivery_is_stored_and_marked_and_answered_with_an_empty_200(receiver):
    running = await receiver()
    answer = await running.ask(post(booking_body("b-7")))
    assert (answer.status, answer.body) == (200, b"")
    (stored,) = running.journal.inbox.deliveries()
    assert (stored.connection, stored.endpoint, stored.body) == ("acme", ENDPOINT, booking_body("b-7"))
    assert [row.subject for row in running.journal.subjects.rows()] == [Subject("acme", SubjectKind.BOOKING, ("b-7",))]
    assert running.deliveries("stored") == 1


@pytest.mark.deep(0.1, everyday=2)
@pytest.mark.parametrize("path", [f"/{ENDPOINT}", f"/hooks/{ENDPOINT}", f"/a/b/c/{ENDPOINT}", f"/x/{ENDPOINT}?a=b"])
async def test_a_proxy_may_keep_or_strip_any_prefix(receiver, path):
    running = await receiver()
    assert (await running.ask(post(booking_body(), path=path))).status == 200


async def test_a_connection_serves_one_delivery_after_the_other(receiver):
    running = await receiver()
    client = await running.client()
    for number in range(20):
        assert (await client.ask(post(booking_body(f"{number}")))).status == 200
    assert bodies(running) == [booking_body(f"{number}") for number in range(20)]


async def test_a_body_may_come_in_pieces_and_in_chunks(receiver):
    running = await receiver()
    client = await running.client()
    raw = post(booking_body())
    for start in range(0, len(raw), 7):
        await client.say(raw[start : start + 7])
        await asyncio.sleep(0)
    assert (await client.answer()).status == 200
    head = post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunks = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in booking_body("chunked"))
    assert (await client.ask(head + chunks + b"0\r\n\r\n")).status == 200
    assert bodies(running) == [booking_body(), booking_body("chunked")]


async def test_identical_bodies_are_each_stored_counted_and_mark_again_r3(receiver):
    running = await receiver()
    client = await running.client()
    for _ in range(3):
        assert (await client.ask(post(booking_body()))).status == 200
    assert bodies(running) == [booking_body()] * 3
    assert len({one.seq for one in running.journal.inbox.deliveries()}) == 3
    assert running.deliveries("stored") == 3


@pytest.mark.deep(0.1, everyday=3)
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"not JSON",
        b"null",
        b"[" * 60_000,
        b'{"data":{"uuid":"\xff"}}',
        b"\xff\xfe\x00",
        booking_body().decode().encode("utf-16"),
        b'{"notificationType":"SOMETHING_NEW","data":{}}',
        b'{"notificationType":"BOOKING_UPDATE","data":{"uuid":null}}',
        b'{"id":1,"event":""}',
    ],
)
async def test_odd_but_authentic_bodies_are_stored_counted_and_answered_200(receiver, raw):
    running = await receiver()
    assert (await running.ask(post(raw))).status == 200
    (stored,) = running.journal.inbox.deliveries()
    assert stored.body == raw
    assert stored.reading
    assert running.deliveries("odd") == 1


async def test_a_packed_body_is_stored_as_it_is_and_never_unpacked(receiver):
    running = await receiver()
    bomb = gzip.compress(b'{"x":"' + b"a" * 10_000_000 + b'"}')
    assert (await running.ask(post(bomb, b"Content-Encoding: gzip"))).status == 200
    (stored,) = running.journal.inbox.deliveries()
    assert (stored.body, stored.reading, stored.marks) == (bomb, "encoded as gzip", 0)
    assert (await running.ask(post(booking_body(), b"Content-Encoding: identity"))).status == 200
    assert running.deliveries("stored") == 1


async def test_nothing_of_a_delivery_but_its_ids_reaches_the_marks_r4(receiver):
    running = await receiver()
    body = {"notificationType": "BOOKING_UPDATE", "data": {"uuid": "b", "status": "CANCELLED", "priority": 99}}
    await running.ask(post(json.dumps(body).encode()))
    (row,) = running.journal.subjects.rows()
    assert row.subject.parts == ("b",)


async def test_the_first_delivery_to_an_address_is_noted(receiver):
    running = await receiver()
    assert running.journal.endpoints.rows()[0].seen_at is None
    await running.ask(post(booking_body()))
    await running.endpoints.close()
    (row,) = running.journal.endpoints.rows()
    assert row.seen_at is not None
    assert (row.state, row.subscription_id) == ("active", "s-1")


# ── refused before the body is read ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.deep(0.1, everyday=2)
@pytest.mark.parametrize(
    "secret", [None, b"", b"wrong", SECRET[:-1], SECRET + b"x", SECRET.upper(), b"caf\xc3\xa9", b"x" * 8000]
)
async def test_a_wrong_secret_is_401_and_nothing_is_stored(receiver, secret):
    running = await receiver()
    answer = await running.ask(post(booking_body(), secret=secret))
    assert (answer.status, answer.body) == (401, b"")
    assert (bodies(running), list(running.journal.subjects.rows())) == ([], [])
    assert running.deliveries("unauthorized", connection="") == 1


@pytest.mark.deep(0.1, everyday=2)
@pytest.mark.parametrize("path", ["/", "/hooks/", "/hooks/" + "f" * 32, f"/hooks/{ENDPOINT}/", f"/hooks/{ENDPOINT}x"])
async def test_the_right_secret_at_another_address_is_401_too(receiver, path):
    running = await receiver()
    assert (await running.ask(post(booking_body(), path=path))).status == 401
    assert bodies(running) == []


async def test_two_secrets_are_none(receiver):
    running = await receiver()
    right = b"X-Octo-Sync-Secret: " + SECRET
    for first, second in ((b"X-Octo-Sync-Secret: wrong", SECRET), (right, b"wrong"), (right, SECRET)):
        assert (await running.ask(post(booking_body(), first, secret=second))).status == 401


@pytest.mark.deep(1)
async def test_a_retired_address_is_refused_and_two_of_one_connection_are_both_open(receiver, monkeypatch):
    running = await receiver()
    running.journal.endpoints.add("n" * 32, connection="acme", secret_hash=hashlib.sha256(b"new").hexdigest())
    for path, secret in ((f"/{ENDPOINT}", SECRET), (f"/{'n' * 32}", b"new")):
        assert (await running.ask(post(booking_body(), path=path, secret=secret))).status == 200
    monkeypatch.setattr("octo_sync.receiver.endpoints._REREAD_AFTER", 0.0)
    running.journal.endpoints.retire([ENDPOINT])
    await running.ask(post(booking_body(), path=f"/{'n' * 32}", secret=b"new"))
    await running.endpoints.close()
    assert (await running.ask(post(booking_body()))).status == 401


async def test_forged_deliveries_are_refused_from_the_headers_alone(receiver):
    """The application never asks for the body: the answer is there while the body is still to come."""
    running = await receiver()
    client = await running.client()
    answer = await client.ask(post(b"", secret=b"wrong", length=50_000))
    assert (answer.status, answer.headers["connection"]) == (401, "close")
    assert await client.ended()

    asked = []

    async def receive():
        asked.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    sent = []

    async def send(message):
        sent.append(message)

    app = module.Receiver(running.inbox, running.endpoints, running_limits())
    scope = {"type": "http", "method": "POST", "path": f"/{ENDPOINT}", "headers": [(b"x-octo-sync-secret", b"wrong")]}
    await app(scope, receive, send)
    assert (asked, sent[0]["status"]) == ([], 401)


def running_limits():
    from octo_sync.pipeline import WebhookSettings

    return WebhookSettings()


@pytest.mark.deep(1)
async def test_a_hundred_wrong_secrets_are_one_note_at_the_address(receiver):
    running = await receiver()
    noted = []
    real = running.journal.endpoints.refused
    running.journal.endpoints.refused = lambda endpoints: noted.append(list(endpoints)) or real(endpoints)
    for _ in range(100):
        await running.ask(post(b"", secret=b"wrong"))
    await running.ask(post(b"", path="/unknown", secret=b"wrong"))
    await running.endpoints.close()
    assert noted == [[ENDPOINT]]
    assert running.journal.endpoints.rows()[0].refused_at is not None


async def test_strangers_cannot_make_it_read_the_journal_more_often_than_it_wants(receiver, monkeypatch):
    monkeypatch.setattr(cache, "_REREAD_AFTER", 3600.0)
    running = await receiver()
    reads = []
    real = running.journal.endpoints.rows
    # When the look before began, by the loop's clock: when this one does depends on when its thread is let run.
    running.journal.endpoints.rows = lambda: reads.append(running.endpoints._tried_at) or real()
    for number in range(50):  # these cannot be addresses
        assert (await running.ask(post(b"", path=f"/{number}"))).status == 401
    assert len(reads) <= 1
    for _ in range(2):
        strangers = [running.ask(post(b"", path=f"/hooks/{number:032}")) for number in range(50)]
        assert {answer.status for answer in await asyncio.gather(*strangers)} == {401}
    assert len(reads) > 2
    assert all(after - before > 0.9 * APART for before, after in pairwise(reads))


@pytest.mark.parametrize("known", [1, 0])
async def test_a_delivery_to_an_address_opened_just_now_is_taken(receiver, known):
    """However soon after a rotation it comes, and however many strangers have just asked."""
    running = await receiver()
    for _ in range(known):
        assert (await running.ask(post(booking_body()))).status == 200
    assert (await running.ask(post(b"", path="/hooks/" + "f" * 32))).status == 401
    running.journal.endpoints.add("n" * 32, connection="acme", secret_hash=hashlib.sha256(b"new").hexdigest())
    deliveries = [running.ask(post(booking_body(), path=f"/{'n' * 32}", secret=b"new")) for _ in range(3)]
    assert [answer.status for answer in await asyncio.gather(*deliveries)] == [200] * 3


async def test_an_address_that_nobody_can_look_up_is_503_and_found_when_it_can(receiver, monkeypatch):
    running = await receiver()
    assert (await running.ask(post(booking_body()))).status == 200
    running.journal.endpoints.add("n" * 32, connection="acme", secret_hash=hashlib.sha256(b"new").hexdigest())
    new = post(booking_body(), path=f"/{'n' * 32}", secret=b"new")

    def refuse():
        raise JournalError("locked")

    with monkeypatch.context() as patched:
        patched.setattr(running.journal.endpoints, "rows", refuse)
        answers = await asyncio.gather(running.ask(new), running.ask(new))
        assert [(answer.status, answer.headers["retry-after"]) for answer in answers] == [(503, "5")] * 2
        assert (await running.ask(post(booking_body()))).status == 200  # what was open stays open
        assert (await running.ask(post(b"", path="/hooks/unknown"))).status == 401
    assert (await running.ask(new)).status == 200


# ── sizes ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_body_of_the_limit_is_taken_and_one_byte_more_is_413(receiver):
    running = await receiver()
    assert (await running.ask(post(b"x" * 65_536))).status == 200
    assert (await running.ask(post(b"x" * 65_537))).status == 413
    head = post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    assert (await running.ask(head + chunk * 3 + b"0\r\n\r\n")).status == 413
    assert bodies(running) == [b"x" * 65_536]
    assert running.deliveries("too_large") == 2


async def test_a_body_that_is_announced_too_large_is_not_waited_for(receiver):
    running = await receiver()
    client = await running.client()
    assert (await client.ask(post(b"", length=10**10))).status == 413
    assert await client.ended()


async def test_a_sender_who_hangs_up_in_the_middle_leaves_nothing(receiver):
    running = await receiver()
    client = await running.client()
    await client.say(post(booking_body(), length=5000))
    await asyncio.sleep(0.05)
    await client.close()
    for _ in range(100):
        await asyncio.sleep(0.01)
        if running.deliveries("cut"):
            break
    assert running.deliveries("cut") == 1
    assert bodies(running) == []


# ── when the journal cannot be written ────────────────────────────────────────────────────────────────────────────────


async def test_a_failing_journal_is_503_with_retry_after_and_it_resumes_alone(receiver, monkeypatch):
    running = await receiver()
    assert (await running.get("/readyz")).status == 200

    def refuse(items):
        raise JournalError("The journal cannot grow because the disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(running.journal.inbox, "accept", refuse)
        patched.setattr(module, "_PROBED_FOR", 0.0)
        answer = await running.ask(post(booking_body()))
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        ready = await running.get("/readyz")
        assert (ready.status, ready.headers["retry-after"]) == (503, "5")
        assert b"disk is full" in ready.body
        assert (await running.get("/livez")).status == 200
    monkeypatch.setattr(module, "_PROBED_FOR", 0.0)
    assert running.deliveries("failed") == 1
    assert (await running.ask(post(booking_body()))).status == 200
    assert (await running.get("/readyz")).status == 200
    assert bodies(running) == [booking_body()]


async def test_a_journal_that_became_read_only_is_503_and_it_resumes_alone(receiver):
    running = await receiver()
    assert (await running.ask(post(booking_body("before")))).status == 200
    await running.endpoints.close()  # the note that it was seen would meet the fault first, and mend it
    running.journal._connection.exec_driver_sql("PRAGMA query_only=1")
    assert (await running.ask(post(booking_body("during")))).status == 503
    assert (await running.ask(post(booking_body("after")))).status == 200
    assert bodies(running) == [booking_body("before"), booking_body("after")]


@pytest.mark.deep(1)
async def test_while_nobody_can_be_told_from_anybody_it_is_503_too(receiver, monkeypatch):
    running = await receiver()

    def refuse():
        raise JournalError("locked")

    with monkeypatch.context() as patched:
        patched.setattr(running.journal.endpoints, "rows", refuse)
        assert (await running.ask(post(booking_body()))).status == 503
    assert (await running.ask(post(booking_body()))).status == 200
    with monkeypatch.context() as patched:
        patched.setattr(running.journal.endpoints, "rows", refuse)
        patched.setattr("octo_sync.receiver.endpoints._REREAD_AFTER", 0.0)
        for _ in range(3):  # what was open stays open
            assert (await running.ask(post(booking_body()))).status == 200
            await running.endpoints.close()


async def test_too_many_waiting_is_503(receiver, monkeypatch):
    running = await receiver()
    monkeypatch.setattr("octo_sync.flows.webhooks.receive._MOST_WAITING", 0)
    answer = await running.ask(post(booking_body()))
    assert (answer.status, "retry-after" in answer.headers) == (503, True)
    assert running.deliveries("busy") == 1


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_metrics_tell_what_was_received(receiver):
    running = await receiver()
    await running.ask(post(booking_body()))
    await running.ask(post(b"odd"))
    await running.ask(post(b"", secret=b"wrong"))
    page = await running.get("/metrics")
    lines = page.body.decode().splitlines()
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'octo_sync_deliveries_total{connection="acme",result="stored"} 1.0' in lines
    assert 'octo_sync_deliveries_total{connection="acme",result="odd"} 1.0' in lines
    assert 'octo_sync_deliveries_total{connection="",result="unauthorized"} 1.0' in lines
    assert "octo_sync_acknowledge_seconds_count 2.0" in lines
    assert "octo_sync_commit_deliveries_count 2.0" in lines
    assert 'octo_sync_backlog_subjects{connection="acme",kind="booking"} 1.0' in lines


async def test_readiness_is_looked_at_once_a_second_however_often_it_is_asked(receiver):
    running = await receiver()
    probes = []
    real = running.inbox.probe

    async def probe():
        probes.append(True)
        await real()

    running.inbox.probe = probe
    for answer in await asyncio.gather(*(running.get("/readyz") for _ in range(20))):
        assert answer.status == 200
    assert len(probes) == 1


async def test_two_receivers_in_one_process_do_not_share_their_counts(receiver):
    first = await receiver()
    second = await receiver(journal=first.journal)
    await first.ask(post(booking_body()))
    assert (first.deliveries("stored"), second.deliveries("stored")) == (1, 0)


@pytest.mark.deep(0.1, everyday=2)
@pytest.mark.parametrize(("path", "status"), [("/", 404), (f"/hooks/{ENDPOINT}", 404), ("/docs", 404), ("/livez", 200)])
async def test_other_requests_learn_nothing(receiver, path, status):
    running = await receiver()
    assert (await running.get(path)).status == status
