"""How it is, counted where the rows are: what `status` and `/metrics` say costs one statement each, however many subjects."""

import json
from collections.abc import Collection
from datetime import datetime

from octo_sync.journal import sql
from octo_sync.journal.models import from_text, to_text
from octo_sync.journal.rows import DifferenceCount, KindCount, QuarantineCount
from octo_sync.journal.store import Store
from octo_sync.model import SubjectKind

__all__ = ["Overview"]

_NO_MONTHS = ("", "")
"""No month lies between the two."""


class Overview(Store):
    """Counts over several tables; nothing is written."""

    def connection_names(self) -> list[str]:
        """The connections that anything was ever asked of, by name."""
        with self._reading() as opened:
            rows = opened.exec_driver_sql("SELECT DISTINCT connection FROM subjects ORDER BY connection").all()
        return [name for (name,) in rows]

    def kind_counts(
        self,
        connection: str,
        now: datetime,
        *,
        availability: tuple[str, str] = _NO_MONTHS,
        bookings: tuple[str, str] = _NO_MONTHS,
        include: Collection[str] = (),
        exclude: Collection[str] = (),
    ) -> list[KindCount]:
        """What one connection's subjects come to, by kind.

        Args:
            connection: Whose.
            now: What is due by then is due.
            availability: The first and last month (`YYYY-MM`) of the horizon; what lies outside is owed, but not counted.
            bookings: The same for bookings.
            include: Availability of these products alone; empty: of all.
            exclude: Availability of these products not at all.
        """
        listed = [json.dumps(sorted(ids)) if ids else None for ids in (include, exclude)]
        values = (connection, to_text(now), *availability, *bookings, *listed)
        with self._reading() as opened:
            rows = opened.exec_driver_sql(sql.KIND_COUNTS, values).all()
        return [
            KindCount(
                kind=SubjectKind(kind),
                subjects=subjects,
                verified=verified,
                oldest=_instant(oldest),
                newest=_instant(newest),
                unverified_since=_instant(since),
                owed=owed,
                due=due,
                oldest_mark=_instant(mark),
            )
            for kind, subjects, verified, oldest, newest, since, owed, due, mark in rows
        ]

    def quarantine_counts(self) -> list[QuarantineCount]:
        """How many subjects and records are left alone, per connection and resource."""
        with self._reading() as opened:
            rows = opened.exec_driver_sql(sql.QUARANTINE_COUNTS, ("",)).all()
        return [
            QuarantineCount(connection=name, resource=resource, entries=int(count)) for name, resource, count in rows
        ]

    def difference_counts(self) -> list[DifferenceCount]:
        """How many differences are open, per reconciliation and bucket."""
        with self._reading() as opened:
            rows = opened.exec_driver_sql(sql.DIFFERENCE_COUNTS).all()
        return [
            DifferenceCount(name=name, bucket=bucket, open=count, accepted=accepted, oldest=from_text(oldest))
            for name, bucket, count, accepted, oldest in rows
        ]

    def last_run_id(self) -> int:
        """The number of the newest run; 0 before the first."""
        with self._reading() as opened:
            return int(opened.exec_driver_sql("SELECT coalesce(max(id), 0) FROM runs").scalar_one())

    def runs_after(self, number: int, also: Collection[int] = ()) -> list[tuple[int, str, str]]:
        """Number, command and status of the runs after a number, and of others by number; in their order."""
        with self._reading() as opened:
            rows = opened.exec_driver_sql(sql.RUNS_AFTER, (number, json.dumps(sorted(also)))).all()
        return [(number, command, status) for number, command, status in rows]

    def size(self) -> int:
        """Bytes that the journal takes, its write-ahead log included."""
        with self._reading() as opened:
            return self._database.size(opened)


def _instant(stored: str | None) -> datetime | None:
    return None if stored is None else from_text(stored)
