"""Several processes write one journal on a server at the same time: nothing is lost, doubled or held up."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from sqlalchemy import event
from tests.faults.serving import until
from tests.journal.helpers import (
    NO_FILE,
    ON_A_SERVER,
    HandClock,
    booking,
    bookings,
    cut,
    delivery,
    fail,
    impatient,
    plan,
)

from octo_sync.errors import JournalError, LeaseHeld
from octo_sync.flows.contacts import Privacy
from octo_sync.flows.sync import drift
from octo_sync.journal import FoundDifference, Journal, ReconciliationRun, Timer, join, models, sql
from octo_sync.model import Source

pytestmark = ON_A_SERVER


@pytest.fixture
def third(path, clock: HandClock, journal):
    with Journal.open(path, clock=clock) as opened:
        yield opened


def waiting(path, count: int) -> None:
    """Wait until so many sessions of the database wait for a row that another has."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with psycopg.connect(path, autocommit=True) as look:
        until(lambda: look.execute(asked).fetchone()[0] >= count, 10, f"{count} wait")


def before(journal: Journal, nth: int, wanted: str, do) -> None:
    """Call `do` before the nth statement of this journal that has `wanted` in it."""
    seen = []

    def hook(_connection, _cursor, statement, *_) -> None:
        if wanted in statement:
            seen.append(statement)
            if len(seen) == nth:
                do()

    event.listen(journal._engine, "before_cursor_execute", hook)


def test_who_takes_the_project_over_writes_alone_and_the_others_are_patient_for_a_while(
    journal: Journal, path, clock: HandClock
) -> None:
    with Journal.open(path, clock=clock) as other:
        impatient(other)
        with journal.writing(alone=True), pytest.raises(JournalError, match="locked"):
            other.subjects.mark([booking("b")], Source.USER)
        with journal.writing(), pytest.raises(JournalError, match="locked"):
            other.leases.acquire(NO_FILE, owner="other")
        numbers: list[int] = []
        with journal.writing(alone=True):
            late = threading.Thread(target=lambda: numbers.append(other.subjects.mark([booking("b")], Source.USER)))
            late.start()
            time.sleep(0.1)
            assert numbers == []
        late.join(10)
        assert journal.numbers.last() == numbers[0]


def test_a_landing_in_the_journal_waits_for_no_other_and_nobody_for_it(
    journal: Journal, path, clock: HandClock
) -> None:
    journal.subjects.mark([booking("a"), booking("b")], Source.USER)
    [claim] = journal.subjects.claim(1, run_id="r")
    with Journal.open(path, clock=clock) as other:
        impatient(other)
        with journal.writing() as half_done:
            half_done.exec_driver_sql(sql.LANDED, (*models.key_of(claim.subject), claim.wanted_seq, "", "r", None))
            [theirs] = other.subjects.claim(1, run_id="r", exclude=[claim.subject])
            other.inbox.accept([delivery(b"1")])
            other.subjects.landed([theirs], run_id="r")
            other.runs.start("serve", "p", run_id="new", fence=1)
            other.timers.set([Timer(subject=booking("c"), name="confirm-1", due_at=clock.now())])
            assert other.timers.fire(clock.now()) == 1
            other.acts.note("sync now", who="Ana")
            other.runs.end("new", "ok")
            other.quarantine.add_record("acme", "bookings", "k", "p", "r", "new")
            other.erasures.request(["x"], [])
            other.reconciliations.prune(clock.now())


def test_a_timer_that_is_set_while_others_fire_is_neither_lost_nor_held_up(
    journal: Journal, path, clock: HandClock
) -> None:
    def timer(uuid: str, hours: int = 0) -> Timer:
        at = clock.now() + timedelta(hours=hours)
        return Timer(subject=booking(uuid), name="confirm-1", due_at=at, source=Source.CONFIRM)

    def set_meanwhile(_connection, _cursor, statement, *_) -> None:
        if statement.startswith("SELECT connection, kind") and "FROM timers" in statement:
            other.timers.set([timer("a", hours=1), timer("c")])

    journal.timers.set([timer("a"), timer("b")])
    with Journal.open(path, clock=clock) as other:
        event.listen(journal._engine, "after_cursor_execute", set_meanwhile)
        assert journal.timers.fire(clock.now()) == 2
        event.remove(journal._engine, "after_cursor_execute", set_meanwhile)
        left = [(one.subject, one.due_at) for one in journal.timers.rows()]
        assert left == [(booking("c"), clock.now()), (booking("a"), clock.now() + timedelta(hours=1))]
    assert journal.subjects.dirty_count() == 2


