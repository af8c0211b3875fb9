"""The past that the copy tells is the past that was, and what did not change leaves nothing but a newer verification."""

import datetime as dt
from random import Random

import pytest
from tests.destinations.test_migrating import opened
from tests.flows.harness import NOON, Project, Service, keeping, settled, small

from octo_sync.flows.publish import apply_marts
from octo_sync.model import Source, Subject, SubjectKind

FOLLOWED = ("status", "local_date", "product_id", "option_id", "retail_amount", "net_amount", "currency", "pax_count")
SLOT = ("local_date", "status", "is_available", "vacancies", "capacity")


@pytest.fixture(scope="module")
def service():
    with Service(small(bookings=80, days=20, products=4)) as running:
        yield running


@pytest.fixture
def project(tmp_path, service):
    service.reset()
    return Project(tmp_path, service, publish=True, bookings=(-200, 90))


def later(project, **delta):
    """The same step for the service's clock and for ours."""
    project.clock.advance(**delta)
    project.service.control("PUT", "/clock", {"now": project.clock.now().isoformat(), "freeze": True})


async def synced(project):
    """Sync; what the service says then, by the independent normaliser, and the instant after."""
    assert (await project.sync()).published
    said = project.oracle()
    return (
        project.clock.now(),
        {row["booking_uuid"]: tuple(row[c] for c in FOLLOWED) for row in said["core.bookings"]},
        {
            (row["product_id"], row["option_id"], row["availability_id"]): tuple(row[c] for c in SLOT)
            for row in said["core.availability"]
        },
    )


def as_of(project, table, key, columns, instant):
    rows = project.query(
        f"select {', '.join([*key, *columns])} from {table} "
        "where valid_from_utc <= $1 and (valid_to_utc is null or valid_to_utc > $1)",
        instant,
    )
    found = {row[: len(key)] if len(key) > 1 else row[0]: row[len(key) :] for row in rows}
    assert len(found) == len(rows), "one version at a time"
    return found


@pytest.mark.deep(14)
async def test_at_any_instant_the_copy_tells_what_the_service_said_at_the_last_sync(project, service):
    rounds = []
    for number in range(5):
        if number:
            later(project, hours=1)
            changed = service.traffic(25, seed=f"round-{number}")
            assert changed
        rounds.append(await synced(project))
    random = Random(4)
    changed = 0
    ends = [at for at, *_ in rounds[1:]] + [project.clock.now() + dt.timedelta(days=3)]
    store = service._box.service.store
    for (at, bookings, slots), end in zip(rounds, ends, strict=True):
        # A sync lasts a little, so the hour ends a little before the next one's end.
        for instant in [at, *(at + random.random() * (end - at - dt.timedelta(minutes=5)) for _ in range(5))]:
            told = as_of(project, "core.booking_history", ("booking_uuid",), FOLLOWED, instant)
            assert told == bookings
            assert {uuid: row[0] for uuid, row in told.items()} == {
                uuid: store.as_of(store.bookings[uuid], at.timestamp()).status for uuid in told
            }
            versions = as_of(
                project, "core.availability_history", ("product_id", "option_id", "availability_id"), SLOT, instant
            )
            assert {key: row for key, row in versions.items() if slots.get(key, row) != row} == {}
            changed += len(versions)
    assert len({tuple(sorted(bookings.items())) for _, bookings, _ in rounds}) == 5, "each round changed something"
    assert changed > 20
    # A departure without versions has been what it is since it was first seen.
    first = rounds[0][2]
    for *key, row in project.query(
        "select product_id, option_id, availability_id, {'row': (local_date, status, is_available, vacancies, capacity)} "
        "from core.availability a where not is_deleted and not exists (select 1 from core.availability_history h "
        "where h.product_id = a.product_id and h.option_id = a.option_id and h.availability_id = a.availability_id)"
    ):
        assert first.get(tuple(key), tuple(row["row"])) == tuple(row["row"])


@pytest.mark.deep(6)
async def test_the_mart_tells_the_same_and_every_change_with_what_was_before(project, service):
    await synced(project)
    later(project, hours=1)
    service.traffic(30, seed="mart")
    await synced(project)
    for instant in (NOON + dt.timedelta(minutes=30), project.clock.now()):
        told = as_of(project, "core.booking_history", ("booking_uuid",), ("status", "retail_amount"), instant)
        tests = {uuid for (uuid,) in project.query("select booking_uuid from core.bookings where is_test")}
        rows = project.query(
            "select booking_uuid, status, retail_amount from marts.fct_booking_events where event_at_utc <= $1 "
            "and (valid_to_utc is null or valid_to_utc > $1) and not is_gone", instant
        )  # fmt: skip
        assert {uuid: (status, amount) for uuid, status, amount in rows} == {
            uuid: row for uuid, row in told.items() if uuid not in tests
        }
    events = project.query(
        "select version_no, previous_status, status, changed_fields, booking_uuid from marts.fct_booking_events"
    )
    assert any(number == 2 for number, *_ in events)
    for number, before, status, fields, uuid in events:
        assert (number == 1) == (before is None) == (fields == ""), uuid
        assert number == 1 or (before != status) == ("status" in fields.split(",")), uuid


