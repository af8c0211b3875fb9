"""Who worked when, under which lease; and the small findings worth keeping."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from octo_sync.errors import JournalError
from octo_sync.journal.models import LeaseRecord, RunRecord, SettingRecord, columns, to_text
from octo_sync.journal.quarantine import Quarantine
from octo_sync.journal.rows import EndStatus, LeaseRow, Run
from octo_sync.journal.store import WriterLock

__all__ = ["Runs"]

_KILLED = "The process ended without closing the run (killed, or the machine stopped); what it owed is still marked."


class Runs(Quarantine):
    """The tables `runs`, `leases` and `settings`."""

    def start_run(
        self, command: str, pipeline: str, *, run_id: str, fence: int, options: Mapping[str, object] | None = None
    ) -> None:
        """Open a run. Its id must be new."""
        row = {
            "run_id": run_id,
            "command": command,
            "pipeline": pipeline,
            "fence": fence,
            "options": _json(options),
            "started_at": self._clock.now(),
        }
        with self._writing() as connection:
            connection.execute(insert(RunRecord).values(row))

    def end_run(
        self, run_id: str, status: EndStatus, counts: Mapping[str, object] | None = None, error: str | None = None
    ) -> None:
        """Close a run and give back its claims. A run that was declared killed meanwhile stays killed."""
        # First and in any case: what is held by nobody would never be fetched again.
        self._release_run(run_id)
        run = columns(RunRecord)
        with self._writing() as connection:
            if connection.execute(select(run.id).where(run.run_id == run_id)).first() is None:
                raise JournalError(f"The journal {self.name} knows no run {run_id}.")
            connection.execute(
                update(RunRecord)
                .where(run.run_id == run_id, run.status == "running")
                .values(status=status, ended_at=self._clock.now(), counts=_json(counts), error=error)
            )

    def runs(self, limit: int = 20) -> list[Run]:
        """The last runs, newest first."""
        run = columns(RunRecord)
        with self._reading() as connection:
            return [_run(row) for row in connection.execute(select(run).order_by(run.id.desc()).limit(limit))]

    def run(self, run_id: str) -> Run | None:
        """One run, or None."""
        run = columns(RunRecord)
        with self._reading() as connection:
            row = connection.execute(select(run).where(run.run_id == run_id)).first()
        return None if row is None else _run(row)

    def lease(self, name: str = "writer") -> LeaseRow | None:
        """Who holds the lease, or held it last; None before the first."""
        lease = columns(LeaseRecord)
        with self._reading() as connection:
            row = connection.execute(select(lease).where(lease.name == name, lease.pid > 0)).first()
        return None if row is None else LeaseRow(**row._mapping)  # noqa: SLF001 - SQLAlchemy's public accessor

    def take_lease(self, *, owner: str, pid: int, host: str) -> int:
        """For `Lease.acquire`, which holds the lock: the next fence; runs left open by a killed process are closed."""
        lease, run = columns(LeaseRecord), columns(RunRecord)
        now = self._clock.now()
        with self._writing() as connection:
            fence = connection.execute(
                update(LeaseRecord)
                .where(lease.name == "writer")
                .values(fence=lease.fence + 1, owner=owner, pid=pid, host=host, acquired_at=now, released_at=None)
                .returning(lease.fence)
            ).scalar_one()
            connection.execute(
                update(RunRecord).where(run.status == "running").values(status="killed", ended_at=now, error=_KILLED)
            )
        self._fence = int(fence)
        return self._fence

    def writer_lock(self, path: Path) -> WriterLock:
        """For `Lease.acquire`: the lock of the warehouse's one writer. A journal on a server needs no file at `path`."""
        return self._database.writer_lock(path)

    def prune_runs(self, before: datetime) -> int:
        """Forget runs that ended before; how many. One that runs is never forgotten."""
        run = columns(RunRecord)
        with self._writing() as connection:
            return connection.execute(delete(RunRecord).where(run.ended_at < before)).rowcount

    def drop_lease(self, fence: int) -> None:
        """For `Lease.release`: note the end, unless there is a newer owner."""
        lease = columns(LeaseRecord)
        with self._writing() as connection:
            connection.execute(
                update(LeaseRecord)
                .where(lease.name == "writer", lease.fence == fence)
                .values(released_at=self._clock.now())
            )
        if self._fence == fence:
            self._fence = None

    def setting(self, name: str, *, connection: str = "") -> str | None:
        """What was noted under this name for a connection (empty: for the project), or None."""
        setting = columns(SettingRecord)
        with self._reading() as opened:
            value: str | None = opened.execute(
                select(setting.value).where(setting.connection == connection, setting.name == name)
            ).scalar_one_or_none()
            return value

    def set_setting(self, name: str, value: str | None, *, connection: str = "") -> None:
        """Note it; None removes the note."""
        with self._writing() as opened:
            if value is None:
                opened.exec_driver_sql("DELETE FROM settings WHERE connection = ? AND name = ?", (connection, name))
            else:
                self._note(opened, name, value, connection=connection)

    def _note(self, opened: Connection, name: str, value: str, *, connection: str = "") -> None:
        """Note it in a transaction that does more."""
        opened.exec_driver_sql(
            "INSERT INTO settings (connection, name, value, changed_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (connection, name) DO UPDATE "
            "SET value = excluded.value, changed_at = excluded.changed_at",
            (connection, name, value, to_text(self._clock.now())),
        )


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
