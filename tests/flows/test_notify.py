"""A person is told once of what needs one, and again only after it was over."""

import datetime as dt
import json
import stat
import sys
import threading
import time

import pytest
from tests.flows.harness import NOON, Clock

from octo_sync.app.notify import Notifier
from octo_sync.flows.status.notices import KINDS, conditions, events, recall, remember
from octo_sync.flows.status.report import ConnectionStatus, Status, WebhookStatus
from octo_sync.flows.webhooks.canary import Canary
from octo_sync.journal import Journal, QuarantineEntry
from octo_sync.model import Source, Subject, SubjectKind
from octo_sync.pipeline import load


def entry(key="b-1", at=NOON):
    return QuarantineEntry(
        id=f"record-{key}", what="record", connection="acme", resource="bookings", key=key, path="$.x", reason="odd",
        count=1, first_at=at, last_at=at, run_id="r",
    )  # fmt: skip


def state(*, staleness=60.0, owed=0, quarantine=(), told=True, subscription="s-1", canary=None):
    from octo_sync.flows.status.report import KindStatus

    hooks = WebhookStatus(subscription, None, 0, 0, None, canary, None)
    connection = ConnectionStatus(
        "acme", {"bookings": KindStatus("bookings", owed=owed)}, staleness=staleness, was_told=told, webhooks=hooks
    )
    return Status([connection], [], None, list(quarantine), None)


def told(memory, found, *, has_webhooks=True):
    fresh, after = events(memory, conditions(found, stale_after=3600.0, has_webhooks=has_webhooks))
    return [event.kind for event in fresh], after


def test_each_is_told_once_until_it_is_over_and_then_again():
    bad = {
        "stale": state(staleness=3601.0),
        "quarantine": state(quarantine=[entry()]),
        "subscription_lost": state(subscription=None),
        "webhooks_dead": state(canary=Canary(NOON)),
    }
    for kind in KINDS:
        first, memory = told({}, bad[kind])
        again, memory = told(memory, bad[kind])
        over, memory = told(memory, state())
        anew, memory = told(memory, bad[kind])
        assert (first, again, over, anew) == ([kind], [], [], [kind])


def test_nothing_is_told_of_what_is_well_or_was_never_asked_for():
    assert told({}, state())[0] == []
    assert told({}, state(staleness=3600.0))[0] == []
    assert told({}, state(staleness=None))[0] == []
    assert told({}, state(told=False, subscription=None))[0] == [], "it never had one"
    assert told({}, state(subscription=None), has_webhooks=False)[0] == [], "none is wanted"


def test_one_more_in_quarantine_is_news_and_one_less_is_none():
    _, memory = told({}, state(quarantine=[entry("a"), entry("b")]))
    assert told(memory, state(quarantine=[entry("b")]))[0] == []
    assert told(memory, state(quarantine=[entry("a"), entry("b"), entry("c")]))[0] == ["quarantine"]


def test_what_is_tried_again_and_fails_again_is_no_news():
    """A full pull lifts every quarantine; what comes back was never over."""
    _, memory = told({}, state(quarantine=[entry()]))
    again, memory = told(memory, state(owed=1))
    back, memory = told(memory, state(quarantine=[entry()]))
    _, memory = told(memory, state(owed=0))
    anew, _ = told(memory, state(quarantine=[entry()]))
    assert (again, back, anew) == ([], [], ["quarantine"])


def test_a_large_quarantine_is_told_once_and_the_journal_keeps_a_short_note(tmp_path):
    many = [entry(f"{n}") for n in range(5000)]
    first, memory = told({}, state(quarantine=many))
    assert (first, told(memory, state(quarantine=[*many, entry("x")]))[0]) == (["quarantine"], [])
    with Journal.open(tmp_path / "j.sqlite", clock=Clock()) as journal:
        remember(journal, {}, memory)
        assert len(journal.settings.get("told quarantine", connection="acme")) < 100


