"""What is owed: marking, claiming, landing."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import select, tuple_

from octo_sync.journal import sql
from octo_sync.journal.models import SubjectRow, as_json, columns, from_text, key_of, to_text
from octo_sync.journal.rows import Backlog, KindCount
from octo_sync.journal.store import Table, chosen
from octo_sync.model import Claim, Source, Subject, SubjectKind

if TYPE_CHECKING:
    from octo_sync.journal.root import Journal

_PAGE = 1000
_LONGEST_MESSAGE = 2000
_NO_MONTHS = ("", "")
"""No month lies between the two."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A claim of this process. In memory only: whoever kills the process gives its claims back."""

    row_id: int
    wanted_seq: int
    run_id: str
    claimed_at: str


class Subjects(Table):
    """The `subjects` table, and the claims of this process."""

    def __init__(self, journal: "Journal") -> None:
        super().__init__(journal)
        self._held: defaultdict[str, dict[Subject, _Held]] = defaultdict(dict)
        """By connection, of which there may be thousands."""

    # ── saying "look again" ───────────────────────────────────────────────────────────────────────────────────────

    def mark(
        self, subjects: Iterable[Subject], source: Source, *, due_at: datetime | None = None, priority: int = 0
    ) -> int:
        """Say "look again" for all of them, in one durable transaction; the number of this mark.

        Marking never loses anything and may be repeated at will. `due_at` is when the subject may be fetched (None: at
        once); a clean subject marked for later is dirty but not yet due. Of several unanswered marks the earliest
        `due_at`, the highest `priority` and the most demanding source stand (notification, user, repair, confirm,
        schedule). A confirming fetch is therefore marked *after* the landing that it confirms: before, it would merge
        with it.

        A subject that is backing off keeps its retry's time. A quarantined one becomes due again by a person's mark
        (failures forgiven), by a notification, a confirmation or a repair (failures still counted: one more try); not by a
        schedule or a timer. See `sql.MARK`.
        """
        due = None if due_at is None else to_text(due_at)
        keys = sorted({key_of(subject) for subject in subjects})
        with self._store.writing() as connection:
            number = self._store.next_number(connection)
            if keys:
                marked = as_json(keys), number, priority, source.value, to_text(self._store.clock.now()), due
                connection.exec_driver_sql(sql.MARK, marked)
        return number

    # ── working it off ────────────────────────────────────────────────────────────────────────────────────────────

    def claim(
        self,
        limit: int,
        *,
        run_id: str,
        kinds: Collection[SubjectKind] | None = None,
        connections: Collection[str] | None = None,
        exclude: Collection[Subject] = (),
    ) -> list[Claim]:
        """Up to `limit` subjects to fetch now: dirty, due, not quarantined, in nobody's hands here, not in `exclude`.

        One connection after the other. Highest priority first; then subscription, supplier, products, product, availability,
        bookings, booking; within a kind by travel month, then key (product, option). Each claim carries the `wanted_seq` to
        hand back (R2). Claims live in this object's memory and nowhere else: a killed process takes them along, and its
        successor finds the subjects dirty as before. They end with `landed`, `failed`, `release`, `forget` or the run's
        `end_run`.
        """
        unwanted = [key_of(subject) for subject in exclude]
        with self._store.reading() as connection:
            self._store.check_fence(connection, connections, lasting=False)
            now = to_text(self._store.clock.now())
            claims: list[Claim] = []
            for name in self.due(kinds) if connections is None else connections:
                in_work = json.dumps([held.row_id for held in self._held[name].values()])
                values = now, limit - len(claims), _listed(kinds), name, in_work, json.dumps(unwanted)
                for row_id, *key, wanted_seq, attempts, source in connection.exec_driver_sql(sql.CLAIM, values).all():
                    subject = Subject.from_key(*key)
                    self._held[name][subject] = _Held(row_id, wanted_seq, run_id, now)
                    claims.append(Claim(subject, wanted_seq, attempts, Source(source)))
            return claims

    def landed(self, claims: Sequence[Claim], *, run_id: str) -> None:
        """Their results are committed in the warehouse. Marked again meanwhile: still dirty (R2)."""
        if not claims:
            return
        with self._store.lock:
            now = to_text(self._store.clock.now())
            held = [self._held_of(claim) for claim in claims]
            rows = [
                (*key_of(claim.subject), claim.wanted_seq, now, run_id, mine.claimed_at if mine else None)
                for claim, mine in zip(claims, held, strict=True)
            ]
            with self._store.writing() as connection:
                self._store.check_fence(connection, {claim.subject.connection for claim in claims})
                connection.exec_driver_sql(sql.LANDED, sorted(rows, key=lambda row: row[:3]))
            self.release(claims)

    def failed(
        self, claim: Claim, *, error_code: str, message: str, retry_at: datetime | None, quarantine: bool, run_id: str
    ) -> None:
        """The fetch or the landing failed: one more attempt, due again at `retry_at` (None: at once).

        `quarantine=True`: left alone from now on (R11), unless it was marked again during the attempt: that mark is
        news and gets its own try first.
        """
        with self._store.lock:
            with self._store.writing() as connection:
                self._store.check_fence(connection, [claim.subject.connection])
                now, again = to_text(self._store.clock.now()), None if retry_at is None else to_text(retry_at)
                reason = error_code, message[:_LONGEST_MESSAGE]
                row = (*key_of(claim.subject), claim.wanted_seq, now, run_id, *reason, again, quarantine)
                connection.exec_driver_sql(sql.FAILED, row)
            self.release([claim])

    def release(self, claims: Iterable[Claim]) -> None:
        """Give claims back untouched (Ctrl-C, shutdown). Nothing is written."""
        with self._store.lock:
            for claim in claims:
                if self._held_of(claim) is not None:
                    del self._held[claim.subject.connection][claim.subject]

    def forget(self, subjects: Collection[Subject]) -> None:
        """These do not exist any more: their rows go, and whoever works on them has nothing to hand back."""
        if not subjects:
            return
        with self._store.lock:
            with self._store.writing() as connection:
                self._store.check_fence(connection, {subject.connection for subject in subjects})
                connection.exec_driver_sql(sql.FORGET, sorted(map(key_of, subjects)))
            self.let_go(subjects)

    # ── looking ───────────────────────────────────────────────────────────────────────────────────────────────────

    def due(self, kinds: Collection[SubjectKind] | None = None) -> list[str]:
        """The connections of which something is due now, by name, also what is in somebody's hands."""
        now = to_text(self._store.clock.now())
        return [name for (name,) in self._store.ask(sql.DUE, now, _listed(kinds))]

    def dirty_count(
        self, kinds: Collection[SubjectKind] | None = None, connections: Collection[str] | None = None
    ) -> int:
        """How many subjects can still be worked on, now or later; the quarantined are not among them."""
        return int(self._store.value(sql.DIRTY_COUNT, _listed(kinds), _listed(connections)))

    def dirty_among(self, subjects: Iterable[Subject]) -> set[Subject]:
        """Those of them that are owed a fetch, quarantined or not, or are being fetched."""
        wanted = {key_of(subject): subject for subject in subjects}
        if not wanted:
            return set()
        return {wanted[row[0], row[1], row[2]] for row in self._store.ask(sql.DIRTY_AMONG, json.dumps(list(wanted)))}

    def unlanded_since(self, number: int, connections: Collection[str]) -> bool:
        """Whether anything that was marked with this number or before still waits to be landed since, quarantined apart."""
        return bool(self._store.ask(sql.UNLANDED_SINCE, number, _listed(connections)))

    def next_due_at(self, after: datetime) -> datetime | None:
        """The first moment later than `after` at which a subject becomes due; None when nothing waits for a time.

        `after` is when the caller last looked at what is due: what became due since then must not be slept over.
        """
        due = self._store.value(sql.NEXT_DUE_AT, to_text(after))
        return None if due is None else from_text(due)

    def backlog(self) -> list[Backlog]:
        """What is owed, per connection and kind; kinds that nothing is owed to are not listed."""
        return self._store.counted(Backlog, sql.BACKLOG, to_text(self._store.clock.now()))

    def kinds(self) -> set[SubjectKind]:
        """The kinds of which anything was ever asked for."""
        return {SubjectKind(kind) for (kind,) in self._store.ask("SELECT DISTINCT kind FROM subjects")}

    def rows(self, connection: str | None = None, kind: SubjectKind | None = None) -> Iterator[SubjectRow]:
        """All subjects by connection, kind and key, in pages: what changes meanwhile may be seen old or new.

        So a slow reader never holds a transaction open.
        """
        subject = columns(SubjectRow)
        place = subject.connection, subject.kind, subject.key
        wanted = page = chosen(select(SubjectRow).order_by(*place).limit(_PAGE), connection=connection, kind=kind)
        while True:
            rows = self._store.rows(page)
            yield from rows
            if len(rows) < _PAGE:
                return
            page = wanted.where(tuple_(*place) > tuple_(rows[-1].connection, rows[-1].kind, rows[-1].key))

    def connection_names(self) -> list[str]:
        """The connections that anything was ever asked of, by name."""
        names = "SELECT DISTINCT connection FROM subjects ORDER BY connection"
        return [name for (name,) in self._store.ask(names)]

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
        return self._store.counted(KindCount, sql.KIND_COUNTS, *values)

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _held_of(self, claim: Claim) -> _Held | None:
        held = self._held[claim.subject.connection].get(claim.subject)
        return held if held is not None and held.wanted_seq == claim.wanted_seq else None

    def let_go(self, subjects: Iterable[Subject]) -> None:
        """Their rows are gone: whoever works on them has nothing to hand back."""
        with self._store.lock:
            for subject in subjects:
                self._held[subject.connection].pop(subject, None)

    def release_run(self, run_id: str) -> None:
        """Give back every claim of a run."""
        with self._store.lock:
            for name, held in self._held.items():
                self._held[name] = {subject: mine for subject, mine in held.items() if mine.run_id != run_id}


def _listed(values: Collection[str] | None) -> str | None:
    return None if values is None else json.dumps([str(value) for value in values])
