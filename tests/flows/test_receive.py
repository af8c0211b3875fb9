"""A delivery is acknowledged when it is durable, and not before; what it marks follows from what it names."""

import asyncio
import json
import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from tests.journal.helpers import NOON, HandClock, availability, booking

from octo_sync.errors import JournalError
from octo_sync.flows.webhooks import receive as module
from octo_sync.flows.webhooks.receive import Inbox, InboxFull, Routing, replay, routed
from octo_sync.journal import Journal, Months
from octo_sync.model import Source, Subject, SubjectKind, Window
from octo_sync.octo.notifications import About, Notification
from octo_sync.pipeline import load

HORIZON = Window(date(2026, 7, 1), date(2026, 9, 15))
PRODUCT = Subject("acme", SubjectKind.PRODUCT, ("p",))
PRODUCTS = Subject("acme", SubjectKind.PRODUCTS)


def pipeline(directory: Path, more: str = ""):
    path = directory / "p.toml"
    path.write_text(
        '[connections.acme]\nbase_url = "http://127.0.0.1:1/octo"\ntoken = { env = "T" }\n'
        'products = { exclude = ["unwanted"] }\n' + more
    )
    return load(path, directory=directory, environ={"T": "x"}, overrides={})


def body(kind="BOOKING_UPDATE", **data) -> bytes:
    return json.dumps({"subscriptionId": "s", "notificationType": kind, "data": data}).encode()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def journal(tmp_path, clock):
    with Journal.open(tmp_path / "journal.sqlite", clock=clock) as journal:
        yield journal


@pytest.fixture
def routing(tmp_path, clock):
    return Routing(pipeline(tmp_path), clock)


@pytest.fixture
async def inbox(journal, routing):
    inbox = Inbox(journal, routing)
    yield inbox
    await inbox.close()


def dirty(journal: Journal) -> set[Subject]:
    return {row.subject for row in journal.subjects.rows() if row.dirty}


# ── routing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def months(*named: str, option: str | None = None, last_look_only: bool = False) -> Months:
    return Months(product="p", option=option, months=named, last_look_only=last_look_only)


def days(first: str | None, last: str | None, option: str | None = None) -> Notification:
    return Notification(
        about=About.AVAILABILITY,
        product="p",
        option=option,
        first=date.fromisoformat(first) if first else None,
        last=date.fromisoformat(last) if last else None,
    )


@pytest.mark.parametrize(
    ("notification", "subjects", "ranges"),
    [
        (Notification(about=About.BOOKING, booking="b-1"), (booking("b-1"),), ()),
        (Notification(about=About.BOOKING), (), ()),
        (Notification(), (), ()),
        (
            Notification(about=About.PRODUCT, product="p"),
            (PRODUCT,),
            (months("2026-07", "2026-08", "2026-09", last_look_only=True),),
        ),
        (Notification(about=About.PRODUCT), (PRODUCTS,), ()),
        (days(None, None), (), (months("2026-07", "2026-08", "2026-09"),)),
        (days(None, None, "o"), (), (months("2026-07", "2026-08", "2026-09", option="o"),)),
        (days("2026-08-31", "2026-09-01"), (), (months("2026-08", "2026-09"),)),
        (days("0001-01-01", "9999-12-31"), (), (months("2026-07", "2026-08", "2026-09"),)),
        (days("0001-01-01", "2026-07-01"), (), (months("2026-07"),)),
        (days("2026-09-15", "9999-12-31"), (), (months("2026-09"),)),
        (days("2026-09-16", "9999-12-31"), (), (months(),)),
        (Notification(about=About.AVAILABILITY), (), ()),
    ],
)
def test_a_notification_marks_what_it_names_within_the_horizon(notification, subjects, ranges):
    assert routed(notification, "acme", horizon=HORIZON) == (subjects, ranges)


@pytest.mark.parametrize("kind", ["PRODUCT_UPDATE", "AVAILABILITY_UPDATE"])
def test_a_product_the_pipeline_leaves_out_is_not_marked(routing, kind):
    item = routing.received("acme", "e", body(kind, productId="unwanted"))

    assert (item.subjects, item.months, item.type, item.reading) == ((), (), kind, "")


def test_a_delivery_carries_its_time_its_words_and_when_to_confirm(routing, clock):
    item = routing.received("acme", "e1", body(uuid="b-1"))

    assert (item.connection, item.endpoint, item.received_at) == ("acme", "e1", NOON)
    assert (item.type, item.subscription, item.reading) == ("BOOKING_UPDATE", "s", "")
    assert item.body == body(uuid="b-1")
    assert item.confirm_at == (NOON + timedelta(seconds=5), NOON + timedelta(seconds=30))


