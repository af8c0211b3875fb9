"""Closing a month: why one is refused."""

from datetime import UTC, date, datetime
from types import SimpleNamespace

import pytest

from octo_sync.destinations.base import Rows
from octo_sync.errors import ReconcileError
from octo_sync.flows.periods import close

COLUMNS = ("connection_id", "channel_name", "is_active", "as_of_date", "is_complete")


def refused(as_of, now):
    """What is said of November 2026 where a copy was last verified on this day and not all is known, at this moment."""
    reader = SimpleNamespace(query=lambda *_: Rows(COLUMNS, [("shop", "Own website", True, as_of, False)]))
    journal = SimpleNamespace(closings=SimpleNamespace(periods=set))
    with pytest.raises(ReconcileError) as refusal:
        close(reader, journal, "2026-11", now, incomplete=False)
    return str(refusal.value)


def test_a_month_that_is_not_over_says_when_it_is():
    said = refused(date(2026, 11, 28), datetime(2026, 11, 28, 12, tzinfo=UTC))
    assert said == "2026-11 ends on 2026-11-30; close it after that day, when octo-sync sync has run."


def test_a_month_that_is_over_needs_a_copy_from_after_it():
    said = refused(date(2026, 11, 30), datetime(2026, 12, 2, tzinfo=UTC))
    assert "is not over in the copy (channel Own website): it was last verified before the month's end" in said


def test_a_month_that_is_over_at_the_venue_is_over_though_it_is_not_in_utc():
    said = refused(date(2026, 12, 1), datetime(2026, 11, 30, 20, tzinfo=UTC))
    assert said.startswith("Not all bookings that travel in 2026-11 are known"), "the next thing that is looked at"
