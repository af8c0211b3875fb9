"""What is left alone, with its reason, until someone looks (R11): failing subjects and single records."""

from collections.abc import Collection, Iterable
from typing import Literal

from sqlalchemy import delete

from octo_sync.errors import JournalError
from octo_sync.journal import sql
from octo_sync.journal.models import QuarantinedRecord, SubjectRow, columns, to_text
from octo_sync.journal.rows import QuarantineCount, QuarantineEntry
from octo_sync.journal.store import Table
from octo_sync.model import Source, Subject

_LONGEST_REASON = 2000


class Quarantine(Table):
    """The `quarantined_records` table and the quarantined rows of `subjects`."""

    def add_record(
        self,
        connection: str,
        resource: str,
        key: str,
        path: str,
        reason: str,
        payload_digest: str,
        run_id: str,
        *,
        subject: Subject | None = None,
    ) -> None:
        """Note a record that did not land; once per connection, resource, key and path, however often it is seen.

        `subject` is what a retry marks.
        """
        seen = connection, resource, key, path, reason[:_LONGEST_REASON], payload_digest
        again = (subject.kind.value, subject.key) if subject else (None, None)
        self._store.change(sql.QUARANTINE_RECORD, *seen, *again, to_text(self._store.clock.now()), run_id)

    def clear_records(self, connection: str, resource: str, key: str | Iterable[str]) -> int:
        """The record landed fine: its notes go, whatever their paths. Several keys at once are one transaction."""
        keys = [key] if isinstance(key, str) else list(key)
        if self._store.value("SELECT NOT EXISTS (SELECT 1 FROM quarantined_records)"):
            return 0  # the usual case costs no commit
        with self._store.writing() as opened:
            return sum(
                opened.exec_driver_sql(
                    'DELETE FROM quarantined_records WHERE connection = ? AND resource = ? AND "key" = ?',
                    (connection, resource, one),
                ).rowcount
                for one in keys
            )

    def clear(self, ids: Iterable[str]) -> None:
        """These records landed fine. One that a person took off the list meanwhile does not matter."""
        if numbers := [(int(one.rpartition("-")[2]),) for one in ids]:
            with self._store.writing() as opened:
                opened.exec_driver_sql("DELETE FROM quarantined_records WHERE id = ?", numbers)

    def entries(self) -> list[QuarantineEntry]:
        """Everything that is left alone: subjects first, each by age."""
        return self._store.counted(QuarantineEntry, sql.QUARANTINE, "")

    def retry(self, ids: Collection[str] | Literal["all"]) -> list[QuarantineEntry]:
        """Mark what they stand for as a person would: due at once, failures forgiven. The entries that were named.

        A record's note stays until the record lands fine (`clear_records`). An unknown id is a JournalError, and
        nothing is marked.
        """
        with self._store.lock:
            entries = self._named(ids)
            if subjects := list(dict.fromkeys(entry.subject for entry in entries if entry.subject is not None)):
                self._store.subjects.mark(subjects, Source.USER)
        return entries

    def drop(self, ids: Collection[str] | Literal["all"]) -> list[QuarantineEntry]:
        """Take them off the list without a retry; the entries that were named.

        A record's note goes. A subject's row goes: it counts as never verified, and the next mark starts it afresh.
        """
        with self._store.lock:
            entries = self._named(ids)
            with self._store.writing() as connection:
                for entry in entries:
                    table = SubjectRow if entry.what == "subject" else QuarantinedRecord
                    row_id = int(entry.id.rpartition("-")[2])
                    connection.execute(delete(table).where(columns(table).id == row_id))
            self._store.subjects.let_go(entry.subject for entry in entries if entry.what == "subject" and entry.subject)
        return entries

    def counts(self) -> list[QuarantineCount]:
        """How many subjects and records are left alone, per connection and resource."""
        return self._store.counted(QuarantineCount, sql.QUARANTINE_COUNTS, "")

    def _named(self, ids: Collection[str] | Literal["all"]) -> list[QuarantineEntry]:
        entries = self.entries()
        if ids == "all":
            return entries
        if unknown := sorted(set(ids) - {entry.id for entry in entries}):
            raise JournalError(
                f"Nothing in quarantine is called {', '.join(unknown)}; list the quarantine to see the ids."
            )
        return [entry for entry in entries if entry.id in ids]