def test_of_two_comparisons_at_once_one_waits_for_the_other_and_for_nothing_else(
    journal: Journal, path, clock: HandClock
) -> None:
    with Journal.open(path, clock=clock) as other:
        impatient(other)
        with journal.reconciliations._writing():
            other.subjects.mark([booking()], Source.USER)
            with pytest.raises(JournalError, match="locked"):
                other.reconciliations.prune(clock.now())
        assert other.reconciliations.prune(clock.now()) == 0


def test_writers_beside_each_other_do_not_wait_in_a_circle(path, clock: HandClock, postgres_server) -> None:
    ours = bookings(20)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        with Journal.open(path, clock=clock) as journal:
            for _ in range(60):
                chance.shuffle(mine := [*ours])
                match seed % 4:
                    case 0:
                        journal.inbox.accept([replace(delivery(b"1"), subjects=tuple(mine[:12]))])
                        journal.subjects.mark(mine, Source.USER)
                    case 1:
                        due = [clock.now() + timedelta(minutes=chance.randrange(60)) for _ in mine]
                        two = zip(mine, due[:12], strict=False)
                        journal.timers.set(Timer(subject=one, name="confirm-1", due_at=at) for one, at in two)
                        journal.timers.drop(mine[6:], "confirm-1")
                    case 2:
                        journal.timers.fire(clock.now() + timedelta(hours=2))
                        journal.subjects.forget(mine[:3])
                    case 3:
                        claims = journal.subjects.claim(20, run_id="r")
                        chance.shuffle(claims)
                        journal.subjects.landed(claims, run_id="r")

    with postgres_server.no_deadlock(), ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, seed) for seed in range(8)]:
            done.result()


def test_two_who_take_a_connection_at_once_never_have_the_same_fence(
    journal: Journal, other: Journal, third: Journal, admin, path
) -> None:
    keeper = join(third, owner="keeper")
    keeper.take("a")
    keeper.give("a")
    late, next_ = join(journal, owner="late"), join(other, owner="next")
    with ThreadPoolExecutor(2) as pool:
        with admin.transaction():
            admin.execute("SELECT 1 FROM journal.leases WHERE name = 'connection a' FOR SHARE")  # a landing's step
            first = pool.submit(late.take, "a")
            waiting(path, 1)
            with psycopg.connect(path, autocommit=True) as killer:
                killer.execute("SELECT pg_terminate_backend(%s, 5000)", [late._session._session.info.backend_pid])
            second = pool.submit(next_.take, "a")
            waiting(path, 2)
        assert first.exception(10) is None or isinstance(first.exception(10), LeaseHeld)
        assert second.result(10)
    other.check_fence(other._connect(), ["a"], lasting=False)
    with pytest.raises(LeaseHeld):
        journal.check_fence(journal._connect(), ["a"], lasting=False)
    for share in (late, next_, keeper):
        share.release()


def test_nobody_takes_a_connection_during_a_step_of_who_had_the_project_alone(
    journal: Journal, other: Journal, third: Journal, admin
) -> None:
    lost = journal.leases.acquire(NO_FILE, owner="sync")
    cut(admin)
    first = third.database.writer_lock(Path())
    assert first.acquire(shared=True)
    assert first.hold("keeper")  # and has not said yet that it keeps the copy
    impatient(other)
    with join(other, owner="second") as share:
        with journal.writing() as step:
            journal.check_fence(step, None)
            with pytest.raises(JournalError, match="locked"):
                share.take("a")
        assert share.take("a")
    first.release()
    lost.release()


def test_marks_of_timers_are_made_in_the_order_of_keys_whatever_the_database_sorts_by(journal: Journal) -> None:
    steps = plan(journal, sql.FIRE_TIMERS, ("", 1, "[]", 1))
    assert [step.strip() for step in steps if "Sort Key" in step][:1] == ["Sort Key: ranked.number"]


