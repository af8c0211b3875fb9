"""Three tiers of one suite.

everyday   `uv run pytest`: every promise at least once
ci         `uv run pytest --tier ci`: these, and deep tests drawn by a seed, as many as fit into `SECONDS`
deep       `uv run pytest --tier deep`: all there is

A test that is too dear for every day has the mark `deep(seconds)`, with the processor time it takes; `everyday=[…]` names the
parameters that run every day all the same, `everyday=3` means its first three. A test that takes the fixture `tier` runs in all
three and does more in the higher ones. A test that is named (`file.py::test`, or `-k`) runs in any tier.
"""

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import settings

__all__ = ["Tier"]

PLACE = pytest.StashKey[int]()
"""Which of its parameters a test has: the first is 0."""

EXAMPLES = {"everyday": 50, "ci": 100, "deep": 500}
"""How many examples Hypothesis makes up, where a test does not say another number."""

SECONDS = {
    "tests/simulation/test_mutants.py": 60,
    "tests/faults/": 40,
    "tests/browser/": 30,
    "tests/docs/": 40,
    "tests/": 50,
}
"""What the deep tests drawn for one run of CI may take, in seconds of one processor; the first prefix that fits counts."""


COLLECTED = pytest.StashKey[dict[str, bool]]()
"""Of every test that was found, chosen or not: whether it is deep."""


@dataclass(frozen=True)
class Tier:
    """How much is asked of a test: `choose(1, 5, 200)` is 1 every day, 5 in CI, 200 in the deep run."""

    name: str
    seed: int

    def choose(self, everyday, ci, deep):
        return {"everyday": everyday, "ci": ci, "deep": deep}[self.name]


def pytest_addoption(parser):
    group = parser.getgroup("octo-sync")
    group.addoption("--tier", choices=["everyday", "ci", "deep"], default="everyday", help="How much is tested.")
    group.addoption("--seed", type=int, help="What --tier ci draws; printed, so that a run can be repeated.")


def pytest_configure(config):
    if (workerinput := getattr(config, "workerinput", None)) is not None:
        config.option.seed = workerinput["seed"]
    elif config.option.seed is None:
        config.option.seed = random.SystemRandom().randrange(10**6) if config.option.tier == "ci" else 0
    settings.register_profile("tier", max_examples=EXAMPLES[config.option.tier])
    settings.load_profile("tier")
    config.addinivalue_line("markers", "deep(seconds, everyday=()): too dear for every day, but for these parameters")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """All workers draw the same tests: they are handed the seed."""
    node.workerinput["seed"] = node.config.option.seed


def pytest_report_header(config):
    seed = f" (repeat with --seed {config.option.seed})" if config.option.tier == "ci" else ""
    return (
        f"tier: {config.option.tier}{seed}; others: uv run pytest (every day), "
        "--tier ci (deep tests that are drawn, too), --tier deep (all, an hour or two)"
    )


def pytest_xdist_auto_num_workers(config):
    """One named test is there sooner without other processes; None leaves the number to xdist."""
    return 0 if _by_id(config) else None


@pytest.fixture(scope="session")
def tier(request):
    """The `Tier` of this run."""
    return Tier(request.config.option.tier, request.config.option.seed)


def _by_id(config):
    return bool(config.args) and all("::" in argument for argument in config.args)


def pytest_collection_modifyitems(config, items):
    places = Counter()
    for item in items:
        item.stash[PLACE] = places[item.nodeid.partition("[")[0]]
        places[item.nodeid.partition("[")[0]] += 1
    config.stash[COLLECTED] = {item.nodeid: _deep(item) is not None for item in items}
    if not _by_id(config) and not config.option.keyword:
        _check(items)
        keep = set(_chosen(items, config.option.tier, config.option.seed))
        config.hook.pytest_deselected(items=[item for item in items if item not in keep])
        items[:] = [item for item in items if item in keep]
    # The longest first, so that no worker waits for another at the end.
    items.sort(key=lambda item: not item.nodeid.startswith("tests/simulation/"))


def _chosen(items, tier, seed):
    if tier == "deep":
        return items
    chosen = [item for item in items if _deep(item) is None]
    if tier == "everyday":
        return chosen
    left = dict(SECONDS)
    for item in random.Random(seed).sample(items, len(items)):
        if (mark := _deep(item)) is not None:
            room = next(prefix for prefix in SECONDS if item.nodeid.startswith(prefix))
            (cost,) = mark.args
            if cost <= left[room]:
                left[room] -= cost
                chosen.append(item)
    return chosen


def _deep(item):
    """Its mark, where it has one that counts for its parameters."""
    mark = item.get_closest_marker("deep")
    everyday = mark.kwargs.get("everyday", ()) if mark else ()
    if isinstance(everyday, int):
        return mark if item.stash[PLACE] >= everyday else None
    return None if mark is None or (everyday and item.callspec.id in everyday) else mark


def _check(items):
    """A name in `everyday` that no test has would leave a promise out without a word."""
    ids = {}
    for item in items:
        mark = item.get_closest_marker("deep")
        if mark and not isinstance(mark.kwargs.get("everyday", 0), int):
            wanted, found = ids.setdefault(item.nodeid.partition("[")[0], (mark.kwargs["everyday"], set()))
            found.add(item.callspec.id)
    for test, (wanted, found) in ids.items():
        if unknown := set(wanted) - found:
            raise pytest.UsageError(f"{test}: everyday names {sorted(unknown)}; its parameters are {sorted(found)}")
