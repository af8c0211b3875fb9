"""The morning, made once for all workers, and somebody who comes to work in it."""

import os
import pickle

import pytest
from filelock import FileLock
from tests.trial import morning as mornings
from tests.trial.person import Person

from octo_sync.dashboard import Dashboard, Source
from octo_sync.flows.acts import Acts
from octo_sync.journal import Journal
from octo_sync.model import Secret

TOKEN = "the key of the office"


@pytest.fixture(scope="session")
def morning(tmp_path_factory):
    """The project in its folder, and what is true."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    made = shared / "morning.pickle"
    with FileLock(shared / "morning.lock"):
        if not made.exists():
            made.write_bytes(pickle.dumps(mornings.build(shared / "morning")))
    return pickle.loads(made.read_bytes())  # noqa: S301 - written two lines above


@pytest.fixture(scope="session")
def dashboard(morning):
    """As the office has it; it keeps the pages that it has made."""
    clock = mornings.RunningClock(mornings.NOW)
    acts = Acts(lambda: Journal.open(morning.folder / "octo.journal.sqlite", clock=clock), clock, ["ledger"])
    source = Source(morning.folder / "octo.read.duckdb", morning.folder, now=lambda: mornings.NOW, acts=acts)
    app = Dashboard(source, host="127.0.0.1", token=Secret(TOKEN))
    yield app
    app.close()


@pytest.fixture
async def person(dashboard):
    """Who has just opened it: Overview."""
    async with Person(dashboard, TOKEN) as someone:
        yield someone
