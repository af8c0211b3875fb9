"""What is left alone, with its reason, until someone looks (R11): failing subjects and single records."""

from collections.abc import Collection, Iterable
from typing import Literal

from sqlalchemy import delete

from octo_sync.errors import JournalError
from octo_sync.journal import sql
from octo_sync.journal.models import QuarantinedRecord, SubjectRow, columns, key_of, to_text
from octo_sync.journal.rows import QuarantineEntry
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
        run_id: str,
        *,
        subject: Subject | None = None,
    ) -> None:
        """Note a record that did not land; once per connection, resource, key and path, however often it is seen.

        `subject` is what a retry marks.
        """
        seen = connection, resource, key, path, reason[:_LONGEST_REASON]
        again = (subject.kind.value, subject.key) if subject else (None, None)
        self._store.change(sql.QUARANTINE_RECORD, *seen, *again, to_text(self._store.clock.now()), run_id)

    def clear(self, entries: Iterable[QuarantineEntry]) -> None:
        """These records landed fine. One that a person took off the list meanwhile does not matter."""
        if noted := sorted((_row_id(entry), to_text(entry.last_at)) for entry in entries):
            with self._store.writing() as opened:
                opened.exec_driver_sql("DELETE FROM quarantined_records WHERE id = ? AND last_at = ?", noted)

    def entries(self) -> list[QuarantineEntry]:
        """Everything that is left alone: subjects first, each by age."""
        return self._store.counted(QuarantineEntry, sql.QUARANTINE, "")

    def retry(self, ids: Collection[str] | Literal["all"]) -> list[QuarantineEntry]:
        """Mark what they stand for as a person would: due at once, failures forgiven. The entries that were named.

        A record's note stays until the record lands fine (`clear`). An unknown id is a JournalError, and
        nothing is marked.
        """
        with self._store.lock:
            entries = self._named(ids)
            if subjects := list(dict.fromkeys(entry.subject for entry in entries if entry.subject is not None)):
                self._store.subjects.mark(subjects, Source.USER)
        return entries

    def drop(self, ids: Collection[str] | Literal["all"]) -> list[QuarantineEntry]:
        """Take them off the list without a retry; the entries that were named.

        A record's note goes. A subject's row goes: it counts as never verified, and the next mark starts it afresh. One that
        was marked meanwhile stays.
        """
        with self._store.lock:
            entries = self._named(ids)
            subjects = {key_of(one.subject): one for one in entries if one.what == "subject" and one.subject}
            with self._store.writing() as connection:
                row = columns(SubjectRow)
                for key in sorted(subjects):
                    mine = row.id == _row_id(subjects[key]), row.quarantined_at.is_not(None)
                    if connection.execute(delete(SubjectRow).where(*mine)).rowcount:
                        self._store.subjects.let_go([Subject.from_key(*key)])
                for number in sorted(_row_id(entry) for entry in entries if entry.what == "record"):
                    connection.execute(delete(QuarantinedRecord).where(columns(QuarantinedRecord).id == number))
        return entries

    def counts(self) -> dict[tuple[str, str], int]:
        """How many subjects and records are left alone, by connection and resource."""
        counted = self._store.ask(sql.QUARANTINE_COUNTS, "")
        return {(connection, resource): entries for connection, resource, entries in counted}

    def _named(self, ids: Collection[str] | Literal["all"]) -> list[QuarantineEntry]:
        entries = self.entries()
        if ids == "all":
            return entries
        if unknown := sorted(set(ids) - {entry.id for entry in entries}):
            raise JournalError(
                f"Nothing in quarantine is called {', '.join(unknown)}; list the quarantine to see the ids."
            )
        return [entry for entry in entries if entry.id in ids]


def _row_id(entry: QuarantineEntry) -> int:
    return int(entry.id.rpartition("-")[2])
