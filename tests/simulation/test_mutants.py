"""Bugs that are planted on purpose turn the simulation red. The table of all: `python -m tests.simulation.mutants`."""

import sys
from types import SimpleNamespace

import pytest
from tests.simulation import mutants

EVERYDAY = {"deduplicate deliveries by body", "fence unchecked"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in EVERYDAY else pytest.mark.deep(8)) for name in mutants.MUTANTS]
)
def test_a_planted_bug_is_noticed(name):
    _, found, _, trouble = mutants.in_a_process(name)
    assert found, trouble


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
