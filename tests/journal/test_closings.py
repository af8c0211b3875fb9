"""A closed period is written once, read as it was, and known by its digest."""

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal

from octo_sync.journal import ClosedBooking, ClosedTotal, Closing


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
    assert all(one.computed_digest() == one.digest for one in journal.closings.all())


def test_a_closing_that_kept_no_totals_has_the_digest_that_it_always_had():
    one = closing("2026-10", "10.10")
    assert one.totals is None
    assert one.digest == "c032e60cb0082eeb68eec4fc8f2df4377ffa6367376e678a09b26fb04da9ac3e"


def test_every_value_is_in_the_digest():
    total = ClosedTotal("tax", "VAT", "shop", "EUR", 1, Decimal("1.10"), None)
    one = dataclasses.replace(closing("2026-10", "10.10"), totals=(total,))
    (booking,) = one.bookings
    others = [
        dataclasses.replace(one, period="2026-09"),
        dataclasses.replace(one, closed_at=datetime(2026, 11, 2, tzinfo=UTC)),
        dataclasses.replace(one, is_complete=False),
        dataclasses.replace(one, bookings=()),
        dataclasses.replace(one, totals=()),
        dataclasses.replace(one, totals=None),
        *(
            dataclasses.replace(one, bookings=(dataclasses.replace(booking, **{name: value}),))
            for name, value in (
                ("connection_id", "x"), ("booking_uuid", "x"), ("currency", None), ("retail_amount", Decimal("10.11")),
                ("net_amount", Decimal(0)), ("pax_count", 9),
            )
        ),
        *(
            dataclasses.replace(one, totals=(dataclasses.replace(total, **{name: value}),))
            for name, value in (
                ("kind", "refund"), ("name", ""), ("connection_id", "x"), ("currency", ""), ("bookings", 2),
                ("retail_amount", None), ("net_amount", Decimal(0)),
            )
        ),
    ]  # fmt: skip
    digests = {other.computed_digest() for other in (one, *others)}
    assert len(digests) == 1 + len(others)
