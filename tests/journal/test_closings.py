"""A closed period is written once, read as it was, and known by its digest."""

import dataclasses
from datetime import UTC, datetime
from decimal import Decimal

from octo_sync.journal import ClosedBooking, Closing


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


def test_every_value_is_in_the_digest():
    one = closing("2026-10", "10.10")
    (booking,) = one.bookings
    others = [
        dataclasses.replace(one, period="2026-09"),
        dataclasses.replace(one, closed_at=datetime(2026, 11, 2, tzinfo=UTC)),
        dataclasses.replace(one, is_complete=False),
        dataclasses.replace(one, bookings=()),
        *(
            dataclasses.replace(one, bookings=(dataclasses.replace(booking, **{name: value}),))
            for name, value in (
                ("connection_id", "x"), ("booking_uuid", "x"), ("currency", None), ("retail_amount", Decimal("10.11")),
                ("net_amount", Decimal(0)), ("pax_count", 9),
            )
        ),
    ]  # fmt: skip
    digests = {other.computed_digest() for other in (one, *others)}
    assert len(digests) == 1 + len(others)