def test_the_horizon_begins_today_at_the_venue(tmp_path):
    clock = HandClock(datetime(2026, 7, 31, 20, 0, tzinfo=UTC))
    made = pipeline(tmp_path, '[horizon]\navailability = "0d..+1d"\n')
    zones = {("acme", "tokyo"): "Asia/Tokyo", ("acme", "nowhere"): "Nowhere/Land"}
    routing = Routing(made, clock, zones)

    def of(product):
        return routing.received("acme", "e", body("AVAILABILITY_UPDATE", productId=product)).months[0].months

    assert of("tokyo") == ("2026-08",)
    assert of("unknown") == of("nowhere") == ("2026-07", "2026-08")
    zones["acme", "unknown"] = "Asia/Tokyo"
    assert of("unknown") == ("2026-08",)


def test_what_cannot_be_read_is_stored_with_its_reason_and_its_bytes(routing):
    packed = routing.received("acme", "e", body(uuid="b"), odd="encoded as gzip")

    assert (packed.subjects, packed.reading, packed.body) == ((), "encoded as gzip", body(uuid="b"))
    assert routing.received("acme", "e", b"\xff").reading == "not JSON"


# ── group commit ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Gate:
    """Holds the journal's transactions until it is opened; remembers how large they were."""

    def __init__(self, journal: Journal, monkeypatch) -> None:
        self.open, self.sizes, self.inside = threading.Event(), [], threading.Event()
        real = journal.inbox.accept

        def receive(items):
            self.inside.set()
            assert self.open.wait(10)
            self.sizes.append(len(items))
            return real(items)

        monkeypatch.setattr(journal.inbox, "accept", receive)


async def test_nothing_is_acknowledged_before_it_is_committed_r1(inbox, journal, monkeypatch):
    gate = Gate(journal, monkeypatch)
    task = asyncio.create_task(inbox.receive("acme", "e", body(uuid="b")))
    await asyncio.to_thread(gate.inside.wait, 10)
    await asyncio.sleep(0.05)
    assert not task.done()
    gate.open.set()
    await task
    assert dirty(journal) == {booking("b")}
    assert len(journal.inbox.deliveries()) == 1


async def test_what_arrives_during_a_commit_shares_the_next_one(inbox, journal, monkeypatch):
    gate = Gate(journal, monkeypatch)
    first = asyncio.create_task(inbox.receive("acme", "e", body(uuid="0")))
    await asyncio.to_thread(gate.inside.wait, 10)
    others = [asyncio.create_task(inbox.receive("acme", "e", body(uuid=f"{n}"))) for n in range(1, 100)]
    await asyncio.sleep(0)
    assert inbox.waiting == 99
    gate.open.set()
    await asyncio.gather(first, *others)
    assert gate.sizes == [1, 99]
    assert len({one.seq for one in journal.inbox.deliveries()}) == 2
    assert dirty(journal) == {booking(f"{n}") for n in range(100)}


async def test_identical_deliveries_are_each_stored_and_acknowledged_r3(inbox, journal):
    await asyncio.gather(*(inbox.receive("acme", "e", body(uuid="same")) for _ in range(20)))
    assert len(journal.inbox.deliveries()) == 20


