"""Absent is not null, at every depth: what answers have no more stays, is marked as older, and is told (R10)."""

import asyncio
import shutil

import pytest
from tests.flows.harness import Project

from octo_sync.app.project import open_journal
from octo_sync.destinations.gate import Guard, Loss, judge
from octo_sync.flows import horizon
from octo_sync.flows.status.report import status
from octo_sync.flows.sync.drift import accept
from octo_sync.flows.sync.work import Worker
from octo_sync.flows.verify import claims
from octo_sync.model import Source, Subject, SubjectKind


@pytest.fixture
def service(larger):
    return larger


@pytest.fixture(scope="module")
def landed(_larger, tmp_path_factory):
    _larger.reset()
    project = Project(tmp_path_factory.mktemp("landed") / "project", _larger)
    asyncio.run(project.sync())
    return project.directory


@pytest.fixture
def copy(tmp_path, service, landed):
    shutil.copytree(landed, tmp_path / "project")
    return Project(tmp_path / "project", service)


VANISHED = {
    "left out": ({"fields_dropped": ["booking.utcUpdatedAt"]}, "utcUpdatedAt", "core.bookings", "utc_updated_at"),
    "null": ({"fields_set": {"booking.pricing": None}}, "pricing.retail", "core.bookings", "retail_amount"),
    "renamed": (
        {"fields_moved": {"product.internalName": "name"}}, "internalName", "core.products", "internal_name",
    ),
    "nested": (
        {"fields_dropped": ["unit.restrictions.paxCount"]}, "options.units.restrictions.paxCount", "core.units", "pax_count",
    ),
    "a list that is null": (
        {"fields_set": {"availability.unitPricing": None}}, "unitPricing", "core.availability", "availability_prices",
    ),
    "inside a list": (
        {"fields_dropped": ["availability.unitPricing.retail"]},
        "unitPricing.retail", "core.availability", "availability_prices.retail_amount",
    ),
    "taxes": ({"fields_dropped": ["booking.pricing.includedTaxes"]}, "pricing.includedTaxes", "core.bookings", "tax_amount"),
    "extras": (
        {"fields_dropped": ["booking.extraItems", "unitItem.extraItems"]}, "extraItems", "core.bookings", "booking_extra_items",
    ),
    "tickets": ({"fields_set": {"booking.unitItems": None}}, "unitItems", "core.booking_unit_items", "*"),
    "extras of products": (
        {"fields_dropped": ["unit.extras", "option.extras"]}, "options.units.extras", "core.extras", "*",
    ),
    "prices of products": (
        {"fields_dropped": ["unit.pricingFrom"]}, "options.units.pricingFrom", "core.products", "unit_prices",
    ),
    "contacts": (
        {"fields_moved": {"booking.contact": "contact.person"}}, "contact", "personal.private.booking_contacts", "*",
    ),
}  # fmt: skip


@pytest.mark.deep(1, everyday=["inside a list"])
@pytest.mark.parametrize("what", VANISHED)
async def test_a_field_that_vanishes_takes_no_value_with_it(copy, service, what):
    quirk, path, table, entry = VANISHED[what]
    before = copy.warehouse()
    service.quirks(**quirk)
    result = await copy.sync()
    now = copy.warehouse()
    assert {t: n for t in before if (n := changed(before[t], now[t]))} == {}
    found = dict(copy.query("select name, seen_count from ops.schema_drift where kind = 'missing'"))
    assert found.get(path, 0) > 1, found
    marked = copy.query(
        f"select count(*) from {table} where list_contains(string_split(stale_columns, ','), '{entry}') and not is_deleted"
    )
    assert marked[0][0] > 1
    assert result.status == "partial"
    with open_journal(copy.pipeline, copy.clock) as journal:
        (told,) = status(copy.pipeline, journal, None, clock=copy.clock, alive=lambda *_: False).connections
    assert (told.held, sorted(told.kept)) == ([], sorted(q.reason for q in result.quarantined)), "no deletion"
    assert any(q.key.startswith(path.split(".")[0], q.key.find(".") + 1) for q in result.quarantined)


def changed(before, now):
    gone, new = [str(r) for r in before if r not in now], [str(r) for r in now if r not in before]
    return [*gone[:2], *new[:2]]


async def stale(copy, table="core.bookings"):
    return copy.query(f"select count(*) from {table} where stale_columns is not null")[0][0]


async def test_one_booking_that_really_lost_its_price_loses_it_and_is_no_drift(copy, service):
    """Its list shows the prices of the others: the field is there, and this booking has none."""
    uuid = next(b["uuid"] for b in service.state()["bookings"] if b["status"] == "CONFIRMED" and not b["freesale"])
    service.quirks(fields_set={f"booking[{uuid}].pricing": None})
    result = await copy.sync()
    priced = "select retail_amount, currency, stale_columns from core.bookings where booking_uuid = $1"
    assert copy.query(priced, uuid) == [(None, None, None)]
    assert copy.query("select count(*) from core.booking_taxes where booking_uuid = $1", uuid) == [(0,)]
    assert copy.query("select * from ops.schema_drift where kind = 'missing'") == []
    assert result.status == "ok"


