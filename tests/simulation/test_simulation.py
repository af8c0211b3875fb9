"""Virtual days of the whole system under every fault end equal; planted bugs do not.

More than these: `python -m tests.simulation --seeds N`, `python -m tests.simulation.mutants`.
"""

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from tests.simulation import mutants

DAYS = 200
"""Virtual days in every run of the tests; each is one seed from 1 on."""


def run(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, check=False, timeout=3600)


def test_days_full_of_faults_end_equal_and_none_of_the_faults_was_missing():
    done = run("tests.simulation", "--seeds", str(DAYS))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_one_seed_has_one_trace():
    traces = [
        re.findall(r"trace (\w+)", run("tests.simulation", "--seeds", "3", "--first", "4", "--jobs", jobs).stdout)
        for jobs in ("1", "2")
    ]
    assert len(traces[0]) == 3
    assert traces[0] == traces[1]


def test_planted_bugs_are_noticed():
    done = run("tests.simulation.mutants", "--few")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_patch_that_only_breaks_the_program_is_no_planted_bug(monkeypatch):
    said = ["not equal: core.bookings"]
    day = SimpleNamespace(run=lambda seed, **_: SimpleNamespace(seed=seed, error=said[0]))
    monkeypatch.setitem(sys.modules, "tests.simulation.day", day)
    monkeypatch.setitem(mutants.MUTANTS, "old", mutants.Mutant("old", "R1", lambda: None))
    assert mutants.hunt("old") == (1, said[0])
    for error in ("AttributeError: 'Inbox' object has no attribute '_x'", "the program ended by itself: TypeError: 3"):
        said[0] = error
        with pytest.raises(RuntimeError, match="broken mutant: old: "):
            mutants.hunt("old")
