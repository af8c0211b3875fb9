"""Who worked when, and what came of it."""

import json
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from octo_sync.errors import JournalError
from octo_sync.journal import sql
from octo_sync.journal.models import RunRecord, columns
from octo_sync.journal.rows import EndStatus, Run
from octo_sync.journal.store import Store
from octo_sync.journal.subjects import Subjects

__all__ = ["Runs"]


class Runs:
    """The table `runs`."""

    def __init__(self, store: Store, subjects: Subjects) -> None:
        self._store = store
        self._subjects = subjects

    def start(
        self, command: str, pipeline: str, *, run_id: str, fence: int, options: Mapping[str, object] | None = None
    ) -> None:
        """Open a run. Its id must be new."""
        row = {
            "run_id": run_id,
            "command": command,
            "pipeline": pipeline,
            "fence": fence,
            "options": _json(options),
            "started_at": self._store.clock.now(),
        }
        with self._store.writing() as connection:
            connection.execute(insert(RunRecord).values(row))

    def end(
        self, run_id: str, status: EndStatus, counts: Mapping[str, object] | None = None, error: str | None = None
    ) -> None:
        """Close a run and give back its claims. A run that was declared killed meanwhile stays killed."""
        # First and in any case: what is held by nobody would never be fetched again.
        self._subjects.release_run(run_id)
        run = columns(RunRecord)
        with self._store.writing() as connection:
            if connection.execute(select(run.id).where(run.run_id == run_id)).first() is None:
                raise JournalError(f"The journal {self._store.name} knows no run {run_id}.")
            connection.execute(
                update(RunRecord)
                .where(run.run_id == run_id, run.status == "running")
                .values(status=status, ended_at=self._store.clock.now(), counts=_json(counts), error=error)
            )

    def last(self, limit: int = 20) -> list[Run]:
        """The last runs, newest first."""
        run = columns(RunRecord)
        with self._store.reading() as connection:
            return [_run(row) for row in connection.execute(select(run).order_by(run.id.desc()).limit(limit))]

    def find(self, run_id: str) -> Run | None:
        """One run, or None."""
        run = columns(RunRecord)
        with self._store.reading() as connection:
            row = connection.execute(select(run).where(run.run_id == run_id)).first()
        return None if row is None else _run(row)

    def prune(self, before: datetime) -> int:
        """Forget runs that ended before; how many. One that runs is never forgotten."""
        run = columns(RunRecord)
        with self._store.writing() as connection:
            return connection.execute(delete(RunRecord).where(run.ended_at < before)).rowcount

    def last_id(self) -> int:
        """The number of the newest run; 0 before the first."""
        with self._store.reading() as opened:
            return int(opened.exec_driver_sql("SELECT coalesce(max(id), 0) FROM runs").scalar_one())

    def after(self, number: int, also: Collection[int] = ()) -> list[tuple[int, str, str]]:
        """Number, command and status of the runs after a number, and of others by number; in their order."""
        with self._store.reading() as opened:
            rows = opened.exec_driver_sql(sql.RUNS_AFTER, (number, json.dumps(sorted(also)))).all()
        return [(number, command, status) for number, command, status in rows]


def _json(values: Mapping[str, object] | None) -> str:
    return json.dumps(dict(values or {}), ensure_ascii=False, default=str, sort_keys=True)


def _run(row: Row[Any]) -> Run:
    return Run(
        run_id=row.run_id,
        command=row.command,
        pipeline=row.pipeline,
        fence=row.fence,
        options=json.loads(row.options),
        status=row.status,
        started_at=row.started_at,
        ended_at=row.ended_at,
        counts=json.loads(row.counts),
        error=row.error,
    )
