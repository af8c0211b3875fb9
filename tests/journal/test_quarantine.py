"""What keeps failing is left alone, listed with its reason, and can be tried again (R11)."""

import pytest
from tests.journal.helpers import NOON, HandClock, booking, bookings, fail

from octo_sync.errors import JournalError
from octo_sync.journal import Journal
from octo_sync.model import Source


def quarantine_one(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    fail(journal, journal.subjects.claim(1, run_id="r")[0], quarantine=True)


def note(journal: Journal, key: str = "b-1", path: str = "$.status", reason: str = "not a text") -> None:
    journal.quarantine.add_record("acme", "bookings", key, path, reason, "r", subject=booking(key))


def test_quarantined_subject_is_left_alone_and_the_others_go_on(journal: Journal) -> None:
    quarantine_one(journal)
    journal.subjects.mark([booking("other")], Source.SCHEDULE)
    assert [claim.subject for claim in journal.subjects.claim(9, run_id="r")] == [booking("other")]
    assert journal.subjects.dirty_count() == 1
    (entry,) = journal.quarantine.entries()
    assert (entry.what, entry.subject, entry.reason) == (
        "subject",
        booking(),
        "ServiceUnavailable: The service is down.",
    )
    assert (entry.count, entry.first_at) == (1, NOON)


@pytest.mark.parametrize(
    ("source", "tried", "attempts"),
    [
        (Source.SCHEDULE, 0, None),
        (Source.TIMER, 0, None),
        (Source.CONFIRM, 1, 1),
        (Source.NOTIFICATION, 1, 1),
        (Source.REPAIR, 1, 1),
        (Source.USER, 1, 0),
    ],
)
def test_news_lifts_a_quarantine_for_one_try_and_a_person_forgives(
    journal: Journal, source: Source, tried: int, attempts: int | None
) -> None:
    quarantine_one(journal)
    journal.subjects.mark([booking()], source)
    claims = journal.subjects.claim(9, run_id="r")
    assert len(claims) == tried
    assert [claim.attempts for claim in claims] == ([] if attempts is None else [attempts])
    assert len(journal.quarantine.entries()) == 1 - tried


def test_mark_made_during_the_failing_fetch_is_tried_before_the_quarantine(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    (claim,) = journal.subjects.claim(1, run_id="r")
    journal.subjects.mark([booking()], Source.NOTIFICATION)
    fail(journal, claim, quarantine=True)
    (again,) = journal.subjects.claim(1, run_id="r")
    assert again.attempts == 1
    fail(journal, again, quarantine=True)
    assert journal.subjects.claim(1, run_id="r") == []
    assert len(journal.quarantine.entries()) == 1


def test_landing_ends_a_quarantine(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    (claim,) = journal.subjects.claim(1, run_id="r")
    fail(journal, claim, quarantine=True)
    assert len(journal.quarantine.entries()) == 1
    journal.subjects.landed([claim], run_id="r")
    assert journal.quarantine.entries() == []


def test_record_seen_again_is_counted_not_listed_twice(journal: Journal, clock: HandClock) -> None:
    note(journal)
    later = clock.forward(60)
    note(journal, reason="still not a text")
    note(journal, path="$.unitItems[0]")
    first, second = journal.quarantine.entries()
    assert (first.count, first.first_at, first.last_at, first.reason) == (2, NOON, later, "still not a text")
    assert (second.path, second.count, second.subject) == ("$.unitItems[0]", 1, booking())


def test_record_that_landed_fine_is_cleared_and_only_that_one(journal: Journal) -> None:
    note(journal)
    note(journal, path="$.unitItems[0]")
    note(journal, key="b-2")
    first, other, second = journal.quarantine.entries()
    journal.quarantine.clear([])
    journal.quarantine.clear([other])
    assert journal.quarantine.entries() == [first, second]
    journal.quarantine.clear([other, second])
    assert journal.quarantine.entries() == [first]


def test_retry_marks_what_the_entries_stand_for(journal: Journal) -> None:
    quarantine_one(journal)
    note(journal, key="b-7")
    retried = journal.quarantine.retry([entry.id for entry in journal.quarantine.entries()])
    assert len(retried) == 2
    assert {(claim.subject, claim.attempts) for claim in journal.subjects.claim(9, run_id="r")} == {
        (booking(), 0),
        (booking("b-7"), 0),
    }
    assert [entry.what for entry in journal.quarantine.entries()] == ["record"]


def test_retry_of_all_is_fine_with_none(journal: Journal) -> None:
    assert journal.quarantine.retry("all") == []
    quarantine_one(journal)
    assert len(journal.quarantine.retry("all")) == 1


def test_dropped_entries_are_off_the_list_and_not_retried(journal: Journal) -> None:
    quarantine_one(journal)
    note(journal)
    note(journal, key="b-2")
    ids = [entry.id for entry in journal.quarantine.entries()]
    assert len(journal.quarantine.drop(ids[:2])) == 2
    assert [entry.key for entry in journal.quarantine.entries()] == ["b-2"]
    assert journal.subjects.dirty_count() == 0


def test_unknown_id_is_named_and_nothing_is_done(journal: Journal) -> None:
    quarantine_one(journal)
    (entry,) = journal.quarantine.entries()
    for act in (journal.quarantine.retry, journal.quarantine.drop):
        with pytest.raises(JournalError, match="subject-999"):
            act([entry.id, "subject-999"])
    assert len(journal.quarantine.entries()) == 1


def test_reasons_are_bounded(journal: Journal) -> None:
    journal.subjects.mark(bookings(1), Source.SCHEDULE)
    (claim,) = journal.subjects.claim(1, run_id="r")
    journal.subjects.failed(claim, error_code="X", message="m" * 10**6, retry_at=None, quarantine=True, run_id="r")
    note(journal, reason="n" * 10**6)
    assert all(len(entry.reason) < 3000 for entry in journal.quarantine.entries())