@pytest.mark.deep(2)
async def test_an_unchanged_pull_renews_the_evidence_and_adds_no_version(project):
    await synced(project)
    versions = project.query("select * from core.booking_history order by all")
    evidence = (
        "select resource, product_id, travel_month, verified_at_utc, verified_by, is_complete from marts.coverage"
    )
    before = {row[:3]: row[3:] for row in project.query(evidence)}
    bookings = dict(project.query("select booking_uuid, verified_at_utc from marts.fct_bookings"))
    later(project, hours=2)
    await synced(project)
    assert project.query("select * from core.booking_history order by all") == versions
    assert project.query("select count(*) from core.availability_history") == [(0,)]
    after = {row[:3]: row[3:] for row in project.query(evidence)}
    assert after.keys() == before.keys()
    for key, (verified, by, is_complete) in after.items():
        assert (verified > before[key][0] + dt.timedelta(hours=1), by, is_complete) == (True, "schedule", True), key
    renewed = project.query("select booking_uuid, verified_at_utc, verified_by from marts.fct_bookings")
    assert len(renewed) == len(bookings) > 50
    for uuid, verified, by in renewed:
        assert (verified > bookings[uuid] + dt.timedelta(hours=1), by) == (True, "schedule"), uuid


@pytest.mark.deep(2)
async def test_a_notification_is_the_source_of_what_it_brought_and_its_repetition_of_nothing(project, service):
    await synced(project)
    uuid = project.query("select min(booking_uuid) from core.bookings where status = 'CONFIRMED'")[0][0]
    later(project, hours=1)
    service.change(uuid, status="CANCELLED", silent=True)
    async with keeping(project) as keeper:
        for _ in range(2):
            keeper.ports.journal.subjects.mark([Subject("main", SubjectKind.BOOKING, (uuid,))], Source.NOTIFICATION)
            await settled(keeper)
    found = project.query(
        "select version_no, changed_fields, source, status from core.booking_history where booking_uuid = $1 order by 1",
        uuid,
    )
    assert found == [(1, "", "schedule", "CONFIRMED"), (2, "status", "notification", "CANCELLED")]


def test_the_evidence_names_what_is_missing_incomplete_or_older(tmp_path):
    warehouse = opened(tmp_path)
    cover = (
        "insert into ops.coverage (connection_id, resource, key, product_id, option_id, travel_month, window_start, "
        "window_end, verified_at_utc, source, row_count, is_complete, missing_capabilities) values "
    )
    month = "'2026-12', '2026-12-01', '2026-12-31'"
    warehouse.run_script(
        [
            "insert into core.products (connection_id, product_id, is_deleted) values ('c', 'p', false)",
            (
                "insert into core.options (connection_id, product_id, option_id, is_deleted) "
                "values ('c', 'p', 'a', false), ('c', 'p', 'b', false), ('c', 'p', 'gone', true)"
            ),
            (
                "insert into core.bookings (connection_id, booking_uuid, local_date, is_deleted, is_test) values "
                "('c', 'own', '2026-12-05', false, false), ('c', 'listed', '2026-12-06', false, false)"
            ),
            f"{cover} ('c', 'availability', 'a', 'p', 'a', {month}, '2026-11-20 10:00Z', 'notification', 3, true, '')",
            f"{cover} ('c', 'availability', 'x', 'p', 'gone', {month}, '2026-11-01 10:00Z', 'user', 3, false, '')",
            f"{cover} ('c', 'bookings', 'm', null, null, {month}, '2026-11-20 08:00Z', 'schedule', 2, true, 'extras')",
            f"""{cover} ('c', 'booking', '["own"]', null, null, null, null, null, '2026-11-20 09:00Z', 'confirm', 1,
            true, '')""",
        ]
    )
    apply_marts(warehouse, tmp_path)
    coverage = (
        "select resource, product_id, verified_at_utc, verified_by, is_complete, parts, parts_wanted, "
        "missing_capabilities from marts.coverage order by resource"
    )
    bookings = "select booking_uuid, verified_at_utc, verified_by from marts.fct_bookings order by 1 desc"

    def hour(value):
        return dt.datetime(2026, 11, 20, value, tzinfo=dt.UTC)

    assert warehouse.query(coverage).rows == [
        ("availability", "p", hour(10), "notification", False, 1, 2, ""),
        ("bookings", None, hour(8), "schedule", True, 1, 1, "extras"),
    ]
    assert warehouse.query(bookings).rows == [("own", hour(9), "confirm"), ("listed", hour(8), "schedule")]
    warehouse.run_script(
        [
            f"{cover} ('c', 'availability', 'b', 'p', 'b', {month}, '2026-11-20 07:00Z', 'schedule', 3, true, 'pricing')",
            "update ops.coverage set is_complete = false, verified_at_utc = '2026-11-20 11:00Z' where key = 'm'",
        ]
    )
    assert warehouse.query(coverage).rows == [
        ("availability", "p", hour(7), "schedule", True, 2, 2, "pricing"),
        ("bookings", None, hour(11), "schedule", False, 1, 1, "extras"),
    ]
    # An answer that did not land wholly proves nothing about a booking.
    assert warehouse.query(bookings).rows == [("own", hour(9), "confirm"), ("listed", None, None)]
    freshness = (
        "select resource, minutes_behind, incomplete_subjects, open_subjects from marts.sync_freshness order by 1"
    )
    assert warehouse.query(freshness).rows == [
        ("availability", 240, 0, 0),
        ("booking", 120, 0, 0),
        ("bookings", 0, 1, 1),
    ]
    warehouse.close()
