"""Every test of the journal runs on both engines, except those about files (`helpers.ON_A_FILE`)."""

from pathlib import Path

import psycopg
import pytest
from tests.journal.helpers import HandClock

from octo_sync.journal import Journal


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def _database(postgres_server) -> str:
    return postgres_server.make("journals")


@pytest.fixture
def fresh(engine: str, tmp_path: Path, request: pytest.FixtureRequest):
    """Where no journal is yet, each time it is called; on PostgreSQL the one before is gone then."""
    files = iter(range(1000))

    def fresh() -> Path | str:
        if engine == "sqlite":
            number = next(files)
            return tmp_path / (f"journal-{number}.sqlite" if number else "journal.sqlite")
        server, name = request.getfixturevalue("postgres_server"), request.getfixturevalue("_database")
        server.disconnect(name)
        server.execute("DROP SCHEMA IF EXISTS journal CASCADE", database=name)
        return server.dsn(name)

    return fresh


@pytest.fixture
def path(fresh):
    """Where the test's journal is: a file, or the address of a database."""
    return fresh()


@pytest.fixture
def journal(path, clock: HandClock):
    with Journal.open(path, clock=clock) as journal:
        yield journal


@pytest.fixture
def other(path, clock: HandClock, journal):
    """The journal as another process has it open."""
    with Journal.open(path, clock=clock) as opened:
        yield opened


@pytest.fixture
def admin(path):
    """The superuser in the database of a journal on a server, in a session of its own."""
    with psycopg.connect(path, autocommit=True) as session:
        yield session