async def test_a_booking_that_is_asked_for_alone_keeps_its_price_until_a_list_decides(copy, service):
    """Its own answer cannot tell whether it lost its price, or the service sends prices no more."""
    uuid = next(b["uuid"] for b in service.state()["bookings"] if b["status"] == "CONFIRMED" and not b["freesale"])
    service.quirks(fields_set={f"booking[{uuid}].pricing": None})
    own = Subject("main", SubjectKind.BOOKING, (uuid,))
    async with copy.opened() as opened:
        opened.ports.mark([own], Source.NOTIFICATION)
        await Worker(opened.ports).drain()
    priced = "select retail_amount is null, contains(stale_columns, 'retail_amount') from core.bookings where booking_uuid = $1"
    assert copy.query(priced, uuid) == [(False, True)]
    assert copy.query("select * from ops.schema_drift where kind = 'missing'") == []
    assert (await copy.sync()).status == "ok"
    assert copy.query(priced, uuid) == [(True, None)]


@pytest.mark.parametrize(
    ("loss", "lately", "verdict"),
    [
        (Loss(10, 2), (0, 0), "real"),
        (Loss(10, 2), (10, 2), "drift"),
        (Loss(1, 0), (0, 0), "real"),
        (Loss(1, 0), (1, 0), "drift"),
        (Loss(1, 0), (1, 50), "real"),
        (Loss(2, 0), (1, 50), "drift"),
        (Loss(1, 0, alone=True), (0, 0), "drift"),
        (Loss(1, 0, listed=False), (0, 0), "doubtful"),
    ],
)
def test_few_lost_it_or_it_is_gone(loss, lately, verdict):
    assert judge(loss, Guard(), lately=lately) == verdict


@pytest.mark.deep(1)
async def test_many_small_losses_of_a_day_are_a_large_one(tmp_path, service, landed):
    """Each list lost one price, which is few; the second one of a day is more than this pipeline lets go."""
    shutil.copytree(landed, tmp_path / "project")
    copy = Project(tmp_path / "project", service, sync={"deletion_rows": 1, "deletion_share": 0.0})
    first, second = (b["uuid"] for b in service.state()["bookings"][:2])
    told = "select name from ops.schema_drift where kind = 'missing'"
    async with copy.opened() as opened:
        for uuid, fields in ((first, []), (second, [("id",)])):
            service.quirks(fields_dropped=[f"booking[{uuid}].id"])
            opened.ports.mark(horizon.subjects(opened.ports, ["main"], {"bookings"}), Source.SCHEDULE)
            await Worker(opened.ports).drain()
            assert opened.ports.warehouse.query(told).rows == fields


async def test_what_is_missing_is_told_until_it_is_back(copy, service):
    before = copy.warehouse()
    service.quirks(fields_dropped=["booking.utcUpdatedAt"])
    assert (await copy.sync()).status == "partial"
    assert (await copy.sync()).status == "partial", "also when nothing has changed since"
    service.quirks(fields_dropped=[])
    result = await copy.sync()
    assert (result.status, result.quarantined) == ("ok", ())
    assert await stale(copy) == 0
    assert copy.query("select * from ops.schema_drift where kind = 'missing'") == []
    assert changed(before["core.bookings"], copy.warehouse()["core.bookings"]) == []


@pytest.mark.deep(2)
async def test_what_a_person_accepts_goes_and_is_told_no_more(copy, service):
    service.quirks(fields_dropped=["booking.utcUpdatedAt"], fields_set={"availability.unitPricing": None})
    await copy.sync()
    with open_journal(copy.pipeline, copy.clock) as journal:
        assert {e.key for e in accept(journal, "utcUpdatedAt")} == {"bookings.utcUpdatedAt"}
        assert {e.key for e in accept(journal, "availability.unitPricing")} == {"availability.unitPricing"}
        assert accept(journal, "pricing") == []
    result = await copy.sync()
    assert (result.status, result.quarantined) == ("ok", ())
    assert copy.query("select count(*) from core.bookings where utc_updated_at is not null") == [(0,)]
    assert copy.query("select count(*) from core.availability_prices where unit_id <> ''") == [(0,)]
    assert [await stale(copy), await stale(copy, "core.availability")] == [0, 0]


async def test_a_service_that_never_had_a_capability_keeps_nothing_and_lacks_nothing(tmp_path, service):
    service.reset()
    service.quirks(absent_capability=["extras"])
    copy = Project(tmp_path / "bare", service)
    assert (await copy.sync()).status == "ok"
    async with copy.opened() as opened:
        assert claims(opened.ports, []).problems == []
    service.quirks(absent_capability=[])
    assert (await copy.sync()).status == "ok"
    service.quirks(absent_capability=["extras"])
    assert (await copy.sync()).status == "partial", "now there is something that is older"
    async with copy.opened() as opened:
        assert [p for p in claims(opened.ports, []).problems if "lacks extras" in p] != []
    service.quirks(absent_capability=[])


async def test_new_and_renamed_fields_are_found_at_every_depth_in_every_answer(copy, service):
    known = copy.query("select name from ops.schema_drift where kind = 'field'")
    assert known == [], "a faithful service sends nothing that nobody knows"
    uuid = max(b["uuid"] for b in service.state()["bookings"] if not b["freesale"])
    service.quirks(
        fields_set={
            "unit.restrictions.minWeight": 20,
            f"booking[{uuid}].pickup": {"id": "x"},
            "unitItem.seat": "4C",
            "availability.unitPricing.fee": 1,
        },
        fields_moved={"product.internalName": "name"},
    )
    await copy.sync()
    found = {name for (name,) in copy.query("select name from ops.schema_drift where kind = 'field'")}
    assert found == {
        "options.units.restrictions.minWeight", "pickup", "unitItems.seat", "unitPricing.fee", "name",
    }  # fmt: skip
