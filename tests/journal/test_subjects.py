"""Marking, claiming, landing: what the journal promises about what is owed."""

import threading
from datetime import datetime, timedelta

import pytest
from tests.journal.helpers import NOON, HandClock, availability, booking, bookings, fail, plan

from octo_sync.errors import JournalError
from octo_sync.journal import Journal
from octo_sync.journal.models import SubjectRow
from octo_sync.model import Claim, Source, Subject, SubjectKind


def row(journal: Journal, subject: Subject) -> SubjectRow:
    return next(one for one in journal.subjects.rows() if one.subject == subject)


def error(journal: Journal) -> tuple[str | None, str | None]:
    found = row(journal, booking())
    return found.error_code, found.error_message


def claim_one(journal: Journal, run_id: str = "r") -> Claim:
    (claim,) = journal.subjects.claim(1, run_id=run_id)
    return claim


def test_marked_subject_is_claimed_and_clean_after_its_landing(journal: Journal) -> None:
    number = journal.subjects.mark([booking()], Source.USER)
    claim = claim_one(journal)
    assert claim == Claim(booking(), number, 0, Source.USER)
    journal.subjects.landed([claim], run_id="r")
    assert journal.subjects.dirty_count() == 0
    assert journal.subjects.claim(9, run_id="r") == []
    landed = row(journal, booking())
    assert (landed.landed_seq, landed.landed_at, landed.run_id, landed.dirty) == (number, NOON, "r", False)


