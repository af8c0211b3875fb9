"""A booking that becomes open-dated leaves its day of travel, though no list shows it any more."""

import pytest
from tests.flows.harness import Wire, api_path, booking, reply, verify

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
