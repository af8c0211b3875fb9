"""The PostgreSQL warehouse keeps the contract, and a few promises of its own."""

import pytest
from tests.destinations import contract, histories
from tests.destinations.contract import NOW

from octo_sync.destinations.postgres import PostgresWarehouse
from octo_sync.tables import all_tables, nouns


def opened(dsn, spool, **settings):
    return PostgresWarehouse(
        dsn, spool=spool, tables=all_tables(), nouns=nouns(), now=NOW, **{"waits": (0.05, 0.2, 0.5), **settings}
    )


@pytest.fixture(scope="module")
def blank(postgres_server, tmp_path_factory):
    """A database just made; to copy it is faster than to make one."""
    name = postgres_server.make()
    opened(postgres_server.dsn(name), tmp_path_factory.mktemp("blank")).close()
    yield name
    postgres_server.drop(name)


@pytest.fixture
def open_warehouse(tmp_path, blank, postgres_server):
    """Open a warehouse by name; the same name is the same warehouse."""
    made = {}

    def make(name="octo", **settings):
        if name not in made:
            made[name] = postgres_server.make(like=blank)
        return opened(postgres_server.dsn(made[name]), tmp_path / name, **settings)

    make.databases = made
    yield make
    for database in made.values():
        postgres_server.drop(database)


@pytest.fixture
def private():
    """Ask for private tables, which are in schemas of their own here."""
    return lambda warehouse, sql: warehouse.query(sql.format("")).rows


class TestPostgreSQL(contract.Contract, histories.Histories):
    """The suite itself."""
