"""Bugs that are planted on purpose turn the simulation red. The table of all: `python -m tests.simulation.mutants`."""

import importlib
import inspect
import pkgutil
import sys
from types import SimpleNamespace

import pytest
from tests.simulation import mutants

import octo_sync

EVERYDAY = {"fence unchecked"}


def marks(name):
    if name in EVERYDAY:
        return []
    return [pytest.mark.deep(20 if mutants.MUTANTS[name].workers == 1 else 30)]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in mutants.MUTANTS])
def test_a_planted_bug_is_noticed(name):
    _, found, _, trouble = mutants.in_a_process(name)
    assert found, trouble


@pytest.fixture(scope="module")
def patchable():
    """What a patch can replace: everything that a module or a class of the program names."""
    names = [one.name for one in pkgutil.walk_packages(octo_sync.__path__, "octo_sync.") if "__" not in one.name]
    modules = [importlib.import_module(name) for name in names]
    classes = {one for module in modules for one in vars(module).values() if inspect.isclass(one)}
    return [*modules, *(one for one in classes if one.__module__.startswith("octo_sync."))]


@pytest.mark.parametrize("name", mutants.MUTANTS)
def test_a_planted_bug_takes_what_the_program_gives(name, patchable):
    before = [(owner, dict(vars(owner))) for owner in patchable]
    patches = []
    try:
        mutants.MUTANTS[name].plant()
    finally:
        for owner, was in before:
            for key in [key for key, now in vars(owner).items() if now is not was.get(key)]:
                patches.append((owner, key, getattr(owner, key)))
                setattr(owner, key, was[key]) if key in was else delattr(owner, key)
    assert patches
    for owner, key, patch in patches:
        was = getattr(owner, key)
        if inspect.isfunction(was):
            assert any(fits(patch, *way) for way in ways(was)), f"{key}{inspect.signature(was)}"


def ways(function):
    """To call it with all it takes: in order, and by name."""
    taken = inspect.signature(function).parameters.values()
    (first, *rest) = (one.name for one in taken if one.kind is one.POSITIONAL_OR_KEYWORD)
    by_name = {one.name: None for one in taken if one.kind is one.KEYWORD_ONLY}
    return [((first, *rest), by_name), ((first,), by_name | dict.fromkeys(rest))]


def fits(function, in_order, by_name):
    try:
        inspect.signature(function).bind(*in_order, **by_name)
    except TypeError:
        return False
    return True


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
