"""What lists no longer show: a booking that becomes open-dated, and confirmed bookings of a list that is not whole."""

import datetime as dt

import duckdb
import pytest
from tests.flows.harness import RunningClock, Wire, api_path, booking, reply, verify

from octo_sync.flows.sync.work import Worker
from octo_sync.model import Source, SubjectKind


@pytest.mark.parametrize("told_first", [False, True], ids=["the list lacks it first", "a notification comes first"])
async def test_a_booking_that_becomes_open_dated_is_so_after_the_next_pull(project, service, told_first):
    one = next(b for b in service.state()["bookings"] if b["status"] == "CONFIRMED" and b["local_date"])["uuid"]

    def edit(request, answer):
        if api_path(request) == "/bookings":
            return reply([row for row in answer.json() if row["uuid"] != one])
        if api_path(request) == f"/bookings/{one}":
            return reply(answer.json() | {"availability": None, "availabilityId": None})
        return None

    copy = project(publish=True)
    await copy.sync()
    if told_first:
        async with copy.opened(transport=Wire.by(edit)) as opened:
            opened.ports.mark([booking(one)], Source.NOTIFICATION)
            await Worker(opened.ports, kinds={SubjectKind.BOOKING}).drain()
    assert (await copy.sync(transport=Wire.by(edit))).status == "ok"
    row = "select local_date, availability_id, stale_columns, is_deleted from core.bookings where booking_uuid = $1"
    assert copy.query(row, one) == [(None, None, None, False)]
    found = await verify(copy, transport=Wire.by(edit))
    assert found.comparison.equal


async def test_a_list_that_lacks_a_confirmed_booking_is_not_complete_until_the_next_that_has_it(project, service):
    def edit(request, answer):
        return reply([]) if api_path(request) == "/bookings" else None

    copy = project(bookings=(-30, 30))
    await copy.sync()
    await copy.sync(transport=Wire.by(edit))
    confirmed = (
        "select distinct left(local_date::varchar, 7) from core.bookings where status = 'CONFIRMED' and not is_deleted"
    )
    months = sorted(month for (month,) in copy.query(confirmed) if month)
    incomplete = "select travel_month from ops.coverage where resource = 'bookings' and not is_complete order by 1"
    assert [month for (month,) in copy.query(incomplete)] == months
    assert months
    await copy.sync()
    assert copy.query(incomplete) == []
    assert copy.differences() == []


async def test_a_cancelled_booking_that_lists_lack_is_as_old_as_its_own_answer(project, service):
    one = next(
        b
        for b in service.state()["bookings"]
        if b["status"] == "CANCELLED" and b["local_date"][:7] == "2026-12" and not b["test"]
    )["uuid"]

    def edit(request, answer):
        if api_path(request) == "/bookings":
            return reply([row for row in answer.json() if row["uuid"] != one])
        return None

    copy = project(bookings=(-60, 60), publish=True)
    copy.clock = RunningClock()
    await copy.sync()
    copy.clock.advance(hours=1)
    asked = copy.clock.now()
    await copy.sync(transport=Wire.by(edit))
    copy.clock.advance(days=1)
    await copy.sync(transport=Wire.by(edit))
    with duckdb.connect(copy.directory / "octo.read.duckdb", read_only=True) as db:
        found = db.execute("select verified_at_utc, verified_by from marts.fct_bookings where booking_uuid = $1", [one])
        ((verified, by),) = found.fetchall()
    assert asked <= verified < asked + dt.timedelta(hours=1)
    assert by == "repair"


async def test_a_list_without_a_booking_that_has_moved_to_another_month_is_complete(project, service):
    one = next(
        b for b in service.state()["bookings"] if b["status"] == "CONFIRMED" and b["local_date"][:7] == "2026-11"
    )
    copy = project(bookings=(-30, 60))
    await copy.sync()
    later = f"2026-12{one['local_date'][7:]}"

    def edit(request, answer):
        rows = answer.json()
        if api_path(request) == "/bookings":
            own = [row for row in rows if row["uuid"] == one["uuid"]]
            return reply([row for row in rows if row not in own]) if own else None
        if api_path(request) == f"/bookings/{one['uuid']}":
            for name in ("localDateTimeStart", "localDateTimeEnd"):
                rows["availability"][name] = later + rows["availability"][name][10:]
            return reply(rows)
        return None

    await copy.sync(transport=Wire.by(edit))
    assert copy.query("select travel_month from ops.coverage where resource = 'bookings' and not is_complete") == []
