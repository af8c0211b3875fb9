"""Waiting for our own budget is nobody's failure: a slow service is asked slowly, and everything lands."""

import asyncio
import re

import httpx
import pytest
from tests.flows.harness import settled
from tests.flows.virtual import lived

SLOWLY = {"requests_per_minute": 2}
FAR = r"(\d+) subjects done, [\d,]+ rows written; (\d+) pending\."


@pytest.mark.deep(8)
@pytest.mark.parametrize("retry_after", [None, 120])
def test_a_small_budget_costs_time_and_no_try(tmp_path, caplog, retry_after):
    """Two requests a minute, and once a 429 that asks for more patience than a request has."""

    async def life(service):
        project = service.project(tmp_path, limits=SLOWLY, sync={"confirm_after": ("5s",)})

        def once(request, response):
            if retry_after and len(service.log) == 5:
                return httpx.Response(429, headers={"Retry-After": str(retry_after)}, json={})
            return None

        service.edit = once
        async with service.keeping(project) as keeper:
            keeper.pull("full")
            for _ in range(40):
                await asyncio.sleep(60)
                assert keeper._worker.troubles == []
            rows = list(keeper.ports.journal.subjects.rows())
            assert [row.subject for row in rows if row.dirty] == []
            assert keeper.ports.journal.quarantine.entries() == []
            assert [run.status for run in keeper.ports.journal.runs.last(1)] == ["ok"]
            moments = [moment for moment, _ in service.log]
            return len(rows), moments

    caplog.set_level("WARNING", logger="octo_sync")
    subjects, moments = lived(life, bookings=30, days=20, products=3)
    assert subjects >= 20
    failed = [record for record in caplog.records if "action=fetch_failed" in record.msg]
    assert failed == [], "being held off is no failure"
    assert len(moments) <= subjects + 1 + 1, "every subject was asked for once, and the refused one again"
    if retry_after:
        assert moments[5] - moments[4] > retry_after


def test_a_long_pull_says_how_far_it_is_until_it_is_over(tmp_path):
    said = []

    async def life(service):
        project = service.project(tmp_path, limits={"requests_per_minute": 30})
        async with service.keeping(project, say=said.append) as keeper:
            keeper.pull("full")
            await settled(keeper, within=3600)
            before = len(said)
            await asyncio.sleep(600)
            assert len(said) == before, "there is nothing to do"
            return keeper.landed

    landed = lived(life, bookings=30, days=20, products=3)
    far = [found for line in said if (found := re.fullmatch(FAR, line))]
    done, left = zip(*((int(each[1]), int(each[2])) for each in far), strict=True)
    assert 1 < len(far) < 10, said
    assert list(done) == sorted(set(done))
    assert {a + b for a, b in zip(done, left, strict=True)} == {landed}
