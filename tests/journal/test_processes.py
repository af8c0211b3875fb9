"""Kills, and two processes at once."""

import signal

import pytest
from tests.journal.helpers import HandClock, bookings, start

from octo_sync.journal import Journal
from octo_sync.model import Source


@pytest.mark.deep(0.3, everyday=1)
def test_claims_of_a_killed_process_are_back_at_once(journal: Journal, path) -> None:
    journal.subjects.mark(bookings(10), Source.SCHEDULE)
    worker = start(
        """
claims = journal.subjects.claim(6, run_id="theirs")
journal.subjects.landed(claims[:2], run_id="theirs")
say(len(claims))
sys.stdin.readline()
""",
        path,
    )
    assert worker.stdout.readline() == "6\n"
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=120)
    assert len(journal.subjects.claim(99, run_id="ours")) == 8


@pytest.mark.deep(0.3, everyday=1)
def test_every_number_that_was_said_before_a_kill_is_in_the_journal(path, clock: HandClock) -> None:
    marker = start(
        """
for number in range(10**6):
    journal.subjects.mark([booking(f"b-{number}")], Source.NOTIFICATION)
    say(number)
""",
        path,
    )
    said = [int(marker.stdout.readline()) for _ in range(200)]
    marker.send_signal(signal.SIGKILL)
    rest, _ = marker.communicate(timeout=120)
    said += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    with Journal.open(path, clock=clock) as journal:
        assert journal.recovered_from is None
        assert journal.subjects.dirty_count() >= len(said)
        assert {one.subject for one in journal.subjects.rows()} >= set(bookings(len(said)))


@pytest.mark.deep(0.6, everyday=1)
def test_two_processes_that_create_and_mark_at_once_lose_nothing(path, clock: HandClock) -> None:
    program = """
for number in range(150):
    seq = journal.subjects.mark([booking(f"{sys.argv[2]}-{number}"), booking("shared")], Source.NOTIFICATION)
    say(seq)
"""
    markers = [start(program, path, name) for name in ("one", "two")]
    numbers = [int(line) for marker in markers for line in marker.communicate(timeout=120)[0].split()]
    assert [marker.returncode for marker in markers] == [0, 0]
    assert len(set(numbers)) == 300
    with Journal.open(path, clock=clock) as journal:
        assert journal.subjects.dirty_count() == 301
        rows = {one.subject.parts[0]: one.wanted_seq for one in journal.subjects.rows()}
        assert rows["shared"] == max(numbers)
        assert set(rows.values()) == set(numbers)
