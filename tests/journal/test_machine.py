"""Random histories of marks, claims, landings, failures and crashes against a model of a few lines."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.journal.helpers import HandClock, availability, booking, fail

from octo_sync.journal import Journal
from octo_sync.model import Claim, Source, Subject

SUBJECTS = [booking("a"), booking("b"), booking("a", "other"), availability("p", "o", "2026-07")]
NEWS = {Source.NOTIFICATION, Source.REPAIR, Source.USER}
STRENGTH = [Source.SCHEDULE, Source.TIMER, Source.CONFIRM, Source.REPAIR, Source.USER, Source.NOTIFICATION]
AT_ONCE = datetime.min.replace(tzinfo=HandClock().now().tzinfo)


@dataclass
class Known:
    wanted: int = 0
    landed: int = 0
    due: datetime = AT_ONCE
    priority: int = 0
    source: Source = Source.SCHEDULE
    attempts: int = 0
    quarantined: bool = False


@dataclass
class Model:
    known: dict[Subject, Known] = field(default_factory=dict)

    def mark(self, subject: Subject, number: int, source: Source, due: datetime, priority: int) -> None:
        old = self.known.setdefault(subject, Known())
        if old.wanted == old.landed:
            self.known[subject] = Known(number, old.landed, due, priority, source)
            return
        old.wanted = number
        old.priority = max(old.priority, priority)
        old.source = max(old.source, source, key=STRENGTH.index)
        if old.quarantined:
            if source in NEWS:
                old.quarantined, old.due = False, due
        elif old.attempts == 0 or source is Source.USER:
            old.due = min(old.due, due)
        if source is Source.USER:
            old.attempts = 0

    def claimable(self, now: datetime, in_work: set[Subject]) -> set[Subject]:
        return {
            subject
            for subject, one in self.known.items()
            if one.wanted > one.landed and one.due <= now and not one.quarantined and subject not in in_work
        }


class JournalMachine(RuleBasedStateMachine):
    def __init__(self, fresh: Callable[[], Path | str]) -> None:
        super().__init__()
        self.fresh = fresh

    @initialize()
    def open(self) -> None:
        self.clock = HandClock()
        self.journal = Journal.open(self.fresh(), clock=self.clock)
        self.model = Model()
        self.in_work: list[Claim] = []
        self.last_number = 0

    def teardown(self) -> None:
        self.journal.close()

    def taken(self, data: st.DataObject) -> Claim | None:
        if not self.in_work:
            return None
        return self.in_work.pop(data.draw(st.integers(0, len(self.in_work) - 1)))

    @rule(
        subjects=st.lists(st.sampled_from(SUBJECTS), max_size=4),
        source=st.sampled_from(Source),
        wait=st.sampled_from([None, -5, 0, 5, 50]),
        priority=st.integers(-1, 2),
    )
    def mark(self, subjects: list[Subject], source: Source, wait: int | None, priority: int) -> None:
        due = None if wait is None else self.clock.now() + timedelta(seconds=wait)
        number = self.journal.subjects.mark(subjects, source, due_at=due, priority=priority)
        assert number > self.last_number
        self.last_number = number
        for subject in subjects:
            self.model.mark(subject, number, source, due or AT_ONCE, priority)

    @rule(limit=st.integers(0, 3))
    def claim(self, limit: int) -> None:
        due = self.model.claimable(self.clock.now(), {claim.subject for claim in self.in_work})
        claims = self.journal.subjects.claim(limit, run_id="r")
        assert len(claims) == min(limit, len(due))
        for claim in claims:
            one = self.model.known[claim.subject]
            assert claim.subject in due
            assert (claim.wanted_seq, claim.attempts, claim.source) == (one.wanted, one.attempts, one.source)
        spared = due - {claim.subject for claim in claims}
        if claims and spared:
            lowest = min(self.model.known[claim.subject].priority for claim in claims)
            assert lowest >= max(self.model.known[subject].priority for subject in spared)
        self.in_work += claims

    @rule(data=st.data())
    def land(self, data: st.DataObject) -> None:
        if claim := self.taken(data):
            self.journal.subjects.landed([claim], run_id="r")
            one = self.model.known[claim.subject]
            one.landed, one.attempts, one.quarantined = claim.wanted_seq, 0, False
            if one.landed == one.wanted:
                one.due = AT_ONCE

    @rule(data=st.data(), wait=st.sampled_from([None, 5]), quarantine=st.booleans())
    def fail(self, data: st.DataObject, wait: int | None, quarantine: bool) -> None:  # noqa: FBT001 - drawn
        if claim := self.taken(data):
            retry = None if wait is None else self.clock.now() + timedelta(seconds=wait)
            fail(self.journal, claim, retry_at=retry, quarantine=quarantine)
            one = self.model.known[claim.subject]
            one.attempts, one.due = one.attempts + 1, retry or AT_ONCE
            one.quarantined = one.quarantined or (quarantine and one.wanted == claim.wanted_seq)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        if claim := self.taken(data):
            self.journal.subjects.release([claim])

    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        if claim := self.taken(data):
            self.journal.subjects.forget([claim.subject])
            del self.model.known[claim.subject]

    @rule(seconds=st.sampled_from([1, 5, 60]))
    def wait(self, seconds: int) -> None:
        self.clock.forward(seconds)

    @rule()
    def crash(self) -> None:
        """The process is gone, the file is opened again: what was in work is simply owed again."""
        crashed = self.journal
        self.journal = Journal.open(crashed.path, clock=self.clock)
        crashed.close()
        self.in_work = []

    @invariant()
    def journal_and_model_agree(self) -> None:
        if not hasattr(self, "journal"):
            return
        known = {
            row.subject: Known(
                row.wanted_seq,
                row.landed_seq,
                row.due_at or AT_ONCE,
                row.priority,
                row.source,
                row.attempts,
                row.quarantined_at is not None,
            )
            for row in self.journal.subjects.rows()
        }
        assert known == self.model.known
        workable = [one for one in known.values() if one.wanted > one.landed and not one.quarantined]
        assert self.journal.subjects.dirty_count() == len(workable)
        later = [one.due for one in workable if one.due > self.clock.now()]
        assert self.journal.subjects.next_due_at(self.clock.now()) == min(later, default=None)


@pytest.mark.deep(6, everyday=["sqlite"])
def test_every_history_ends_as_the_model_says(fresh, tier) -> None:
    run_state_machine_as_test(
        lambda: JournalMachine(fresh),
        settings=settings(
            max_examples=tier.choose(10, 40, 40),
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
