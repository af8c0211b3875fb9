"""Each check sees the fault it is for on PostgreSQL too, and what it sees keeps the former marts in place."""

import pytest
from tests.destinations.test_postgres import blank, opened
from tests.unit.test_warehouse_files import FAULTS
from tests.warehouse.test_checks import *  # noqa: F403 - the same tests, on a warehouse that is made here

from octo_sync.flows.publish import publish

# It plants with `select * replace`, which is DuckDB's own; `FAULTS` has a fault in the totals for this engine.
del test_a_mart_that_loses_or_multiplies_is_found_in_each_of_its_totals  # noqa: F821 - it came with the star

__all__ = ["blank"]


@pytest.fixture(scope="module")
def _made(blank, postgres_server, tmp_path_factory):
    name = postgres_server.make(like=blank)
    made = opened(postgres_server.dsn(name), tmp_path_factory.mktemp("checks"))
    yield made
    made.close()
    postgres_server.drop(name)


def test_these_tests_ask_a_server(warehouse):
    assert "PostgreSQL" in warehouse.query("select version()").rows[0][0]


@pytest.mark.deep(0.1, everyday=1)
@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_that_was_planted_keeps_the_former_marts(warehouse, tmp_path, check):
    assert publish(warehouse, tmp_path, tmp_path / "unused").failed == ()
    former = warehouse.query("select 'marts.fct_bookings'::regclass::oid").rows

    warehouse.run_script([FAULTS[check]])
    published = publish(warehouse, tmp_path, tmp_path / "unused")

    assert check in {failed.check.name for failed in published.failed}
    assert published.size is None
    assert warehouse.query("select 'marts.fct_bookings'::regclass::oid").rows == former
