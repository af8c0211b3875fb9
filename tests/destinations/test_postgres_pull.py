"""The whole job on PostgreSQL: pulls, changes and deletions against the service, compared with the oracle and with DuckDB."""

import pytest
from tests.flows.harness import Project

from octo_sync.flows.sync.pull import Scope


@pytest.fixture
def on_postgres(tmp_path, service, postgres_database):
    return Project(tmp_path / "postgres", service, destination=postgres_database, publish=True)


def said(digests):
    return sorted((d.table, d.rows, d.digest) for d in digests)


@pytest.mark.deep(7)
async def test_a_pull_changes_and_deletions_give_the_same_as_the_source_and_as_duckdb(on_postgres, tmp_path, service):
    on_duckdb = Project(tmp_path / "duckdb", service)
    on_postgres.remember_products()
    for project in (on_postgres, on_duckdb):
        assert (await project.sync(seed=1)).status == "ok"
    assert on_postgres.differences() == []
    assert said(await on_postgres.digests()) == said(await on_duckdb.digests())

    service.traffic(120)
    service.faults({"fault": "malformed", "match": {"path": "/supplier"}})
    for project in (on_postgres, on_duckdb):
        assert (await project.sync(seed=2)).status != "ok", "the fault fired"
    service.faults()
    for project in (on_postgres, on_duckdb):
        for seed in (3, 4):
            await project.sync(seed=seed, allow_deletions=True)
    assert on_postgres.differences() == []
    assert said(await on_postgres.digests()) == said(await on_duckdb.digests())


@pytest.mark.deep(2)
async def test_a_run_of_what_did_not_change_writes_nothing_but_coverage(on_postgres):
    await on_postgres.sync(seed=1)
    before = said(await on_postgres.digests())
    totals = (await on_postgres.sync(seed=2, scope=Scope(full=True))).totals
    assert totals.unchanged > 0
    assert totals.rows == 0
    assert said(await on_postgres.digests()) == before
