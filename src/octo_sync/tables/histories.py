"""What bookings and departures were before: one row a version, written in the same transaction as the row itself.

A version says what this copy said, from the landing that brought it to the one that brought something else. Only the
columns that are here make a version: a repeated delivery, an equal answer and a change of another column make none.
"""

# As modules: a table that is a name in two files would be found twice.
from octo_sync.tables import availability, bookings
from octo_sync.tables.schema import VERSION, Column, Merge, Table


def _as_in(table: Table, *names: str) -> tuple[Column, ...]:
    """Columns as the followed table has them; their values come from its rows."""
    there = {c.name: c for c in table.columns}
    return tuple(Column(name, there[name].type, there[name].description) for name in names)


BOOKING_HISTORY = Table(
    full_name="core.booking_history",
    description=(
        "What each booking was, and when. A booking as it was at an instant is the row with valid_from_utc <= instant and "
        "(valid_to_utc is null or valid_to_utc > instant). A last version that is closed: the booking was proven gone then."
    ),
    grain="One version of one booking; every booking has a first one.",
    key=(*bookings.BOOKINGS.key, "version_no"),
    merge=Merge.HISTORY,
    history_of=bookings.BOOKINGS.full_name,
    columns=(
        *_as_in(bookings.BOOKINGS, *bookings.BOOKINGS.key),
        *VERSION,
        *_as_in(bookings.BOOKINGS, "status", "local_date", "product_id", "option_id", "retail_amount", "net_amount"),
        *_as_in(bookings.BOOKINGS, "currency", "pax_count"),
    ),
)

AVAILABILITY_HISTORY = Table(
    full_name="core.availability_history",
    description=(
        "What departures and open days were before they changed. Most never change, so one without rows here has been as "
        "core.availability shows it since its first_seen_at_utc; its first change writes what it was as version 1 and "
        "what it is now as version 2. A last version that is closed: it was proven gone then."
    ),
    grain="One version of one departure or day that has changed.",
    key=(*availability.AVAILABILITY.key, "version_no"),
    merge=Merge.HISTORY,
    history_of=availability.AVAILABILITY.full_name,
    from_first_change=True,
    columns=(
        *_as_in(availability.AVAILABILITY, *availability.AVAILABILITY.key),
        *VERSION,
        *_as_in(availability.AVAILABILITY, "local_date", "status", "is_available", "vacancies", "capacity"),
    ),
)
