"""What each version of the warehouse's schema changes about rows that are there; both engines run the same words.

The tables themselves are not described twice: whatever they lack is made from their definitions before a step runs. A step
says only what the definitions cannot, for example what a new table begins with. A schema change is one new entry here.
"""

from dataclasses import dataclass

from octo_sync.errors import WarehouseError


@dataclass(frozen=True, slots=True)
class Step:
    """One version: `what` it brings, as a sentence, and statements in the common dialect, in one transaction with its number.

    Tables are named `schema.table`. The private ones (`private`, `raw`) may be in another file, which a transaction cannot
    share: a statement may neither read nor write them.
    """

    version: int
    what: str
    statements: tuple[str, ...] = ()


STEPS: tuple[Step, ...] = (
    Step(1, "The first tables."),
    Step(2, "Closed months of travel: ops.closed_periods and ops.closed_bookings."),
    Step(3, "Both rows of a difference: ops.recon_results.both_rows."),
    Step(4, "An owner per connection: ops.writer.connection_id."),
    Step(5, "Totals of closed months: ops.closed_totals and ops.closed_periods.has_totals."),
)
"""In order, without a gap. What was released is never changed again."""

SCHEMA_VERSION = STEPS[-1].version
"""Version of the warehouse's schema; every change adds a step, and a test says so."""


def steps_after(found: int | None, name: str) -> tuple[Step, ...]:
    """The steps that a warehouse of this version has to take; none when it is new, for it is made as it should be.

    Raises:
        WarehouseError: It was written by a newer program. `name` is what it is called.
    """
    if found is not None and found > SCHEMA_VERSION:
        raise WarehouseError(
            f"{name} was written by a newer octo-sync (schema {found}, this one knows {SCHEMA_VERSION}); "
            f"upgrade octo-sync."
        )
    return () if found is None else tuple(step for step in STEPS if step.version > found)
