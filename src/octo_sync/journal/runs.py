"""Who worked when, and what came of it."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import delete, func, insert, or_, select, update

from octo_sync.errors import JournalError
from octo_sync.journal.models import Run, columns
from octo_sync.journal.rows import EndStatus
from octo_sync.journal.store import Table


class Runs(Table):
    """The table `runs`."""

    def start(
        self, command: str, pipeline: str, *, run_id: str, fence: int, options: Mapping[str, object] | None = None
    ) -> None:
        """Open a run. Its id must be new."""
        what = {"run_id": run_id, "command": command, "pipeline": pipeline, "fence": fence}
        now, asked = self._store.clock.now(), dict(options or {})
        self._store.change(insert(Run).values(**what, options=asked, started_at=now))

    def end(
        self, run_id: str, status: EndStatus, counts: Mapping[str, object] | None = None, error: str | None = None
    ) -> None:
        """Close a run and give back its claims. A run that was declared killed meanwhile stays killed."""
        # First and in any case: what is held by nobody would never be fetched again.
        self._store.subjects.release_run(run_id)
        run = columns(Run)
        with self._store.writing() as connection:
            if connection.execute(select(run.id).where(run.run_id == run_id)).first() is None:
                raise JournalError(f"The journal {self._store.name} knows no run {run_id}.")
            connection.execute(
                update(Run)
                .where(run.run_id == run_id, run.status == "running")
                .values(status=status, ended_at=self._store.clock.now(), counts=dict(counts or {}), error=error)
            )

    def last(self, limit: int = 20) -> list[Run]:
        """The last runs, newest first."""
        run = columns(Run)
        return self._store.rows(select(Run).order_by(run.id.desc()).limit(limit))

    def last_of_each(self) -> list[Run]:
        """The last run of each command, and the last of it that ended well, newest first."""
        run = columns(Run)
        last = select(func.max(run.id)).group_by(run.command)
        wanted = or_(run.id.in_(last), run.id.in_(last.where(run.status == "ok")))
        return self._store.rows(select(Run).where(wanted).order_by(run.id.desc()))

    def find(self, run_id: str) -> Run | None:
        """One run, or None."""
        return next(iter(self._store.rows(select(Run).where(columns(Run).run_id == run_id))), None)

    def prune(self, before: datetime) -> int:
        """Forget runs that ended before; how many. One that runs is never forgotten."""
        return self._store.change(delete(Run).where(columns(Run).ended_at < before))

    def last_id(self) -> int:
        """The number of the newest run; 0 before the first."""
        return int(self._store.value("SELECT coalesce(max(id), 0) FROM runs"))

    def after(self, number: int, also: Collection[int] = ()) -> list[tuple[int, str, str]]:
        """Number, command and status of the runs after a number, and of others by number; in their order."""
        run = columns(Run)
        wanted = select(run.id, run.command, run.status).where(or_(run.id > number, run.id.in_(also))).order_by(run.id)
        return [(found, command, status) for found, command, status in self._store.ask(wanted)]
