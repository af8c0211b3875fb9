"""What was asked to be forgotten stays asked for, and goes from the journal's own texts."""

from tests.journal.helpers import HandClock, booking, fail

from octo_sync.journal import Journal, Received
from octo_sync.model import Source


def test_an_erasure_is_durable_before_anything_is_deleted_and_known_when_it_is_done(
    journal: Journal, path, clock: HandClock
) -> None:
    before = journal.last_number()
    asked = journal.request_erasure(["hash"], ["uuid", "uuid"])
    assert journal.last_number() > before  # that wakes the owner of the warehouse
    with Journal.open(path, clock=clock) as other:
        assert other.erasures() == [asked]
        assert other.open_erasures() == [asked.id]
        assert other.erasure("0") is None


def test_the_first_who_asks_makes_the_secret(journal: Journal, path, clock: HandClock) -> None:
    with Journal.open(path, clock=clock) as other:
        assert journal.privacy_secret(lambda: "one") == other.privacy_secret(lambda: "two") == "one"


def test_bodies_reasons_and_messages_that_name_somebody_go_and_the_rest_stays(
    journal: Journal, clock: HandClock
) -> None:
    for body in (b"about Ada", b"about Bob"):
        journal.receive(
            [
                Received(
                    subjects=(), months=(), connection="acme", endpoint="e", body=body, received_at=clock.now(),
                    confirm_at=(),
                )
            ]
        )  # fmt: skip
    journal.mark([booking()], Source.USER)
    fail(journal, journal.claim(1, run_id="r")[0], code="Ada")
    journal.quarantine_record("acme", "bookings", "1", "$", "Ada is not a number", "digest", "r")
    journal.quarantine_record("acme", "bookings", "2", "$", "Bob is not a number", "digest", "r")
    assert journal.blank_deliveries(lambda body: b"Ada" in body) == 1
    assert journal.blank_texts(lambda text: "Ada" in text) == 1
    assert [one.body for one in journal.deliveries()] == [b"", b"about Bob"]
    assert [one.reason for one in journal.quarantined()] == ["(erased)", "Bob is not a number"]
    assert journal.compact()
    assert [one.body for one in journal.deliveries()] == [b"", b"about Bob"]
