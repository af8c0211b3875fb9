"""What people did on pages is kept with who did it; what the worker has to do waits for it, and wakes it."""

import datetime as dt

from tests.journal.helpers import NOON, HandClock

from octo_sync.journal import Journal


def words(acts):
    return [(act.who, act.act, act.about, act.key, act.text, act.outcome, act.done_at) for act in acts]


def test_what_is_done_at_once_is_written_down(journal: Journal) -> None:
    journal.acts.note("comment", who="Ana", about="ledger", key="b-1", text="Asked them.", outcome="Asked them.")
    journal.acts.note("comment", who="Ben", about="ledger", key="b-2", text="No.", outcome="No.")
    assert words(journal.acts.of("ledger", "b-1")) == [
        ("Ana", "comment", "ledger", "b-1", "Asked them.", "Asked them.", NOON)
    ]
    assert [act.who for act in journal.acts.last(10)] == ["Ben", "Ana"]
    assert [act.who for act in journal.acts.last(1)] == ["Ben"]
    assert journal.acts.waiting("comment") == []


def test_what_the_worker_has_to_do_waits_once_and_wakes_it(journal: Journal, clock: HandClock) -> None:
    before = journal.numbers.last()
    journal.acts.note("sync now", who="Ana")
    woken = journal.numbers.last()
    journal.acts.note("sync now", who="Ben")
    assert woken > before
    assert journal.numbers.last() == woken, "it waits already"
    journal.acts.note("allow deletions", who="Ben", about="acme", key="core.bookings", text="11 of 20.")
    (act,) = journal.acts.waiting("sync now")
    assert (act.who, act.outcome, act.done_at) == ("Ana", "", None)
    clock.forward(60)
    journal.acts.end([act], "54 parts.")
    assert journal.acts.waiting("sync now") == []
    assert words(journal.acts.last(9))[1] == ("Ana", "sync now", "", "", "", "54 parts.", clock.moment)
    journal.acts.note("sync now", who="Ben")
    assert [one.who for one in journal.acts.waiting("sync now")] == ["Ben"]


def test_what_was_done_long_ago_is_forgotten_and_what_waits_is_not(journal: Journal, clock: HandClock) -> None:
    journal.acts.note("comment", who="Ana", text="Old.", outcome="Old.")
    journal.acts.note("sync now", who="Ana")
    clock.forward(86_400)
    journal.acts.note("comment", who="Ana", text="New.", outcome="New.")
    assert journal.acts.prune(NOON + dt.timedelta(hours=1)) == 1
    assert [act.text for act in journal.acts.last(9)] == ["New.", ""]
