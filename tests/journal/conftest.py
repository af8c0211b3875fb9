from pathlib import Path

import pytest
from tests.journal.helpers import HandClock

from octo_sync.journal import Journal


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def journal(path: Path, clock: HandClock):
    with Journal.open(path, clock=clock) as journal:
        yield journal
