"""A closed period is written once, read as it was, and known by its digest."""

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from octo_sync.journal import ClosedBooking, ClosedTotal, Closing

TOTAL = ClosedTotal("tax", "VAT", "shop", "EUR", 1, Decimal("1.10"), None)


def closing(period, *amounts):
    bookings = tuple(
        ClosedBooking("shop", f"uuid-{n}", "EUR", Decimal(amount), None, n or None) for n, amount in enumerate(amounts)
    )
    made = Closing(
        period=period, closed_at=datetime(2026, 11, 2, 8, 30, 0, 123456, UTC), is_complete=True, bookings=bookings
    )
    return dataclasses.replace(made, digest=made.computed_digest())


def test_it_is_kept_as_it_was_and_never_written_again(journal):
    october, september = closing("2026-10", "10.1000", "99999999999999.9999"), closing("2026-09")
    assert journal.closings.all() == []
    assert (journal.closings.add(october), journal.closings.add(september)) == (True, True)
    assert journal.closings.add(closing("2026-10", "11")) is False
    assert journal.closings.all() == [october, september]
    assert journal.closings.periods() == {"2026-10", "2026-09"}
    assert not any(one.is_altered for one in journal.closings.all())


@pytest.mark.parametrize(
    ("totals", "digest"),
    [
        (None, "c032e60cb0082eeb68eec4fc8f2df4377ffa6367376e678a09b26fb04da9ac3e"),
        ((TOTAL,), "e9e5f7438bf73254ef394af2853e37ada2814580fd97570eb832cbe29644595d"),
    ],
)
def test_a_month_that_an_older_version_closed_keeps_its_digest_and_is_checked_against_it(totals, digest):
    one = dataclasses.replace(closing("2026-10", "10.10"), totals=totals, digest=digest)
    assert not one.is_altered
    for change in ({"closed_at": datetime(2026, 11, 3, tzinfo=UTC)}, {"is_complete": False}, {"bookings": ()}):
        assert dataclasses.replace(one, **change).is_altered


def test_equal_figures_have_equal_digests_whenever_and_wherever_they_were_closed():
    one = dataclasses.replace(closing("2026-10", "10.10", "20"), totals=(TOTAL,))
    later = dataclasses.replace(one, closed_at=datetime(2027, 1, 2, tzinfo=UTC))
    as_elsewhere = dataclasses.replace(
        closing("2026-10", "10.1000", "20.0"), totals=(dataclasses.replace(TOTAL, retail_amount=Decimal("1.1000")),)
    )
    in_another_order = dataclasses.replace(one, bookings=one.bookings[::-1])
    assert {each.computed_digest() for each in (one, later, as_elsewhere, in_another_order)} == {one.computed_digest()}


def test_every_figure_is_in_the_digest():
    one = dataclasses.replace(closing("2026-10", "10.10"), totals=(TOTAL,))
    (booking,) = one.bookings
    others = [
        dataclasses.replace(one, period="2026-09"),
        dataclasses.replace(one, is_complete=False),
        dataclasses.replace(one, bookings=()),
        dataclasses.replace(one, totals=()),
        dataclasses.replace(one, totals=None),
        *(
            dataclasses.replace(one, bookings=(dataclasses.replace(booking, **{name: value}),))
            for name, value in (
                ("connection_id", "x"), ("booking_uuid", "x"), ("currency", None), ("currency", ""),
                ("retail_amount", Decimal("10.11")),
                ("net_amount", Decimal(0)), ("pax_count", 9),
            )
        ),
        *(
            dataclasses.replace(one, totals=(dataclasses.replace(TOTAL, **{name: value}),))
            for name, value in (
                ("kind", "refund"), ("name", ""), ("connection_id", "x"), ("currency", ""), ("bookings", 2),
                ("retail_amount", None), ("net_amount", Decimal(0)),
            )
        ),
    ]  # fmt: skip
    digests = {other.computed_digest() for other in (one, *others)}
    assert len(digests) == 1 + len(others)
