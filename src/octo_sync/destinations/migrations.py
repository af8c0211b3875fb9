"""What each version of the warehouse's schema changes about rows that are there; both engines run the same words.

The tables themselves are not described twice: whatever they lack is made from their definitions before a step runs. A step
says only what the definitions cannot, for example what a new table begins with. A schema change is one new entry here.
"""

from dataclasses import dataclass

__all__ = ["SCHEMA_VERSION", "STEPS", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One version: `what` it brings, as a sentence, and statements in the common dialect, in one transaction with its number.

    Tables are named `schema.table`. The private ones (`private`, `raw`) may be in another file, which a transaction cannot
    share: a statement may neither read nor write them.
    """

    version: int
    what: str
    statements: tuple[str, ...] = ()


# What a row was before it was last written is not known, so its first version begins there.
_FIRST_BOOKINGS = (
    "insert into core.booking_history (connection_id, booking_uuid, version_no, valid_from_utc, valid_to_utc, is_current, "
    "changed_fields, source, status, local_date, product_id, option_id, retail_amount, net_amount, currency, pax_count) "
    "select connection_id, booking_uuid, 1, last_seen_at_utc, "
    "case when is_deleted then greatest(deleted_at_utc, last_seen_at_utc) end, not is_deleted, '', '', status, "
    "local_date, product_id, option_id, retail_amount, net_amount, currency, pax_count from core.bookings"
)
_FIRST_DEPARTURES = (
    "insert into core.availability_history (connection_id, product_id, option_id, availability_id, version_no, "
    "valid_from_utc, valid_to_utc, is_current, changed_fields, source, local_date, status, is_available, vacancies, "
    "capacity) select connection_id, product_id, option_id, availability_id, 1, last_seen_at_utc, "
    "case when is_deleted then greatest(deleted_at_utc, last_seen_at_utc) end, not is_deleted, '', '', local_date, status, "
    "is_available, vacancies, capacity from core.availability where last_seen_at_utc > first_seen_at_utc"
)
"""One that was never written again has been so since it was first seen: it needs no version."""

STEPS: tuple[Step, ...] = (
    Step(1, "The first tables."),
    Step(
        2,
        "Records that are landed already are known by their digest, and a death between the two files is noticed.",
        # Whether the private file was whole is not known of a file that did not count its landings.
        ("update ops.coverage set answer_hash = null where answer_hash is not null",),
    ),
    # Not released yet: what the tables have gained since version 2 all belongs to this one.
    Step(
        3,
        "Histories of bookings and departures, and what reconciliations found.",
        (_FIRST_BOOKINGS, _FIRST_DEPARTURES),
    ),
)
"""In order, without a gap. What was released is never changed again."""

SCHEMA_VERSION = STEPS[-1].version
"""Version of the warehouse's schema; every change adds a step."""
