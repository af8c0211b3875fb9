"""The demo shows a business: three channels of one supplier, and this year beside the last one."""

import json

import pytest

CHANNELS = {"Own website", "CityTrips", "Hotel desks"}


@pytest.mark.deep(12)
def test_last_year_pace_and_channels_can_be_seen(empty):
    said, _ = empty.start("demo", "-C", ".", "--bookings", "1200", "--json").communicate()
    assert json.loads(said)["equal"]

    pace = empty.json("ask", "pace")["rows"]
    assert sum(row["guests"] for row in pace) > 0
    known = [row["last_year_guests"] for row in pace if row["is_complete"]]
    assert sum(known) > 0
    assert sum(row["last_year_final"] for row in pace) > sum(known)
    by_channel = (
        "select channel_name, sum(last_year_pax) as guests from agg_pickup where is_last_year_complete group by 1"
    )
    assert {row["channel_name"] for row in empty.json("sql", by_channel)["rows"] if row["guests"]} == CHANNELS
    assert {row["channel_name"] for row in empty.json("ask", "cancellation_rate")["rows"]} == CHANNELS
    suppliers = empty.json(
        "sql", "select count(distinct supplier_key) as suppliers, count(*) as channels from dim_channel"
    )
    assert suppliers["rows"] == [{"suppliers": 1, "channels": 3}]
