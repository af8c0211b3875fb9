"""Which bookings a list speaks for, in SQL: the one place that knows what the days of a list are.

Some services take the days of a list for days of booking instead of travel. Their answers show it, or the pipeline says it;
`ops.schema_drift` remembers it. `marts.booking_lists` says the same to readers. Texts that both engines run.
"""

from octo_sync.destinations.relations import sql


def by_booking(connection: str, ops: str = "ops") -> str:
    """Whether the service of a connection lists by day of booking; `connection` is the expression of its name."""
    return (
        f"exists (select 1 from {ops}.schema_drift d where d.connection_id = {connection} and d.resource = 'bookings' "
        f"and d.kind = 'meaning' and d.name = 'creation')"
    )


def booked_on(row: str) -> str:
    """The day on which the booking `row` was made, in UTC."""
    return f"cast({row}.utc_created_at at time zone 'UTC' as date)"


def speaks_for(row: str, answer: str, ops: str = "ops") -> str:
    """Whether the list that coverage `answer` is of had to show the booking `row`, both of one connection."""
    return (
        f"case when {by_booking(f'{row}.connection_id', ops)} then {booked_on(row)} else {row}.local_date end "
        f"between {answer}.window_start and {answer}.window_end"
    )


def unlisted(private: str) -> str:
    """Query for the bookings of connection $1, known by their rows or by their payloads, that no list of days $2 to $3 shows.

    `private` is what stands before the names of private tables. On DuckDB.
    """
    parts = {"by_booking": by_booking("t.connection_id"), "booked_on": booked_on("t"), "private": private}
    return sql("unlisted", **parts)
