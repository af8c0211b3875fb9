"""The gate: what the newest complete list shows is there, whatever else is said."""

import asyncio
import datetime as dt

import pytest
from tests.flows.harness import Wire, api_path, booking, keeping, reply, settled, verify

from octo_sync.model import Source, Subject, SubjectKind


@pytest.fixture
def service(larger):
    return larger


@pytest.fixture
def project(project):
    return project(publish=True)


def let_holds_lapse(project, service):
    """Both clocks go on until every hold of the seed is over."""
    held = [b for b in service.state()["bookings"] if b["status"] == "ON_HOLD"]
    assert held, "the seed has holds"
    later = max(dt.datetime.fromisoformat(b["utc_expires_at"]) for b in held) + dt.timedelta(minutes=1)
    service.control("PUT", "/clock", {"now": later.isoformat(), "freeze": True})
    project.clock.advance(seconds=(later - project.clock.now()).total_seconds() + 5)
    return {b["uuid"] for b in held}


async def test_a_lapsed_hold_that_is_listed_and_cannot_be_read_stays_by_every_road(project, service):
    """Its timer asks for it by its own id, which is not found, twice: the list shows it, and so it is there."""
    service.quirks(lapsed_holds_unreadable=True)
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        held = let_holds_lapse(project, service)
        service.forget_requests()
        query = keeper.ports.warehouse.query
        async with asyncio.timeout(60):
            await settled(keeper)
            while query("select * from ops.absences").rows:
                await settled(keeper)
        asked = [r["path"].rsplit("/", 1)[-1] for r in service.requests() if "/bookings/" in r["path"]]
        assert set(asked) == held
        assert query("select count(*) from core.bookings where is_deleted").rows == [(0,)]
        assert (
            query("select changed_fields from core.booking_history where changed_fields like '%is_deleted%'").rows == []
        )
        told = query("select name, seen_count from ops.schema_drift where kind = 'contradiction'").rows
        assert told == [("listed, but not found by its own id", len(held))]
        # Its list knows it: nobody asks for it again, by timer or by pull.
        service.forget_requests()
        project.clock.advance(minutes=10)
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        assert [r["path"] for r in service.requests() if "/bookings/" in r["path"]] == []
    assert [d for d in project.differences() if "booking" in d] == []
    served = await project.digests()
    await project.sync()
    assert await project.digests() == served
    found = await verify(project)
    assert (found.comparison.equal, found.complete) == (True, True), found.comparison.differences


@pytest.mark.deep(2)
async def test_a_product_that_its_list_does_not_show_either_is_deleted_soon(project, service):
    """Told by a notification: its own id is not found, the list is asked, its own id is not found again."""
    async with keeping(project) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        (gone,) = keeper.ports.warehouse.query("select min(product_id) from core.products").rows[0]
        project.remember_products()
        service.forget_requests()
        service.control("DELETE", f"/admin/products/{gone}", silent="true")
        keeper.ports.journal.subjects.mark([Subject("main", SubjectKind.PRODUCT, (gone,))], Source.NOTIFICATION)
        async with asyncio.timeout(60):
            while keeper.ports.warehouse.query("select * from core.products where is_deleted").rows == []:
                await settled(keeper)
        asked = [r["path"].rsplit("/", 1)[-1] for r in service.requests() if "/products" in r["path"]]
        assert asked == [gone, "products", gone]
        assert keeper.ports.warehouse.query("select * from ops.schema_drift where kind = 'contradiction'").rows == []
    assert project.differences() == []


async def test_a_booking_that_its_list_does_not_show_either_is_deleted_soon(project):
    """The same of a booking; no service of ours loses one, so the wire does."""
    gone, asked = [], []

    def hide(request, response):
        asked.append(api_path(request))
        if gone and api_path(request) == f"/bookings/{gone[0]}":
            return reply({"error": "INVALID_BOOKING_UUID", "errorMessage": "There is none.", "uuid": gone[0]}, 400)
        if gone and api_path(request) == "/bookings":
            return reply([one for one in response.json() if one["uuid"] != gone[0]])
        return None

    async with keeping(project, transport=Wire.by(hide)) as keeper:
        await asyncio.to_thread(keeper.pull, "full")
        await settled(keeper)
        query = keeper.ports.warehouse.query
        gone += query("select min(booking_uuid) from core.bookings where status = 'CONFIRMED'").rows[0]
        asked.clear()
        keeper.ports.journal.subjects.mark([booking(*gone)], Source.NOTIFICATION)
        async with asyncio.timeout(120):
            while query("select booking_uuid from core.bookings where is_deleted").rows != [tuple(gone)]:
                await settled(keeper)
    assert asked == [f"/bookings/{gone[0]}", "/bookings", f"/bookings/{gone[0]}"]
