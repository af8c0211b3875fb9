"""The demo's service has a history: fourteen months of bookings, through three channels, each made before its travel."""

import dataclasses
import datetime as dt
from collections import Counter

import pytest
from tests.sandbox.conftest import TODAY

from octo_sync.sandbox import state
from octo_sync.sandbox.config import CHANNELS, demo_config
from octo_sync.sandbox.service import Service


@pytest.fixture(scope="module")
def service():
    return Service(dataclasses.replace(demo_config(), today=TODAY, bookings=2_000))


@pytest.fixture(scope="module")
def bookings(service):
    return state.whole(service)["bookings"]


def test_each_of_fourteen_months_was_travelled_and_booked(bookings):
    months = {f"{TODAY.year - (TODAY.month <= back)}-{(TODAY.month - back - 1) % 12 + 1:02d}" for back in range(14)}
    for key in ("local_date", "utc_created_at"):
        counted = Counter(one[key][:7] for one in bookings)
        assert {month for month in months if counted[month] < 20} == set(), key


def test_what_is_ahead_is_sold_in_part_and_everything_is_booked_before_it_is_travelled(bookings):
    ahead = Counter(one["local_date"][:7] for one in bookings if one["local_date"] > TODAY.isoformat())
    assert ahead["2026-12"] > ahead["2027-01"] > ahead["2027-02"] > 0
    now = dt.datetime.combine(TODAY, dt.time(12), dt.UTC).isoformat()
    assert [one["uuid"] for one in bookings if one["utc_created_at"] > now] == []
    assert [one["uuid"] for one in bookings if one["utc_start"] and one["utc_created_at"] > one["utc_start"]] == []


def test_three_channels_share_the_bookings_and_each_sees_its_own(service, bookings):
    sold = Counter(one["token"] for one in bookings)
    assert sold.most_common() == [(one.name, sold[one.name]) for one in CHANNELS]
    assert min(sold.values()) > 300
    for token in CHANNELS:
        assert {one.token for one in state.bookings(service, token)} == {token.name}
