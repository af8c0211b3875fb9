"""Several workers of one project on PostgreSQL: each on connections of its own, and one takes over what another leaves.

What they have made together is compared with what one worker makes alone, row by row in both directions.
"""

import contextlib
import re
from collections import Counter

import deltalake
import pytest
from tests.faults.serving import Sandbox, go_on, stop, until
from tests.faults.workers import Workers, differing

SLOW = {"fault": "latency", "seconds": 0.4}
"""So that waiting for the service is what takes the time, and a pull is long enough to be met in the middle."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    with Sandbox(tmp_path_factory.mktemp("sandbox"), bookings=60, products=2, days=30, more=["--frozen"]) as made:
        made.faults(SLOW)
        yield made


@pytest.fixture(scope="module")
def alone(sandbox, tmp_path_factory, postgres_server):
    """What one worker makes of it, and how often it asked."""
    name = postgres_server.make()
    copy = Workers(tmp_path_factory.mktemp("alone"), sandbox, postgres_server.dsn(name))
    with copy.worker() as one:
        copy.until_clean()
        until(copy.published, 30, copy.said)
        assert one.terminate()[0] == 143
    yield copy.rows()
    postgres_server.drop(name)


@pytest.fixture
def copy(tmp_path, sandbox, postgres_database):
    return Workers(tmp_path / "copy", sandbox, postgres_database)


def equal(copy, alone):
    """Both ways nothing is left over."""
    copy.until_clean()
    until(copy.published, 30, copy.said)
    found = copy.rows()
    assert sum(sum(rows.values()) for rows in alone.values()) > 100
    assert {name: (rows - alone[name], alone[name] - rows) for name, rows in found.items() if rows != alone[name]} == {}


@contextlib.contextmanager
def two(copy):
    """Two workers that both are in the middle of their work: the one that keeps the copy as a whole, and the other."""
    with copy.worker() as one, copy.worker() as other:
        until(lambda: set(copy.owners().values()) == {one.pid, other.pid}, 30, copy.said)
        ((keeper,),) = copy.ask("select pid from leases where name = 'writer'")
        yield (one, other) if keeper == one.pid else (other, one)


def test_three_workers_land_different_connections_at_the_same_time_and_what_one_would(copy, alone, sandbox):
    sandbox.faults({**SLOW, "seconds": 3})  # nobody is done before it was seen who works
    with copy.worker() as first, copy.worker() as second, copy.worker() as third:
        pids = {first.pid, second.pid, third.pid}
        until(lambda: set(copy.owners().values()) == pids, 30, copy.said)
        until(lambda: all(f"pid {pid} on" in copy.run("status")[1] for pid in pids), 30, copy.said)
        sandbox.faults(SLOW)
        equal(copy, alone)
        counted = Counter(name for name, _ in copy.ask("select distinct run_id, connection_id from landing.coverage"))
        assert len(counted) == 3, counted
        assert sum("works beside it" in each.said() for each in (first, second, third)) == 2


@pytest.mark.deep(20)
def test_what_workers_publish_is_in_delta_tables_too_whoever_of_them_is_killed(tmp_path, sandbox, postgres_database):
    lake = tmp_path / "lake"
    copy = Workers(tmp_path / "copy", sandbox, postgres_database, lake=lake)
    with two(copy) as (keeps, _):
        keeps.kill()
        copy.until_clean()
        until(lambda: differing(copy.address, lake) == {}, 5, lambda: (differing(copy.address, lake), copy.said()))
    published = deltalake.DeltaTable(f"{lake}/octo_sync_published").to_pyarrow_table()["table_name"].to_pylist()
    tables = {name: deltalake.DeltaTable(f"{lake}/{name}") for name in published}
    assert [name for name, table in tables.items() if not table.metadata().description] == []
    columns = [(name, field) for name, table in tables.items() for field in table.schema().fields]
    assert [(name, field.name) for name, field in columns if not field.metadata.get("comment")] == []


@pytest.mark.deep(15, everyday=["keeps"])
@pytest.mark.parametrize("who", ["keeps", "helps"])
def test_of_a_killed_worker_another_takes_the_connections_over(copy, alone, who):
    with two(copy) as workers:
        killed, left = workers if who == "keeps" else workers[::-1]
        killed.kill()
        equal(copy, alone)
        assert set(copy.owners().values()) <= {left.pid}
        until(lambda: copy.runs()["killed"] >= 1, 30, copy.said)
        assert copy.runs()["running"] >= 1


@pytest.mark.deep(15)
@pytest.mark.parametrize("who", ["keeps", "helps"])
def test_a_worker_that_stood_still_for_too_long_changes_nothing_when_it_goes_on(copy, alone, who):
    with two(copy) as workers:
        still, left = workers if who == "keeps" else workers[::-1]
        stop(still.pid)
        assert still.pid in copy.owners().values()
        until(lambda: set(copy.owners().values()) == {left.pid}, 60, copy.said)
        equal(copy, alone)
        said = still.said()
        run = re.findall(r"\(run (\S+)\)", said)[-1]
        before = copy.landed_in(run)
        go_on(still.pid)
        until(lambda: "works on this project" in still.said().removeprefix(said), 30, copy.said)
        equal(copy, alone)
        assert copy.landed_in(run) <= before


@pytest.mark.deep(15, everyday=["helps"])
@pytest.mark.parametrize("who", ["keeps", "helps"])
def test_a_worker_that_is_stopped_gives_its_work_back_within_five_seconds(copy, alone, who):
    with two(copy) as workers:
        stopped, left = workers if who == "keeps" else workers[::-1]
        code, took = stopped.terminate()
        assert (code, took < 5) == (143, True), took
        assert set(copy.owners().values()) <= {left.pid}
        equal(copy, alone)
        assert copy.runs()["killed"] == 0
