"""Several workers of one project: who owns a connection, and what becomes of it when its owner does not know."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor, wait

import psycopg
import pytest
from tests.faults.serving import until
from tests.journal.helpers import NO_FILE, ON_A_SERVER, HandClock, cut, impatient, kill, start

from octo_sync.errors import JournalError, LeaseHeld
from octo_sync.journal import Journal, join
from octo_sync.model import Source, Subject, SubjectKind

pytestmark = ON_A_SERVER
OWNER = """
from octo_sync.journal import join
share = join(journal, owner="stands still")
share.take("a")
journal.runs.start("serve", "p", run_id="theirs", fence=share.fence)
claims = journal.subjects.claim(1, run_id="theirs", connections=["a"])
say("mine")
sys.stdin.readline()
try:
    journal.subjects.landed(claims, run_id="theirs")
    say("landed")
except Exception as error:
    say(type(error).__name__)
try:
    share.take("b")
    say("took")
except Exception as error:
    say(type(error).__name__)
"""


def suppliers(*connections: str) -> list[Subject]:
    return [Subject(connection, SubjectKind.SUPPLIER) for connection in connections]


def test_each_worker_has_connections_of_its_own_and_touches_no_others(journal: Journal, other: Journal) -> None:
    journal.subjects.mark(suppliers("a", "b"), Source.SCHEDULE)
    with join(journal, owner="one") as one, join(other, owner="two") as two:
        assert one.take("a")
        assert two.take("b")
        assert not one.take("b")
        assert not two.take("a")
        assert (one.workers(), two.workers()) == (2, 2)
        assert {name: row.owner for name, row in journal.leases.owners().items()} == {"a": "one", "b": "two"}

        for names in (["b"], ["a", "b"], None):
            with pytest.raises(LeaseHeld):
                journal.subjects.claim(9, run_id="r", connections=names)
        mine = journal.subjects.claim(9, run_id="r", connections=["a"])
        theirs = other.subjects.claim(9, run_id="r", connections=["b"])
        for refused in (
            lambda: journal.subjects.landed([*mine, *theirs], run_id="r"),
            lambda: journal.subjects.failed(
                theirs[0], error_code="", message="", retry_at=None, quarantine=False, run_id="r"
            ),
            lambda: journal.subjects.forget([theirs[0].subject]),
        ):
            with pytest.raises(LeaseHeld):
                refused()
        journal.subjects.landed(mine, run_id="r")
        other.subjects.landed(theirs, run_id="r")
        assert journal.subjects.dirty_count() == 0

        one.give("a")
        assert two.take("a")
        assert list(one.owned) == []
        with pytest.raises(LeaseHeld):
            journal.subjects.claim(9, run_id="r", connections=["a"])
    assert journal.leases.owners() == {}


def test_a_worker_whose_session_has_ended_is_refused_what_another_has_taken_over(
    journal: Journal, other: Journal, admin
) -> None:
    journal.subjects.mark(suppliers("a", "b"), Source.SCHEDULE)
    lost = join(journal, owner="lost")
    lost.take("a")
    lost.take("b")
    (a,), (b,) = (journal.subjects.claim(1, run_id="r", connections=[name]) for name in "ab")
    cut(admin)
    with join(other, owner="next") as following:
        assert following.take("a")
        with pytest.raises(LeaseHeld, match="taken over"):
            journal.subjects.landed([a], run_id="r")
        with pytest.raises(LeaseHeld):
            journal.subjects.claim(1, run_id="r", connections=["a"])
        journal.subjects.landed([b], run_id="r")  # nobody has taken that over
        with pytest.raises(LeaseHeld):
            lost.take("c")
        with pytest.raises(LeaseHeld):
            lost.workers()
        lost.release()
        assert {name: row.owner for name, row in journal.leases.owners().items()} == {"a": "next"}
        other.subjects.landed(other.subjects.claim(1, run_id="r", connections=["a"]), run_id="r")
    assert journal.subjects.dirty_count() == 0


def test_who_takes_a_connection_waits_for_its_landing_and_for_no_other(journal: Journal, other: Journal, admin) -> None:
    lost = join(journal, owner="lost")
    lost.take("a")
    cut(admin)
    with join(other, owner="next") as share:
        impatient(other)
        with journal.writing() as half_done:
            journal.check_fence(half_done, ["a"])
            assert share.take("b")
            with pytest.raises(JournalError, match="locked"):
                share.take("a")
        assert share.take("a")
        with pytest.raises(LeaseHeld), journal.writing() as late:
            journal.check_fence(late, ["a"])
    lost.release()


def test_who_was_killed_is_named_until_one_who_lives_looks(journal: Journal, other: Journal, admin) -> None:
    with join(journal, owner="lives") as share:
        killed = join(other, owner="killed")
        assert {row.owner for row in journal.leases.workers()} == {"lives", "killed"}
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [killed._session._session.info.backend_pid])
        share.close_killed()
        assert [row.owner for row in journal.leases.workers()] == ["lives"]
        killed.release()
    assert journal.leases.workers() == []


def test_a_command_has_the_project_alone_and_refuses_whoever_worked_before(
    journal: Journal, other: Journal, admin
) -> None:
    journal.subjects.mark(suppliers("a"), Source.SCHEDULE)
    with join(journal, owner="worker"), pytest.raises(LeaseHeld, match="worker"):
        other.leases.acquire(NO_FILE, owner="sync")
    lost = join(journal, owner="lost")
    lost.take("a")
    (claim,) = journal.subjects.claim(1, run_id="r", connections=["a"])
    cut(admin)
    with other.leases.acquire(NO_FILE, owner="sync"):
        with pytest.raises(LeaseHeld, match="sync"), Journal.open(journal.path, clock=journal.clock) as third:
            join(third, owner="too late")
        with pytest.raises(LeaseHeld):
            journal.subjects.landed([claim], run_id="r")
        other.subjects.landed(other.subjects.claim(1, run_id="r"), run_id="r")
    lost.release()


def test_a_command_whose_session_has_ended_is_refused_once_a_worker_owns_a_connection(
    journal: Journal, other: Journal, admin
) -> None:
    journal.subjects.mark(suppliers("a"), Source.SCHEDULE)
    lease = journal.leases.acquire(NO_FILE, owner="sync")
    claims = journal.subjects.claim(1, run_id="r")
    cut(admin)
    with join(other, owner="worker") as share:
        share.take("a")
        with pytest.raises(LeaseHeld):
            journal.subjects.landed(claims, run_id="r")
    lease.release()


def test_one_worker_keeps_and_another_may_when_it_has_ended(journal: Journal, other: Journal) -> None:
    first, second = join(journal, owner="first"), join(other, owner="second")
    assert (first.keeps, second.keeps, second.may_keep()) == (True, False, False)
    assert journal.leases.last().owner == "first"
    first.release()
    first.release()
    assert second.may_keep()
    second.release()
    with join(other, owner="second") as again:
        assert again.keeps
        assert again.fence > first.fence


def test_what_is_being_taken_while_a_worker_ends_is_given_back_too(
    journal: Journal, other: Journal, admin, path
) -> None:
    share = join(journal, owner="one")
    share.take("a")
    share.give("a")
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with ThreadPoolExecutor(2) as threads:
        with admin.transaction():
            admin.execute("SELECT 1 FROM journal.leases WHERE name = 'connection a' FOR UPDATE")
            taken = threads.submit(share.take, "a")
            with psycopg.connect(path, autocommit=True) as looking:
                until(lambda: looking.execute(waits).fetchone(), 10, "it waits for the row")
            ended = threads.submit(share.release)
            wait([ended], 0.5)
        taken.result(10)
        ended.result(10)
    assert other.leases.owners() == {}
    assert not share.take("a")


def test_only_runs_of_workers_that_are_gone_are_closed_as_killed(journal: Journal, other: Journal, path) -> None:
    owner = start(OWNER, path)
    try:
        assert owner.stdout.readline() == "mine\n"
        with join(other, owner="two") as two:
            other.runs.start("serve", "p", run_id="mine", fence=two.fence)
            assert not two.take("a")
            assert other.runs.find("theirs").status == "running"
            kill(owner)
            until(lambda: two.take("a"), 10, "taken over")
            assert other.runs.find("theirs").status == "killed"
            with join(journal, owner="three"):
                assert other.runs.find("mine").status == "running"
    finally:
        if owner.returncode is None:
            kill(owner)


def test_a_worker_that_stands_still_loses_its_connections_and_is_refused_when_it_goes_on(
    journal: Journal, other: Journal, path
) -> None:
    journal.subjects.mark(suppliers("a"), Source.SCHEDULE)
    owner = start(OWNER, f"{path}?tcp_user_timeout=1000")
    try:
        assert owner.stdout.readline() == "mine\n"
        os.kill(owner.pid, signal.SIGSTOP)
        with join(other, owner="next") as following:
            until(lambda: following.take("a"), 10, "taken over")
            os.kill(owner.pid, signal.SIGCONT)
            said, _ = owner.communicate("\n", timeout=60)
            assert said == "LeaseHeld\nLeaseHeld\n"
            assert other.subjects.dirty_count() == 1
    finally:
        if owner.returncode is None:
            kill(owner)


def test_a_worker_that_waits_for_long_keeps_what_it_owns(path, clock: HandClock, other: Journal) -> None:
    with Journal.open(f"{path}?tcp_user_timeout=500", clock=clock) as patient, join(patient, owner="one") as one:
        one.take("a")
        threading.Event().wait(1.5)
        with join(other, owner="two") as two:
            assert not two.take("a")
        one.give("a")
