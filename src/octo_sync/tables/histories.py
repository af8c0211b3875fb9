"""What bookings and departures were before: one row a version, written in the same transaction as the row itself.

A version says what this copy said, from the landing that brought it to the one that brought something else. Only the
columns that are here make a version: a repeated delivery, an equal answer and a change of another column make none.
"""

# As modules: a table that is a name in two files would be found twice.
from octo_sync.tables import availability, bookings
from octo_sync.tables.schema import VERSION, Column, Merge, Table


def _of(
    table: Table, name: str, description: str, grain: str, *followed: str, from_first_change: bool = False
) -> Table:
    """The history of a table, with columns as it has them; their values come from its rows."""
    there = {c.name: Column(c.name, c.type, c.description) for c in table.columns}
    return Table(
        full_name=name,
        description=description,
        grain=grain,
        key=(*table.key, "version_no"),
        merge=Merge.HISTORY,
        history_of=table.full_name,
        from_first_change=from_first_change,
        columns=(*(there[k] for k in table.key), *VERSION, *(there[c] for c in followed)),
    )


BOOKING_HISTORY = _of(
    bookings.BOOKINGS,
    "core.booking_history",
    "What each booking was, and when. A booking as it was at an instant is the row with valid_from_utc <= instant and "
    "(valid_to_utc is null or valid_to_utc > instant). A last version that is closed: the booking was proven gone then.",
    "One version of one booking; every booking has a first one.",
    *("status", "local_date", "product_id", "option_id", "retail_amount", "net_amount", "currency", "pax_count"),
)

AVAILABILITY_HISTORY = _of(
    availability.AVAILABILITY,
    "core.availability_history",
    "What departures and open days were before they changed. Most never change, so one without rows here has been as "
    "core.availability shows it since its first_seen_at_utc; its first change writes what it was as version 1 and "
    "what it is now as version 2. A last version that is closed: it was proven gone then.",
    "One version of one departure or day that has changed.",
    *("local_date", "status", "is_available", "vacancies", "capacity"),
    from_first_change=True,
)
