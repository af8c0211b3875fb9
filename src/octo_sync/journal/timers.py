"""What is to be looked at again later."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import select

from octo_sync.journal import sql
from octo_sync.journal.models import TimerRow, as_json, columns, from_text, key_of, to_text
from octo_sync.journal.rows import Timer
from octo_sync.journal.store import Table, chosen
from octo_sync.model import Source, Subject

_TIMED = 5
"""Priority; see `inbox.py`."""
_FIRED_AT_ONCE = 1000
_PAGE = 1000


class Timers(Table):
    """The table `timers`."""

    def set(self, timers: Iterable[Timer]) -> None:
        """Set timers, or move those that there are, earlier or later, in one transaction."""
        rows = {(*key_of(one.subject), one.name): (to_text(one.due_at), one.source.value) for one in timers}
        if rows:
            values = as_json([(*key, *row) for key, row in sorted(rows.items())]), True
            self._store.change(sql.POSTPONE_TIMERS, *values)

    def fire(self, now: datetime) -> int:
        """Mark what is due, due at once, and forget these timers, in one transaction; how many timers fired.

        Several timers of one subject make one mark. After a long stop they fire in portions: call again until 0.
        """
        due = to_text(now)
        if not self._store.value("SELECT EXISTS (SELECT 1 FROM timers WHERE due_at <= ?)", due):
            return 0  # the usual case costs no commit
        with self._store.writing() as connection:
            number = self._store.next_number(connection)
            found = connection.exec_driver_sql(sql.DUE_TIMERS, (due, _FIRED_AT_ONCE)).all()
            fired = sorted(tuple(row) for row in found)
            if fired:
                connection.exec_driver_sql(sql.FORGET_TIMER, [row[:5] for row in fired])
                connection.exec_driver_sql(sql.FIRE_TIMERS, (due, number, as_json(fired), _TIMED))
            return len(fired)

    def next_at(self) -> datetime | None:
        """When the next timer is due, possibly in the past; None when there is none."""
        due = self._store.value("SELECT min(due_at) FROM timers")
        return None if due is None else from_text(due)

    def drop(self, subjects: Iterable[Subject], name: str) -> int:
        """Forget the timers of this name, whether there are any or not; how many there were."""
        if not (keys := sorted({(*key_of(subject), name) for subject in subjects})):
            return 0
        with self._store.writing() as connection:
            return connection.exec_driver_sql(sql.DROP_TIMER, keys).rowcount

    def rows(self, *, connection: str | None = None, name: str | None = None, limit: int = _PAGE) -> list[Timer]:
        """Up to `limit` timers, the next one first."""
        timer = columns(TimerRow)
        wanted = select(timer).order_by(timer.due_at, timer.connection, timer.kind, timer.key, timer.name).limit(limit)
        return [
            Timer(subject=Subject.from_key(*subject), name=name, due_at=due_at, source=Source(source))
            for *subject, name, due_at, source in self._store.ask(chosen(wanted, connection=connection, name=name))
        ]
