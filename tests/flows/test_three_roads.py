"""Three roads, one copy: `sync` and `serve` write the same whatever the service does; where `sync` says ok, `verify` agrees."""

import asyncio
import shutil

import pytest
from tests.flows.harness import QUICK, QUICK_SYNC, Project
from tests.flows.test_keep import booking, keeping, settled
from tests.flows.test_switches import DOUBLED, QUIRK_CASES, TOGETHER, VANISHING
from tests.flows.test_verify import verify

from octo_sync.flows.settle import HELD
from octo_sync.model import Source

SETTINGS = {"publish": True, "limits": {**QUICK, "max_4xx_per_minute": 10_000}, "sync": QUICK_SYNC}
QUIRKS = {
    **{name: value for name, (value, *_) in QUIRK_CASES.items() if "/" not in name},
    **TOGETHER,
    **VANISHING,
    "entries_doubled": DOUBLED,
}


@pytest.fixture
def service(larger):
    return larger


@pytest.fixture
def project(project):
    return project(**SETTINGS)


def is_undecided(keeper):
    """Whether something is missed of which neither a second look nor the measure for losses has decided yet."""
    held = any(entry.resource == HELD for entry in keeper.ports.journal.quarantined())
    return not held and keeper.ports.warehouse.query("select * from ops.absences").rows


@pytest.mark.deep(8, everyday=["fields_moved"])
@pytest.mark.parametrize("quirk", QUIRKS)
async def test_three_roads_give_one_copy_of_one_service(project, service, quirk):
    """The habit begins one day; bookings change; one copy pulls, the other is told of each booking and pulls afterwards."""
    await project.sync()
    shutil.copytree(project.directory, project.directory.with_name("served"))
    served = Project(project.directory.with_name("served"), service, **SETTINGS)
    before = {b["uuid"]: b for b in service.state()["bookings"]}
    service.quirks(**{quirk: QUIRKS[quirk]})
    service.traffic(15, seed="roads")
    changed = [b["uuid"] for b in service.state()["bookings"] if before.get(b["uuid"]) != b]
    assert changed
    result = await project.sync()
    async with keeping(served) as keeper:
        keeper.ports.journal.mark([booking(uuid) for uuid in changed], Source.NOTIFICATION)
        await settled(keeper, within=60)
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper, within=60)
        async with asyncio.timeout(60):
            while is_undecided(keeper):
                await settled(keeper, within=60)
    pulled, told = project.warehouse(), served.warehouse()
    assert {table for table in pulled if sorted(pulled[table], key=str) != sorted(told[table], key=str)} == set()
    assert await project.digests() == await served.digests()
    found = await verify(project)
    if result.status == "ok":
        assert found.complete
        assert found.comparison.equal, found.comparison.differences[:5]