def test_taking_off_the_list_and_landing_fine_do_not_wait_in_a_circle(
    journal: Journal, other: Journal, path, postgres_server
) -> None:
    for uuid in ("z", "a"):
        journal.quarantine.add_record("acme", "bookings", uuid, "$.x", "odd", "r", subject=booking(uuid))
    entries, cleared = journal.quarantine.entries(), []

    def meanwhile() -> None:
        cleared.append(pool.submit(other.quarantine.clear, entries))
        waiting(path, 1)

    with ThreadPoolExecutor(1) as pool, postgres_server.no_deadlock():
        before(journal, 2, "DELETE FROM quarantined_records", meanwhile)
        assert len(journal.quarantine.drop("all")) == 2
        cleared[0].result(10)


def test_what_was_seen_anew_or_marked_meanwhile_stays_on_the_list_or_owed(
    journal: Journal, other: Journal, clock: HandClock
) -> None:
    journal.quarantine.add_record("acme", "bookings", "a", "$.x", "odd", "r")
    entries = journal.quarantine.entries()
    clock.forward(1)
    other.quarantine.add_record("acme", "bookings", "a", "$.x", "odd again", "r")
    journal.quarantine.clear(entries)
    assert [entry.reason for entry in other.quarantine.entries()] == ["odd again"]

    journal.subjects.mark([booking()], Source.SCHEDULE)
    fail(journal, journal.subjects.claim(1, run_id="r")[0], quarantine=True)
    before(journal, 1, "DELETE FROM subjects", lambda: other.subjects.mark([booking()], Source.NOTIFICATION))
    journal.quarantine.drop("all")
    assert other.subjects.dirty_count() == 1


def test_endpoints_that_end_and_that_are_refused_do_not_wait_in_a_circle(
    journal: Journal, other: Journal, path, postgres_server
) -> None:
    ends, gone = ["z" * 32, "a" * 32], []
    for end in ends:
        journal.endpoints.add(end, connection="acme", secret_hash="0" * 64)
        journal.endpoints.activate(end, "sub-1")

    def meanwhile() -> None:
        gone.append(pool.submit(other.endpoints.subscription_gone, "acme", "sub-1"))
        waiting(path, 1)

    with ThreadPoolExecutor(1) as pool, postgres_server.no_deadlock():
        before(journal, 2, "refused_at", meanwhile)
        assert journal.endpoints.refused(ends) == 2
        gone[0].result(10)
    assert {row.subscription_id for row in journal.endpoints.rows()} == {None}


def test_a_comparison_stores_nothing_of_who_is_erased_meanwhile(
    journal: Journal, other: Journal, path, clock: HandClock, monkeypatch
) -> None:
    values = {"here_value": "Jane Doe", "there_value": "Jane D."}
    found = [FoundDifference(key="k", bucket="differs", field="name", booking_uuid="b-1", **values)]
    days = {"window_start": date(2026, 7, 1), "window_end": date(2026, 7, 31)}
    told = {"here_origin": "h", "there_origin": "t", "counts": {}, "totals": [], "verdict": "ok"}
    run = ReconciliationRun(name="ledger", run_id="r1", started_at=clock.now(), ended_at=clock.now(), **days, **told)
    look, erased = journal.reconciliations._rows, []

    def erase() -> None:
        other.erasures.request([], ["b-1"])
        other.reconciliations.blank({"b-1"}, lambda _: False)

    def looked(*args):
        rows = look(*args)
        erased.append(pool.submit(erase))
        waiting(path, 1)
        return rows

    monkeypatch.setattr(journal.reconciliations, "_rows", looked)
    with ThreadPoolExecutor(1) as pool:
        journal.reconciliations.store(run, found)
        erased[0].result(10)
    [one] = other.reconciliations.open_differences("ledger")
    assert one.here_value is one.there_value is None


def test_what_a_person_lets_go_while_the_worker_carries_out_what_was_let_go_before_is_not_forgotten(
    journal: Journal, other: Journal
) -> None:
    for path in ("bookings.a", "bookings.b"):
        journal.quarantine.add_record("acme", drift.KEPT, path, "", "r", "r")
    drift.accept(journal, "a")
    done: list[int] = []

    def carry_out(statements) -> None:
        done.append(len(statements))
        if len(done) == 1:
            drift.accept(other, "b")

    warehouse = SimpleNamespace(run_script=carry_out)
    ports = SimpleNamespace(
        journal=journal, clients={"acme": 1}, clock=journal.clock, warehouse=warehouse, privacy=Privacy("keep", b"")
    )
    drift.let_through(ports)
    drift.let_through(ports)
    assert done[1] > done[0] > 0
    drift.let_through(ports)
    assert len(done) == 2