async def test_when_the_disk_refuses_everybody_who_waits_is_told_and_it_goes_on_afterwards(inbox, journal, monkeypatch):
    def refuse(items):
        raise JournalError("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(journal.inbox, "accept", refuse)
        told = await asyncio.gather(
            *(inbox.receive("acme", "e", body(uuid=f"{n}")) for n in range(5)), return_exceptions=True
        )
        with pytest.raises(JournalError, match="full"):
            await inbox.probe()
    assert [str(error) for error in told] == ["The disk is full."] * 5
    assert all(isinstance(error, JournalError) for error in told)
    await inbox.receive("acme", "e", body(uuid="after"))
    assert dirty(journal) == {booking("after")}
    await inbox.probe()


async def test_a_delivery_that_breaks_our_own_code_does_not_cost_its_neighbours_theirs(inbox, journal, monkeypatch):
    real = journal.inbox.accept

    def receive(items):
        if any(item.body == b"bad" for item in items):
            raise TypeError("a mistake of ours")
        return real(items)

    monkeypatch.setattr(journal.inbox, "accept", receive)
    told = await asyncio.gather(
        *(inbox.receive("acme", "e", each) for each in (body(uuid="a"), b"bad", body(uuid="b"))),
        return_exceptions=True,
    )
    assert [type(each).__name__ for each in told] == ["Received", "JournalError", "Received"]
    assert dirty(journal) == {booking("a"), booking("b")}


async def test_more_than_may_wait_is_refused_at_once(inbox, journal, monkeypatch):
    monkeypatch.setattr(module, "_MOST_WAITING", 3)
    gate = Gate(journal, monkeypatch)
    waiting = [asyncio.create_task(inbox.receive("acme", "e", body(uuid="0")))]
    await asyncio.to_thread(gate.inside.wait, 10)
    waiting += [asyncio.create_task(inbox.receive("acme", "e", body(uuid=f"{n}"))) for n in (1, 2, 3)]
    await asyncio.sleep(0)
    with pytest.raises(InboxFull):
        await inbox.receive("acme", "e", body(uuid="4"))
    gate.open.set()
    await asyncio.gather(*waiting)
    assert len(journal.inbox.deliveries()) == 4


async def test_who_gives_up_waiting_loses_nothing(inbox, journal, monkeypatch):
    gate = Gate(journal, monkeypatch)
    gone = asyncio.create_task(inbox.receive("acme", "e", body(uuid="gone")))
    stays = asyncio.create_task(inbox.receive("acme", "e", body(uuid="stays")))
    await asyncio.to_thread(gate.inside.wait, 10)
    gone.cancel()
    gate.open.set()
    await stays
    assert dirty(journal) == {booking("gone"), booking("stays")}


async def test_listeners_hear_of_what_is_durable_and_cannot_break_receiving(journal, routing):
    heard, sizes = [], []

    def listen(items):
        heard.extend(item.body for item in items)
        assert len(journal.inbox.deliveries()) == len(heard)
        raise RuntimeError("a listener's own trouble")

    inbox = Inbox(journal, routing, on_commit=listen)
    inbox.batches.append(sizes.append)
    for number in range(3):
        await inbox.receive("acme", "e", body(uuid=f"{number}"))
    assert heard == [body(uuid=f"{number}") for number in range(3)]
    assert sizes == [1, 1, 1]
    await inbox.close()


async def test_closing_commits_what_waits_and_refuses_what_comes_later(journal, routing):
    inbox = Inbox(journal, routing)
    waiting = [asyncio.create_task(inbox.receive("acme", "e", body(uuid=f"{n}"))) for n in range(5)]
    await asyncio.sleep(0)
    await inbox.close()
    assert all(task.done() for task in waiting)
    assert len(journal.inbox.deliveries()) == 5
    with pytest.raises(JournalError, match="stopping"):
        await inbox.receive("acme", "e", body(uuid="late"))


async def test_the_write_ahead_log_is_folded_meanwhile(inbox, journal, monkeypatch):
    monkeypatch.setattr(module, "_CHECKPOINT_AFTER", 10)
    size = journal.path.stat().st_size
    for start in range(0, 60, 20):
        await asyncio.gather(*(inbox.receive("acme", "e", b"x" * 20_000) for _ in range(start, start + 20)))
    await inbox.close()
    assert journal.path.stat().st_size > size + 20 * 20_000


# ── what is stored ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pii", ["keep", "hash", "drop"])
async def test_of_a_whole_booking_only_what_was_read_is_stored_and_replayed(journal, tmp_path, clock, pii):
    routing = Routing(replace(pipeline(tmp_path), pii=pii), clock)
    inbox = Inbox(journal, routing)
    old = {"webhook": {"event": "booking_update"}, "booking": {"uuid": "b", "contact": {"fullName": "Zoe Quux"}}}
    await inbox.receive("acme", "e", json.dumps(old).encode())
    await inbox.close()

    (stored,) = journal.inbox.deliveries()
    assert stored.body == b'{"webhook":{"event":"booking_update"},"booking":{"uuid":"b"}}'
    assert (stored.type, stored.reading, stored.marks) == ("BOOKING_UPDATE", "", 1)
    assert replay(journal, routing, since=NOON) == (1, 1)


@pytest.mark.parametrize(("pii", "stored"), [("keep", b"Zoe Quux: b-1"), ("hash", b""), ("drop", b"")])
def test_a_body_that_nobody_can_read_is_stored_while_persons_are_kept(tmp_path, clock, pii, stored):
    routing = Routing(replace(pipeline(tmp_path), pii=pii), clock)

    assert routing.received("acme", "e", b"Zoe Quux: b-1").body == stored
    assert routing.received("acme", "e", b"Zoe Quux: b-1", odd="encoded as gzip").body == stored


# ── replay ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_replay_marks_again_what_deliveries_said_and_stores_nothing(inbox, journal, routing, clock):
    journal.subjects.mark([availability("p", "o", "2026-07")], Source.SCHEDULE)
    await inbox.receive("acme", "e", body(uuid="old"))
    since = clock.forward(60)
    for each in (body(uuid="b"), b"not JSON", body("AVAILABILITY_UPDATE", productId="p", localDate="2026-07-02")):
        await inbox.receive("acme", "e", each)
    await inbox.receive("other", "e2", body(uuid="c"))
    while claims := journal.subjects.claim(99, run_id="r"):
        journal.subjects.landed(claims, run_id="r")
    before = journal.timers.rows()
    clock.forward(3600)

    assert replay(journal, routing, since=since, connection="acme") == (3, 2)

    marked = {row.subject: row.source for row in journal.subjects.rows() if row.dirty}
    assert marked == {booking("b"): Source.USER, availability("p", "o", "2026-07"): Source.USER}
    assert (len(journal.inbox.deliveries()), journal.timers.rows()) == (5, before)
    assert replay(journal, routing, since=since + timedelta(days=1)) == (0, 0)
