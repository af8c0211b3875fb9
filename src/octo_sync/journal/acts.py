"""What people did on pages of the dashboard, and what the worker still has to do for them."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from octo_sync.journal.models import Act, columns
from octo_sync.journal.store import Table


class Acts(Table):
    """The table `acts`."""

    def note(
        self, act: str, *, who: str, about: str = "", key: str = "", text: str = "", outcome: str | None = None
    ) -> None:
        """Write down what somebody did; without an outcome it is what the worker has to do, which is woken.

        One that waits already with the same words is not written again.
        """
        now, one = self._store.clock.now(), columns(Act)
        row = {"act": act, "about": about, "key": key, "text": text}
        with self._store.writing() as opened:
            if outcome is None:
                self._store.next_number(opened, 0)  # of two who say it at once the second waits, and sees the first
                same = [one[name] == value for name, value in row.items()]
                if opened.execute(select(one.id).where(one.done_at.is_(None), *same)).first() is not None:
                    return
                self._store.next_number(opened)
            done = {"outcome": outcome or "", "done_at": None if outcome is None else now}
            opened.execute(insert(Act).values(at=now, who=who, **row, **done))

    def waiting(self, act: str) -> list[Act]:
        """What of it the worker has to do, the oldest first."""
        one = columns(Act)
        return self._store.rows(select(Act).where(one.done_at.is_(None), one.act == act).order_by(one.id))

    def end(self, acts: Sequence[Act], outcome: str) -> None:
        """The worker has done them."""
        one, ids = columns(Act), [each.id for each in acts]
        done = update(Act).where(one.id.in_(ids)).values(outcome=outcome, done_at=self._store.clock.now())
        self._store.change(done)

    def last(self, limit: int) -> list[Act]:
        """The last ones, newest first."""
        return self._store.rows(select(Act).order_by(columns(Act).id.desc()).limit(limit))

    def of(self, about: str, key: str) -> list[Act]:
        """Those about one thing, newest first."""
        one = columns(Act)
        return self._store.rows(select(Act).where(one.about == about, one.key == key).order_by(one.id.desc()))

    def latest(self, act: str, about: str) -> dict[str, str]:
        """Of each thing of which it was said: the words that were said last."""
        one = columns(Act)
        wanted = select(one.key, one.text).where(one.act == act, one.about == about).order_by(one.id)
        return dict(self._store.ask(wanted))

    def prune(self, before: datetime) -> int:
        """Forget what was done before; how many."""
        return self._store.change(delete(Act).where(columns(Act).done_at < before))
