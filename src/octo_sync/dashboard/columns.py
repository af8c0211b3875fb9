"""Columns that more than one page has, and where they lead."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from octo_sync.dashboard.links import booking_page, booking_text, status_text, travel_text
from octo_sync.dashboard.view import Column


def leading(href: Callable[[Any], str], *columns: Column) -> list[Column]:
    """The same columns, which all lead to one page: amounts and guests to the bookings that they are of."""
    return [replace(column, href=href) for column in columns]


def known_text(without: str) -> Callable[[Mapping[str, Any]], str | None]:
    """Of how many of a row's bookings an amount is known: `32 of 51`; `without` is the column that counts the others."""

    def told(row: Mapping[str, Any]) -> str | None:
        return None if row["bookings"] is None else f"{row['bookings'] - row[without]:,} of {row['bookings']:,}"

    return told


BOOKING = Column("Booking", "text", booking_text, href=booking_page)
REFERENCE = Column("Booking", "text", "reference", href=booking_page)
STATUS = Column("Status", "text", lambda row: status_text(row["status"]))
TRAVELS = Column("Travels", "date", travel_text, none="open")
SOLD = (
    Column("Bookings", "number", "bookings", none="unknown"),
    Column("Guests", "number", "guests", none="unknown"),
    Column("Retail", "money", "retail_amount", none="unknown"),
    Column("Net", "money", "net_amount", none="unknown"),
    Column("With net price", "number", known_text("without_net"), none="unknown"),
)
