"""The PostgreSQL warehouse keeps the contract, and a few promises of its own."""

import pytest
from tests.destinations import contract, corners, histories
from tests.destinations.contract import NOW

from octo_sync.destinations.postgres.warehouse import PostgresWarehouse
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


class TestPostgreSQL(contract.Contract, histories.Histories, corners.Corners):
    """The suite itself."""


def test_every_table_that_may_repeat_a_person_is_written_anew(open_warehouse):
    """An update leaves the former row in the table's file until the server writes it anew."""
    warehouse = open_warehouse()
    private = {"private.booking_contacts", "raw.records"}
    names = ("core.bookings", "core.booking_unit_items", "ops.recon_results", "ops.quarantine", "ops.runs")
    core = {f"landing.{name.partition('.')[2]}" for name in names}
    published = {*names, "marts.kept"}
    with warehouse.drafting() as draft:
        draft.run_script(["create table marts.kept as select 1 as x", "create view marts.seen as select 1 as x"])
    files = "select name, pg_relation_filenode(name::regclass) from unnest($1::text[]) as name order by 1"

    def written(shed):
        before = dict(warehouse.query(files, [sorted(every)]).rows)
        shed()
        after = dict(warehouse.query(files, [sorted(every)]).rows)
        return {name for name in every if before[name] != after[name]}

    every = private | core | published
    assert written(lambda: warehouse.shed(core=False)) == private
    assert written(lambda: warehouse.shed(core=True)) == private | core
    assert written(warehouse.shed_published) == published
    warehouse.close()


def test_a_role_that_does_not_own_the_database_sheds_what_is_its_own(postgres_server, tmp_path):
    """The server's samples are not its own: it is warned, and goes on."""
    secret, name = postgres_server.make_role("shedder"), postgres_server.make()
    postgres_server.execute(f'grant connect, create on database "{name}" to shedder')
    warehouse = opened(postgres_server.dsn(name, user="shedder", password=secret), tmp_path)
    before = warehouse.query("select pg_relation_filenode('raw.records')").rows
    warehouse.shed(core=True)
    assert warehouse.query("select pg_relation_filenode('raw.records')").rows != before
    warehouse.close()
    postgres_server.drop(name)
    postgres_server.execute("drop role shedder")
