"""Acts of people: what they mark, note and allow, what of it the worker does, and that each says who did it."""

import contextlib

import pytest
from tests.flows.harness import QUICK, keeping, settled
from tests.journal.helpers import HandClock
from tests.journal.test_reconciliations import GROSS, store

from octo_sync.errors import JournalError
from octo_sync.flows.acts import ACCEPT, ALLOW, ASSIGN, COMMENT, RETRY, SYNC, WITHDRAW, Acts
from octo_sync.flows.sync.settle import HELD
from octo_sync.journal import Journal
from octo_sync.model import Subject, SubjectKind


@pytest.fixture
def project(project):
    return project(limits=QUICK)


def acts_on(journal, clock):
    return Acts(lambda: contextlib.nullcontext(journal), clock, ["ledger"])


async def test_who_asks_for_everything_gets_a_full_pull_of_the_worker(project):
    async with keeping(project) as keeper:
        journal = keeper.ports.journal
        acts_on(journal, project.clock).do(SYNC, "Ana", {})
        await settled(keeper)
        (run,) = [run for run in journal.runs.last(5) if run.command == "pull"]
        (act,) = journal.acts.last(5)
    assert (run.status, run.options["part"]) == ("ok", "full")
    assert (act.who, act.act) == ("Ana", SYNC)
    assert act.outcome.startswith("A full pull has begun: ")
    assert act.done_at is not None
    assert project.differences() == []


@pytest.fixture
async def held(synced, service):
    """A copy of which many departures are missing at the service, and what it says of them."""
    copy = synced()
    service.faults({"fault": "empty_list", "match": {"path": "/availability$"}})
    await copy.sync()
    with Journal.open(copy.directory / "octo.journal.sqlite", clock=copy.clock) as journal:
        (entry,) = [entry for entry in journal.quarantine.entries() if entry.resource == HELD]
        yield copy, journal, entry
    service.faults()


def live(copy):
    return copy.query("select count(*) from core.availability where not is_deleted")[0][0]


async def test_deletions_that_a_person_allows_are_done_by_the_next_run_and_by_no_other(held):
    copy, journal, entry = held
    before = live(copy)
    fields = {"about": entry.connection, "key": entry.key, "text": entry.reason}
    acts_on(journal, copy.clock).do(ALLOW, "Ana", fields)
    assert live(copy) == before > 10, "a page deletes nothing itself"
    result = await copy.sync()
    (act,) = journal.acts.last(5)
    assert act.outcome == f"{before:,} rows were marked deleted; what is not proven gone yet is asked for again."
    assert (result.held, live(copy)) == ((), 0)
    lost = journal.settings.get("deleted_lately", connection="main") or ""
    assert "availability" not in lost, "what was allowed says nothing about what may go next"


async def test_what_is_no_longer_as_it_was_allowed_is_held_as_before(held, service):
    copy, journal, entry = held
    fields = {"about": entry.connection, "key": entry.key, "text": entry.reason}
    acts_on(journal, copy.clock).do(ALLOW, "Ana", fields)
    service.faults({"fault": "cut_list", "drop": 0.5, "match": {"path": "/availability$"}})
    left = live(copy)
    result = await copy.sync()
    (act,) = journal.acts.last(5)
    assert act.outcome.startswith("Nothing was deleted: ")
    assert (len(result.held), live(copy)) == (1, left)


async def test_only_what_is_held_as_the_page_says_can_be_allowed(held):
    copy, journal, entry = held
    for change in {"text": f"{entry.reason} "[1:]}, {"key": "core.bookings"}, {"about": "other"}:
        fields = {"about": entry.connection, "key": entry.key, "text": entry.reason, **change}
        with pytest.raises(JournalError, match="no longer as this page said"):
            acts_on(journal, copy.clock).do(ALLOW, "Ana", fields)
    assert journal.acts.last(5) == []


@pytest.fixture
def clock():
    return HandClock()


@pytest.fixture
def journal(tmp_path, clock):
    with Journal.open(tmp_path / "journal.sqlite", clock=clock) as journal:
        store(journal, GROSS)
        yield journal


@pytest.fixture
def do(journal, clock):
    def do(act, **fields):
        acts_on(journal, clock).do(act, "Ana", {"about": "ledger", "key": GROSS.key, **fields})

    return do


def test_a_difference_is_accepted_withdrawn_assigned_and_commented(journal, do):
    do(ACCEPT, text="Paid in cash.", until="2026-12-31")
    (row,) = journal.reconciliations.acceptances("ledger")
    assert (row.key, row.note, row.accepted_by, str(row.until)) == (GROSS.key, "Paid in cash.", "Ana", "2026-12-31")
    do(WITHDRAW)
    assert journal.reconciliations.acceptances("ledger") == []
    do(ASSIGN, text="Ben")
    do(COMMENT, text="Asked the supplier.")
    acts = journal.acts.of("ledger", GROSS.key)
    assert [(act.who, act.act, act.text) for act in reversed(acts)] == [
        ("Ana", ACCEPT, "Paid in cash."),
        ("Ana", WITHDRAW, ""),
        ("Ana", ASSIGN, "Ben"),
        ("Ana", COMMENT, "Asked the supplier."),
    ]
    assert acts[-1].outcome == "1 open difference, until 2026-12-31."


def test_retrying_the_quarantine_marks_what_is_in_it(journal, do):
    subject = Subject("acme", SubjectKind.BOOKING, ("b-1",))
    journal.quarantine.add_record("acme", "bookings", "b-1", "$", "no text", "r", subject=subject)
    do(RETRY)
    assert [claim.subject for claim in journal.subjects.claim(9, run_id="r")] == [subject]
    assert journal.acts.last(1)[0].outcome == "1 record to fetch again."


@pytest.mark.parametrize(
    ("act", "fields", "said"),
    [
        ("drop all", {}, "Nobody can 'drop all' here"),
        (ACCEPT, {"text": " "}, "needs a note"),
        (ACCEPT, {"text": "x", "until": "soon"}, "'soon' is no day"),
        (ACCEPT, {"text": "x", "key": "nothing"}, "has the key nothing"),
        (ACCEPT, {"text": "x", "about": "crm"}, "no reconciliation 'crm'"),
        (WITHDRAW, {}, "Nothing of ledger was accepted"),
        (COMMENT, {"text": ""}, "nothing to comment"),
        (ASSIGN, {"text": "Ben", "key": "nothing"}, "has the key nothing"),
        (COMMENT, {"text": "x" * 1001}, "at most 1,000 characters"),
        (COMMENT, {"text": "a\0b"}, "at most 1,000 characters"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(journal, do, act, fields, said):
    revision = journal.reconciliations.revision()
    with pytest.raises(JournalError, match=said):
        do(act, **fields)
    assert journal.acts.last(5) == []
    assert journal.reconciliations.revision() == revision
