"""The schema `landing`: what has landed on PostgreSQL, of which `core` and `ops` are what was published last.

Whoever writes has one text of SQL for both engines, which says `core.bookings`. In a session of the writer that means
`landing.bookings`: the cursor puts it so, in one place, so that no statement can forget it. Each change of a row is noted by
the server itself, in the same transaction, whatever made it; a publish brings over what is noted (`publish`).
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import psycopg

from octo_sync.destinations.postgres import Session
from octo_sync.destinations.relations import sql
from octo_sync.tables.schema import Table

LANDING = "landing"
# Not in a text that is only the table's name, such as a row of `ops.absences` has.
_PUBLISHED = re.compile(r"(?<![\w.'\"$])(?:core|ops)\.(?=[a-z_])")


def in_landing(sql: str) -> str:
    """A statement about published tables as one about those that are landed into."""
    return _PUBLISHED.sub(f"{LANDING}.", sql)


class LandingCursor(psycopg.RawCursor[Any]):
    """The cursor of the writer's sessions."""

    def execute(self, query: Any, *more: Any, **named: Any) -> Any:  # noqa: ANN401 - as the driver has it
        """Run a statement about what has landed."""
        return super().execute(_text(query), *more, **named)

    def executemany(self, query: Any, *more: Any, **named: Any) -> None:  # noqa: ANN401 - as above
        """Run it once for each row of values."""
        super().executemany(_text(query), *more, **named)

    def copy(self, statement: Any, *more: Any, **named: Any) -> Any:  # noqa: ANN401 - as above
        """Send or take its rows."""
        return super().copy(_text(statement), *more, **named)


def _text(query: str | bytes) -> bytes:
    return in_landing(query.decode() if isinstance(query, bytes) else query).encode()


def meant(session: Session, sql: str) -> str:
    """A statement as this session's own cursors would put it."""
    return in_landing(sql) if session.cursor_factory is LandingCursor else sql


@contextlib.contextmanager
def plain(session: Session) -> Iterator[None]:
    """In the block the session's statements mean what they say."""
    former, session.cursor_factory = session.cursor_factory, psycopg.RawCursor
    try:
        yield
    finally:
        session.cursor_factory = former


def landed(tables: Sequence[Table]) -> list[Table]:
    """The tables as they are landed into; those that nobody publishes have no second place."""
    return [replace(table, full_name=f"{LANDING}.{table.name}") for table in tables if not table.private]


def group_of(table: Table) -> tuple[str, ...]:
    """What rows are noted by, and brought over together: details by the day of their departure, others by their parent."""
    names = [c.name for c in table.all_columns]
    by_day = table.key[:3] == ("connection_id", "product_id", "option_id") and "local_date" in names
    return (*table.key[:3], "local_date") if by_day else table.key[:3] if table.name == "coverage" else table.key[:2]


NOTES = (f"create table {LANDING}.changed (name text not null, key text[] not null)", sql("note_changes"))
"""Where changes are noted: the table's name and the columns of `group_of`, as text."""


def noting(table: Table) -> list[str]:
    """The triggers of one table of `landed`."""
    keys = ", ".join(f"{column}::text" for column in group_of(table))
    return [
        f"create trigger note_{event}_{side} after {event} on {table.full_name} referencing {side} table as touched "
        f"for each statement execute function {LANDING}.note('{keys}')"
        for event, side in (("insert", "new"), ("update", "new"), ("update", "old"), ("delete", "old"))
    ]
