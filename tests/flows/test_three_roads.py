"""Three roads, one copy: `sync` and `serve` write the same whatever the service does; where `sync` says ok, `verify` agrees."""

import asyncio
import shutil

import pytest
from tests.flows.harness import QUICK, QUICK_SYNC, Project, booking, keeping, settled, verify
from tests.flows.test_switches import DOUBLED, QUIRK_CASES, SLOW, TOGETHER, VANISHING

from octo_sync.flows.sync.settle import HELD
from octo_sync.model import Source
from octo_sync.sandbox.quirks import CATALOGUE

SETTINGS = {"publish": True, "limits": {**QUICK, "max_4xx_per_minute": 10_000}, "sync": QUICK_SYNC}
LEFT_OUT = {
    "supplier_path_prefix": "nothing lands with it: two copies that nobody touched would be compared",
    "supplier_path_prefix/in the address": "nothing lands before it",
    "rate_limit_per_minute": "chance decides which requests are let through; TOGETHER has a limit that lets all through",
}
QUIRKS = [
    # Of a booking beyond the days asked for a pull knows nothing: all days are asked for.
    *(
        (name, value, {key: one for key, one in asked.items() if key != "bookings"})
        for name, (value, _, asked) in QUIRK_CASES.items()
        if name not in LEFT_OUT
    ),
    *((name, value, {}) for name, value in TOGETHER.items()),
    *((f"{name}/vanishing", value, {}) for name, value in VANISHING.items()),
    ("entries_doubled", DOUBLED, {}),
]
DIFFERS = {"fields_dropped/vanishing": "a list that is left out stays: prices of units, not what stands in for them"}
"""Where the copy knows what the service no longer says, and is not what a fresh pull gives."""


@pytest.fixture
def service(larger):
    return larger


def is_undecided(keeper):
    """Whether something is missed of which neither a second look nor the measure for losses has decided yet."""
    held = any(entry.resource == HELD for entry in keeper.ports.journal.quarantine.entries())
    return not held and keeper.ports.warehouse.query("select * from ops.absences").rows


@pytest.mark.deep(8)
@pytest.mark.parametrize(("name", "value", "asked"), QUIRKS, ids=[name for name, *_ in QUIRKS])
async def test_three_roads_give_one_copy_of_one_service(project, service, name, value, asked):
    """The habit begins one day; bookings change; one copy pulls, the other is told of each booking and pulls afterwards."""
    project = project(**SETTINGS, **asked)
    await project.sync()
    shutil.copytree(project.directory, project.directory.with_name("served"))
    served = Project(project.directory.with_name("served"), service, **SETTINGS, **asked)
    if name in SLOW:
        for one in project, served:
            one.set_limits(**SETTINGS["limits"] | {"deadline": "0.7s"})
    before = {b["uuid"]: b for b in service.state()["bookings"]}
    service.quirks(**{name.split("/")[0]: value})
    service.traffic(15, seed="roads")
    changed = [b["uuid"] for b in service.state()["bookings"] if before.get(b["uuid"]) != b]
    assert changed
    result = await project.sync()
    async with keeping(served) as keeper:
        keeper.ports.journal.subjects.mark([booking(uuid) for uuid in changed], Source.NOTIFICATION)
        await settled(keeper)
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        async with asyncio.timeout(120):
            while is_undecided(keeper):
                await settled(keeper)
    pulled, told = project.warehouse(), served.warehouse()
    assert {table for table in pulled if sorted(pulled[table], key=str) != sorted(told[table], key=str)} == set()
    assert await project.digests() == await served.digests()
    if result.held:
        await project.sync(allow_deletions=True)
    found = await verify(project)
    if result.status == "ok":
        assert found.complete
    assert found.comparison.equal == (name not in DIFFERS), found.comparison.differences[:5]


def test_every_case_is_one_of_its_own():
    names = [name for name, *_ in QUIRKS]
    assert len(names) == len(set(names))
    assert {name.split("/")[0] for name in names} | {"supplier_path_prefix"} == {quirk.name for quirk in CATALOGUE}