def test_what_was_told_outlives_a_restart(tmp_path):
    _, memory = told({}, state(quarantine=[entry("a"), entry("b")], staleness=9999.0))
    with Journal.open(tmp_path / "j.sqlite", clock=Clock()) as journal:
        remember(journal, {}, memory)
    with Journal.open(tmp_path / "j.sqlite", clock=Clock()) as journal:
        before = recall(journal, ["acme"])
        assert told(before, state(quarantine=[entry("a"), entry("b")], staleness=9999.0))[0] == []
        _, over = told(before, state())
        remember(journal, before, over)
        assert [journal.settings.get(f"told {kind}", connection="acme") for kind in KINDS] == [None] * len(KINDS)


def test_an_event_says_what_a_person_needs():
    (event,), _ = events({}, conditions(state(quarantine=[entry("b-7")]), stale_after=60.0, has_webhooks=True))
    assert "octo-sync quarantine" in event.text
    assert event.details["entries"] == 1
    assert event.details["newest"] == [{"resource": "bookings", "key": "b-7", "path": "$.x", "reason": "odd"}]


# -- put together ----------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path):
    """A pipeline whose hooks append what they are told to a file, and its journal."""
    script = tmp_path / "hook.py"
    script.write_text("import sys\nopen(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')\n")
    script.chmod(stat.S_IRWXU)
    out = tmp_path / "told.jsonl"
    path = tmp_path / "p.toml"
    path.write_text(
        '[connections.acme]\nbase_url = "https://octo.example.com"\ntoken = { env = "T" }\n[notify]\nstale_after = "1h"\n'
        f'to = "{sys.executable} {script} {out}"\n'
    )
    pipeline = load(path, directory=tmp_path, environ={"T": "x"}, overrides={})
    clock = Clock()
    with Journal.open(pipeline.journal, clock=clock) as journal:
        notifier = Notifier(pipeline, journal, clock)
        notifier.lines = lambda: [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        yield notifier, journal, clock


def test_a_copy_that_became_stale_is_told_to_the_hook_once(project):
    notifier, journal, clock = project
    products = Subject("acme", SubjectKind.PRODUCTS)
    journal.subjects.mark([products], Source.SCHEDULE)
    journal.subjects.landed(journal.subjects.claim(1, run_id="r"), run_id="r")
    notifier.look()
    clock.moment += dt.timedelta(hours=2)
    notifier.look()
    notifier.look()
    notifier.finish(30)

    (document,) = notifier.lines()
    assert (document["event"], document["connection"], document["pipeline"]) == ("stale", "acme", "p")
    assert document["staleness_seconds"] == 7200
    assert "acme" in document["text"]


def test_a_slow_hook_keeps_nobody_waiting(project, monkeypatch):
    notifier, _, _ = project
    begun, go = threading.Event(), threading.Event()
    monkeypatch.setattr("octo_sync.app.hooks.tell", lambda *_, **__: (begun.set(), go.wait(60)))

    before = time.monotonic()
    for number in range(200):
        notifier.tell("stale", "acme", f"{number}")
    assert begun.wait(60)
    notifier.finish(0.05)
    spent = time.monotonic() - before
    go.set()

    assert spent < 20


def test_a_hook_that_breaks_does_not_end_the_thread(project, monkeypatch, caplog):
    notifier, _, _ = project
    calls = []

    def tell(target, document, *, smtp):
        calls.append(document["text"])
        if len(calls) == 1:
            raise RuntimeError("broken")

    monkeypatch.setattr("octo_sync.app.hooks.tell", tell)
    notifier.tell("stale", "acme", "one")
    notifier.tell("stale", "acme", "two")
    notifier.finish(10)
    assert calls == ["one", "two"]
    assert "action=notice_broke" in caplog.text


def test_another_process_that_works_on_the_project_does_the_telling(project, monkeypatch):
    notifier, journal, clock = project
    journal.subjects.mark([Subject("acme", SubjectKind.PRODUCTS)], Source.SCHEDULE)
    clock.moment += dt.timedelta(hours=2)
    journal.leases.take(owner="serve", pid=1, host="elsewhere")
    notifier.look()
    notifier.finish(10)
    assert notifier.lines() == []
    journal.leases.drop(journal.leases.last().fence)
    notifier.look()
    notifier.finish(10)
    assert [line["event"] for line in notifier.lines()] == ["stale"]