def test_mark_during_the_fetch_keeps_the_subject_dirty_r2(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    claim = claim_one(journal)
    later = journal.subjects.mark([booking()], Source.NOTIFICATION)
    journal.subjects.landed([claim], run_id="r")
    again = claim_one(journal)
    assert (again.wanted_seq, again.source) == (later, Source.NOTIFICATION)
    journal.subjects.landed([again], run_id="r")
    assert journal.subjects.dirty_count() == 0


def test_after_a_landing_the_age_of_what_is_still_owed_counts_from_the_claim(
    journal: Journal, clock: HandClock
) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    claimed_at = clock.forward(60)
    claim = claim_one(journal)
    clock.forward(60)
    journal.subjects.mark([booking()], Source.SCHEDULE)
    journal.subjects.landed([claim], run_id="r")
    assert journal.subjects.kind_counts("acme", clock.now())[0].oldest_mark == claimed_at


def test_late_landing_never_takes_back_a_newer_one(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    old = claim_one(journal)
    journal.subjects.release([old])
    journal.subjects.mark([booking()], Source.SCHEDULE)
    new = claim_one(journal)
    journal.subjects.landed([new], run_id="new")
    journal.subjects.landed([old], run_id="old")
    fail(journal, old, quarantine=True)
    assert (row(journal, booking()).landed_seq, row(journal, booking()).run_id) == (new.wanted_seq, "new")
    assert journal.subjects.dirty_count() == 0


def test_landing_of_what_the_journal_does_not_know_changes_nothing(journal: Journal) -> None:
    journal.subjects.landed([Claim(booking(), 5, 0, Source.USER)], run_id="r")
    journal.subjects.mark([booking()], Source.USER)
    journal.subjects.landed([Claim(booking(), 2**60, 0, Source.USER)], run_id="r")
    assert journal.subjects.dirty_count() == 1


def test_nobody_is_handed_what_is_already_in_work(journal: Journal) -> None:
    journal.subjects.mark(bookings(3), Source.SCHEDULE)
    first = journal.subjects.claim(2, run_id="a")
    assert [claim.subject for claim in journal.subjects.claim(9, run_id="b")] == [booking("b-2")]
    journal.subjects.mark(bookings(3), Source.NOTIFICATION)
    assert journal.subjects.claim(9, run_id="b") == []
    journal.subjects.release(first)
    assert {claim.subject for claim in journal.subjects.claim(9, run_id="b")} == {booking("b-0"), booking("b-1")}


def test_stale_claim_gives_nothing_of_a_newer_one_back(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    stale = claim_one(journal)
    journal.subjects.release([stale])
    journal.subjects.mark([booking()], Source.SCHEDULE)
    claim_one(journal)
    journal.subjects.release([stale])
    assert journal.subjects.claim(9, run_id="r") == []


def test_ended_run_gives_its_claims_back(journal: Journal) -> None:
    journal.runs.start("run", "sandbox", run_id="a", fence=1)
    journal.subjects.mark(bookings(2), Source.SCHEDULE)
    journal.subjects.claim(1, run_id="a")
    journal.subjects.claim(1, run_id="b")
    journal.runs.end("a", "interrupted")
    assert len(journal.subjects.claim(9, run_id="c")) == 1


def test_work_is_handed_out_by_priority_then_kind_then_travel_month_product_and_option(journal: Journal) -> None:
    june = [
        availability("p1", "o1", "2026-06"),
        availability("p1", "o2", "2026-06"),
        availability("p2", "o1", "2026-06"),
    ]
    july = [availability("p1", "o1", "2026-07")]
    urgent = booking("urgent")
    order = [
        urgent,
        Subject("acme", SubjectKind.SUBSCRIPTION),
        Subject("acme", SubjectKind.SUPPLIER),
        Subject("acme", SubjectKind.PRODUCTS),
        Subject("acme", SubjectKind.PRODUCT, ("p1",)),
        *june,
        *july,
        Subject("acme", SubjectKind.BOOKINGS, ("2026-05",)),
        Subject("acme", SubjectKind.BOOKINGS, ("2026-08",)),
        booking("b"),
    ]
    journal.subjects.mark(reversed(order), Source.SCHEDULE)
    journal.subjects.mark([urgent], Source.SCHEDULE, priority=10)
    assert [claim.subject for claim in journal.subjects.claim(99, run_id="r")] == order


def test_claims_can_be_narrowed_to_kinds_and_connections_and_spare_subjects(journal: Journal) -> None:
    here, there = booking("b", "here"), booking("b", "there")
    supplier = Subject("here", SubjectKind.SUPPLIER)
    journal.subjects.mark([here, there, supplier], Source.SCHEDULE)

    def claimed(**narrowed: object) -> set[Subject]:
        claims = journal.subjects.claim(9, run_id="r", **narrowed)  # type: ignore[arg-type]
        journal.subjects.release(claims)
        return {claim.subject for claim in claims}

    assert claimed(kinds={SubjectKind.SUPPLIER}) == {supplier}
    assert claimed(connections=["there"]) == {there}
    assert claimed(exclude=[here]) == {there, supplier}
    assert claimed(kinds=[]) == claimed(connections=[]) == set()
    assert journal.subjects.dirty_count(kinds={SubjectKind.BOOKING}) == 2
    assert journal.subjects.dirty_count(kinds={SubjectKind.BOOKING}, connections={"here"}) == 1


def test_subject_marked_for_later_is_dirty_and_not_yet_due(journal: Journal, clock: HandClock) -> None:
    due_at = NOON + timedelta(seconds=5)
    journal.subjects.mark([booking()], Source.CONFIRM, due_at=due_at)
    assert journal.subjects.dirty_count() == 1
    assert journal.subjects.claim(9, run_id="r") == []
    looked_at = clock.now()
    assert journal.subjects.next_due_at(looked_at) == due_at
    clock.forward(5)
    assert journal.subjects.next_due_at(clock.now()) is None
    # Who looked before it was due does not sleep over it.
    assert journal.subjects.next_due_at(looked_at) == due_at
    assert len(journal.subjects.claim(9, run_id="r")) == 1


def test_of_several_unanswered_marks_the_earliest_time_and_the_highest_priority_stand(journal: Journal) -> None:
    in_an_hour, in_two = NOON + timedelta(hours=1), NOON + timedelta(hours=2)
    journal.subjects.mark([booking()], Source.SCHEDULE, due_at=in_an_hour, priority=5)
    journal.subjects.mark([booking()], Source.CONFIRM, due_at=in_two, priority=1)
    assert (row(journal, booking()).due_at, row(journal, booking()).priority) == (in_an_hour, 5)
    journal.subjects.mark([booking()], Source.SCHEDULE)
    assert row(journal, booking()).due_at is None
    journal.subjects.mark([booking()], Source.SCHEDULE, due_at=in_two)
    journal.subjects.landed([claim_one(journal)], run_id="r")
    journal.subjects.mark([booking()], Source.SCHEDULE, due_at=in_two, priority=1)
    assert (row(journal, booking()).due_at, row(journal, booking()).priority) == (in_two, 1)


def test_schedule_does_not_hide_that_a_notification_asked(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.NOTIFICATION)
    journal.subjects.mark([booking()], Source.SCHEDULE)
    claim = claim_one(journal)
    assert claim.source is Source.NOTIFICATION
    journal.subjects.landed([claim], run_id="r")
    journal.subjects.mark([booking()], Source.SCHEDULE)
    assert claim_one(journal).source is Source.SCHEDULE


def test_failure_waits_for_its_retry_and_keeps_its_reason(journal: Journal, clock: HandClock) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    fail(journal, claim_one(journal), retry_at=NOON + timedelta(seconds=30))
    assert journal.subjects.claim(9, run_id="r") == []
    assert error(journal) == ("ServiceUnavailable", "The service is down.")
    clock.forward(30)
    again = claim_one(journal)
    assert again.attempts == 1
    journal.subjects.landed([again], run_id="r")
    assert (row(journal, booking()).attempts, error(journal)) == (0, (None, None))


@pytest.mark.parametrize("source", [one for one in Source if one is not Source.USER])
def test_marks_do_not_cut_a_backoff_short(journal: Journal, source: Source) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    fail(journal, claim_one(journal), retry_at=NOON + timedelta(seconds=30))
    journal.subjects.mark([booking()], source)
    assert journal.subjects.claim(9, run_id="r") == []
    assert row(journal, booking()).attempts == 1


def test_person_cuts_a_backoff_short(journal: Journal) -> None:
    journal.subjects.mark([booking()], Source.SCHEDULE)
    fail(journal, claim_one(journal), retry_at=NOON + timedelta(days=1))
    journal.subjects.mark([booking()], Source.USER)
    assert claim_one(journal).attempts == 0


def test_forgotten_subject_is_gone_until_it_is_marked_again(journal: Journal) -> None:
    journal.subjects.mark(bookings(2), Source.SCHEDULE)
    (held, _) = journal.subjects.claim(2, run_id="r")
    journal.subjects.forget([held.subject, booking("never-heard-of")])
    (left,) = (one.subject for one in journal.subjects.rows())
    assert left != held.subject
    journal.subjects.mark([held.subject], Source.NOTIFICATION)
    assert [claim.subject for claim in journal.subjects.claim(9, run_id="r")] == [held.subject], "nobody holds it"
    journal.subjects.forget([])
    assert len(list(journal.subjects.rows())) == 2


def test_numbers_are_never_given_out_twice(journal: Journal, path, clock: HandClock) -> None:
    block = journal.numbers.reserve(100)
    assert len(block) == 100
    marked = journal.subjects.mark([booking()], Source.SCHEDULE)
    assert marked == block[-1] + 1
    journal.close()
    with Journal.open(path, clock=clock) as reopened:
        assert reopened.numbers.reserve(1)[0] == marked + 1
        with pytest.raises(ValueError, match="at least one"):
            reopened.numbers.reserve(0)


def test_counter_is_lifted_above_what_the_warehouse_has_seen(journal: Journal) -> None:
    seen = journal.subjects.mark([booking()], Source.SCHEDULE)
    journal.numbers.at_least(seq=seen - 1)
    assert journal.numbers.reserve(1)[0] == seen + 1
    journal.numbers.at_least(seq=seen + 1000, fence=2**40)
    assert journal.numbers.reserve(1)[0] == seen + 1001
    assert journal.leases.take(owner="test", pid=1, host="here") == 2**40 + 1


def test_marking_nothing_is_fine(journal: Journal) -> None:
    assert journal.subjects.mark([], Source.SCHEDULE) < journal.subjects.mark([booking(), booking()], Source.SCHEDULE)
    journal.subjects.landed([], run_id="r")
    assert journal.subjects.dirty_count() == 1


def test_mark_is_all_or_nothing(journal: Journal) -> None:
    nameless = Subject("", SubjectKind.BOOKING, ("b",))
    with pytest.raises(JournalError, match="rules"):
        journal.subjects.mark([*bookings(10), nameless], Source.SCHEDULE)
    assert journal.subjects.dirty_count() == 0


def test_naive_time_is_refused(journal: Journal) -> None:
    with pytest.raises(ValueError, match="aware"):
        journal.subjects.mark([booking()], Source.SCHEDULE, due_at=datetime(2026, 7, 1))  # noqa: DTZ001 - on purpose
    assert journal.subjects.dirty_count() == 0


def test_odd_ids_come_back_unchanged(journal: Journal) -> None:
    odd = [booking(text) for text in ("", " ", 'a"b', "a\\b", "ünï☃", "a,b", "[]", "'; DROP TABLE subjects", "\u2028")]
    journal.subjects.mark(odd, Source.SCHEDULE)
    assert {claim.subject for claim in journal.subjects.claim(99, run_id="r")} == set(odd)


def test_what_is_owed_is_told_per_connection_and_kind(journal: Journal, clock: HandClock) -> None:
    journal.subjects.mark(bookings(4), Source.SCHEDULE)
    journal.subjects.mark([Subject("other", SubjectKind.SUPPLIER)], Source.SCHEDULE)
    done, broken, _ = journal.subjects.claim(3, run_id="r", connections=["acme"])
    journal.subjects.landed([done], run_id="r")
    fail(journal, broken, quarantine=True)
    clock.forward(10)
    journal.subjects.landed(journal.subjects.claim(1, run_id="r", connections=["other"]), run_id="r")
    journal.subjects.mark([done.subject], Source.CONFIRM, due_at=clock.now() + timedelta(seconds=5))
    (backlog,) = journal.subjects.backlog()
    assert (backlog.connection, backlog.kind) == ("acme", SubjectKind.BOOKING)
    assert (backlog.dirty, backlog.due, backlog.quarantined) == (3, 2, 1)
    assert journal.subjects.kinds() == {SubjectKind.BOOKING, SubjectKind.SUPPLIER}
    (acme,), (other,) = (journal.subjects.kind_counts(name, clock.now()) for name in ("acme", "other"))
    assert (acme.subjects, acme.verified, acme.oldest, acme.newest, acme.oldest_mark) == (3, 1, NOON, NOON, NOON)
    assert (other.verified, other.newest) == (1, clock.now())


def test_every_subject_is_listed_once_however_many_there_are(journal: Journal) -> None:
    many = bookings(2500) + bookings(3, "other") + [Subject("acme", SubjectKind.SUPPLIER)]
    journal.subjects.mark(many, Source.SCHEDULE)
    listed = [one.subject for one in journal.subjects.rows()]
    assert len(listed) == len(many)
    assert set(listed) == set(many)
    assert len(list(journal.subjects.rows("other"))) == 3
    assert len(list(journal.subjects.rows("acme", SubjectKind.SUPPLIER))) == 1


def test_threads_share_one_journal_and_every_subject_is_worked_on_once(journal: Journal) -> None:
    journal.subjects.mark(bookings(300), Source.SCHEDULE)
    done: list[Subject] = []

    def work(name: str) -> None:
        while claims := journal.subjects.claim(7, run_id=name):
            journal.subjects.landed(claims, run_id=name)
            done.extend(claim.subject for claim in claims)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(done) == len(set(done)) == 300
    assert journal.subjects.dirty_count() == 0


def test_claim_walks_the_index_and_sorts_nothing(journal: Journal) -> None:
    from octo_sync.journal import sql

    steps = plan(journal, sql.CLAIM, ("", 1, None, "acme", "[]", "[]"))
    assert any("USING INDEX subjects_dirty" in step or "Index Scan using subjects_dirty" in step for step in steps)
    assert not any("TEMP B-TREE" in step or "Sort" in step for step in steps)
