"""What status and metrics ask of the journal is counted in the database, on both engines alike."""

import contextlib
import sqlite3
from datetime import date, timedelta

from tests.journal.helpers import NOON, ON_A_FILE, HandClock, availability, booking, fail

from octo_sync.journal import FoundDifference, Journal, ReconciliationRun
from octo_sync.model import Source, Subject, SubjectKind

JULY_TO_AUGUST = ("2026-07", "2026-08")


def counts(journal, **more):
    found = journal.subjects.kind_counts("acme", journal.clock.now(), availability=JULY_TO_AUGUST, **more)
    return {count.kind: count for count in found}


def land(journal, subjects):
    """These are fetched and landed now."""
    claims = [c for c in journal.subjects.claim(1000, run_id="r") if c.subject in set(subjects)]
    assert len(claims) == len(subjects)
    journal.subjects.landed(claims, run_id="r")


def test_only_the_horizon_counts_and_what_lies_outside_is_still_owed(journal: Journal, clock: HandClock):
    months = ["2026-06", "2026-07", "2026-08", "2026-09"]
    journal.subjects.mark([availability("p", "o", month) for month in months], Source.SCHEDULE)
    journal.subjects.mark([booking("b-1"), booking("other", "zoo")], Source.SCHEDULE)
    marked = clock.now()
    clock.forward(60)
    land(journal, [availability("p", "o", "2026-06"), availability("p", "o", "2026-07")])
    landed = clock.now()
    clock.forward(60)

    found = counts(journal)

    slots = found[SubjectKind.AVAILABILITY]
    assert (slots.subjects, slots.verified, slots.oldest, slots.newest) == (2, 1, landed, landed)
    assert (slots.unverified_since, slots.owed, slots.due, slots.oldest_mark) == (marked, 2, 2, marked)
    one = found[SubjectKind.BOOKING]
    assert (one.subjects, one.verified, one.oldest, one.owed) == (1, 0, None, 1)
    assert set(found) == {SubjectKind.AVAILABILITY, SubjectKind.BOOKING}, "another connection's are not counted"


def test_products_that_are_not_kept_are_not_counted(journal: Journal):
    journal.subjects.mark([availability(product, "o", "2026-07") for product in ("a", "b", 'c"')], Source.SCHEDULE)

    assert counts(journal, include=["a", 'c"'])[SubjectKind.AVAILABILITY].subjects == 2
    assert counts(journal, exclude=['c"'])[SubjectKind.AVAILABILITY].subjects == 2
    assert counts(journal, include=["a", "b"], exclude=["b"])[SubjectKind.AVAILABILITY].subjects == 1
    assert SubjectKind.AVAILABILITY not in counts(journal, include=["x"])


def test_what_is_in_quarantine_is_neither_owed_nor_in_the_horizon(journal: Journal, clock: HandClock):
    journal.subjects.mark([booking("b-1"), booking("b-2")], Source.USER)
    one, two = journal.subjects.claim(10, run_id="r")
    fail(journal, one, quarantine=True)
    fail(journal, two, retry_at=clock.now() + timedelta(hours=1))
    journal.quarantine.add_record(
        connection="acme", resource="bookings", key="b-9", path="$.x", reason="no", run_id="r",
        subject=Subject("acme", SubjectKind.BOOKING, ("b-9",)),
    )  # fmt: skip

    found = counts(journal)[SubjectKind.BOOKING]

    assert (found.subjects, found.owed, found.due) == (1, 1, 0)
    told = [(*of, entries) for of, entries in journal.quarantine.counts().items()]
    assert told == [("acme", "booking", 1), ("acme", "bookings", 1)]


def test_open_differences_are_counted_per_bucket_and_accepted_ones_apart(journal: Journal, clock: HandClock):
    def found(key, bucket):
        return FoundDifference(key=key, bucket=bucket, reason="x")

    def store(run, *differences):
        said = ReconciliationRun(
            name="ledger", run_id=run, started_at=clock.now(), ended_at=clock.now(), window_start=date(2026, 6, 1),
            window_end=date(2026, 7, 1), here_origin="here", there_origin="there", counts={}, totals=[], verdict="ok",
        )  # fmt: skip
        journal.reconciliations.store(said, differences)

    store("r1", found("a", "missing_here"), found("b", "missing_here"), found("c", "mismatched"))
    journal.reconciliations.accept("ledger", "b", note="known", by="me", until=NOON.date(), now=clock.now())
    first = clock.now()
    clock.forward(60)
    store("r2", found("a", "missing_here"), found("b", "missing_here"))

    (count,) = journal.reconciliations.counts()
    assert (count.name, count.bucket, count.open, count.accepted, count.oldest) == (
        "ledger",
        "missing_here",
        2,
        1,
        first,
    )
    clock.forward(86_400)
    store("r3", found("a", "missing_here"), found("b", "missing_here"))
    assert journal.reconciliations.counts()[0].accepted == 0, "the acceptance held until yesterday"
    store("r4", found("a", "missing_here"), found("d", "missing_here"))
    journal.reconciliations.accept("ledger", "a", note="known", by="me", until=None, now=clock.now())
    assert journal.reconciliations.counts()[0].oldest == clock.now(), "of those that are not accepted"
    _, *runs = journal.reconciliations.runs("ledger", 4)
    assert [run.open_differences for run in runs] == [2, 1, 3], "nor are accepted ones open after a run"


def test_runs_are_told_from_a_number_on_and_open_ones_again(journal: Journal):
    assert journal.runs.last_id() == 0
    for name in ("r1", "r2"):
        journal.runs.start("sync", "p", run_id=name, fence=1)
    journal.runs.end("r1", "ok")
    first, second = journal.runs.after(0)
    assert ([first[1:], second[1:]], journal.runs.last_id()) == ([("sync", "ok"), ("sync", "running")], second[0])
    assert journal.runs.after(second[0]) == []
    journal.runs.end("r2", "failed")
    assert journal.runs.after(second[0], [second[0]]) == [(second[0], "sync", "failed")]


def test_connections_are_those_of_which_anything_was_asked(journal: Journal):
    journal.subjects.mark([booking("b", "zoo"), booking("b"), booking("c")], Source.USER)
    assert journal.subjects.connection_names() == ["acme", "zoo"]


def test_a_journal_says_how_large_it_is(journal: Journal):
    before = journal.size()
    journal.subjects.mark([booking(f"b-{number}") for number in range(3000)], Source.USER)
    assert journal.size() > before + 100_000


@ON_A_FILE
def test_the_size_is_that_of_the_file_and_its_log(journal: Journal, path):
    journal.subjects.mark([booking("b")], Source.USER)
    log = path.with_name(f"{path.name}-wal")
    assert journal.size() == path.stat().st_size + log.stat().st_size
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert journal.size() == path.stat().st_size
