"""What was asked to be forgotten stays asked for, and goes from the journal's own texts."""

import dataclasses

from tests.journal.helpers import HandClock, booking, fail

from octo_sync.journal import Erased, Journal, Received
from octo_sync.model import Source


def test_an_erasure_is_durable_before_anything_is_deleted_and_known_when_it_is_done(
    journal: Journal, path, clock: HandClock
) -> None:
    before = journal.numbers.last()
    asked = journal.erasures.request(["hash"], ["uuid", "uuid"])
    assert journal.numbers.last() > before  # that wakes the owner of the warehouse
    with Journal.open(path, clock=clock) as other:
        assert other.erasures.rows() == [asked]
        assert other.erasures.open_ids() == [asked.id]
        assert other.erasures.find("0") is None


def test_the_first_who_asks_makes_the_secret(journal: Journal, path, clock: HandClock) -> None:
    with Journal.open(path, clock=clock) as other:
        assert journal.erasures.secret(lambda: "one") == other.erasures.secret(lambda: "two") == "one"


def test_a_restored_journal_keeps_its_key_and_takes_over_what_was_asked_for_since_and_nothing_twice(
    journal: Journal, clock: HandClock
) -> None:
    journal.erasures.secret(lambda: "aa")
    before = journal.erasures.request(["hash"], [])
    clock.forward(1)
    since = dataclasses.replace(
        before, id="7", requested_at=clock.now(), contacts=(("c", "b", ""),), done_at=clock.now(), left=("x",)
    )

    journal.erasures.erase_again(Erased("aa", (before, since)))
    journal.erasures.erase_again(Erased("aa", (dataclasses.replace(since, id="8"),)))

    first, taken = journal.erasures.rows()
    assert first == before
    assert int(taken.id) > int(before.id), "an id of its own"
    assert taken == dataclasses.replace(since, id=taken.id, done_at=None, left=())
    assert journal.erasures.erased().secret == "aa"


def test_hashes_of_another_key_keep_it_and_an_id_that_is_used_twice_costs_no_erasure(
    journal: Journal, clock: HandClock
) -> None:
    journal.erasures.secret(lambda: "aa")
    own = journal.erasures.request(["hash"], [])
    foreign = dataclasses.replace(own, people=("other",))

    journal.erasures.erase_again(Erased("bb", (foreign, own)))

    kept, *taken = journal.erasures.rows()
    assert kept == own
    assert [(e.people, e.key) for e in taken] == [(("other",), "bb"), (("hash",), "bb")]
    assert "bb" not in repr(taken)
    assert journal.erasures.secret(lambda: "cc") == "aa"
    # Restored over the project that the key came from, it is its own again.
    again = journal.erasures.erased()
    journal.erasures.erase_again(again)
    assert [e.id for e in journal.erasures.rows()] == [e.id for e in again.erasures]


def test_a_journal_without_a_key_takes_the_other_ones(journal: Journal, clock: HandClock) -> None:
    asked = dataclasses.replace(journal.erasures.request([], ["uuid"]), people=("hash",), bookings=())

    journal.erasures.erase_again(Erased("bb", (asked,)))

    assert journal.erasures.secret(lambda: "cc") == "bb"
    assert [e.key for e in journal.erasures.rows()] == [None, None]


def test_bodies_reasons_and_messages_that_name_somebody_go_and_the_rest_stays(
    journal: Journal, clock: HandClock
) -> None:
    for body in (b"about Ada", b"about Bob"):
        journal.inbox.accept(
            [
                Received(
                    subjects=(), months=(), connection="acme", endpoint="e", body=body, received_at=clock.now(),
                    confirm_at=(),
                )
            ]
        )  # fmt: skip
    journal.subjects.mark([booking()], Source.USER)
    fail(journal, journal.subjects.claim(1, run_id="r")[0], code="Ada")
    journal.quarantine.add_record("acme", "bookings", "1", "$", "Ada is not a number", "r")
    journal.quarantine.add_record("acme", "bookings", "2", "$", "Bob is not a number", "r")
    assert journal.inbox.blank(lambda body: b"Ada" in body) == 1
    for text in ("Ada called.", "Bob called."):
        journal.acts.note("comment", who="Eve", about="ledger", key="b-1", text=text, outcome="Noted.")
    assert journal.erasures.blank_texts(lambda text: "Ada" in text) == 2
    assert [one.body for one in journal.inbox.deliveries()] == [b"", b"about Bob"]
    assert [one.reason for one in journal.quarantine.entries()] == ["(erased)", "Bob is not a number"]
    assert [act.text for act in journal.acts.last(2)] == ["Bob called.", "(erased)"]
    assert journal.compact()
    assert [one.body for one in journal.inbox.deliveries()] == [b"", b"about Bob"]
