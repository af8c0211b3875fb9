"""What comparisons with ledgers and other systems found: since when, what is settled since, and what somebody lets be.

A difference is the same one tomorrow when name, key, bucket and field are; `DifferenceRow` draws its life. Acceptances
are kept by key beside the differences, so that accepting one does not make it another one, and those who accept need not
wait for whoever owns the warehouse.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, delete, func, insert, select, update
from sqlmodel import SQLModel

from octo_sync.errors import JournalError
from octo_sync.journal import sql
from octo_sync.journal.erasures import GONE
from octo_sync.journal.models import (
    AcceptanceRow,
    AgedDifference,
    DifferenceRow,
    FoundDifference,
    ReconciliationRun,
    StoredDifference,
    as_json,
    columns,
    to_text,
)
from octo_sync.journal.rows import DifferenceCount
from octo_sync.journal.store import Table, chosen
from octo_sync.model import Window

MOST_DIFFERENCES = 100_000
"""Open differences of one reconciliation. More are nobody's work list but a wrong file, and their transaction would keep the
receivers of webhooks waiting."""

_LONGEST_VALUE = 1_000
"""Characters of a value that are kept: a ledger's cell may hold a novel."""
_LONGEST_KEY = 500
"""Characters of a key: PostgreSQL's indexes take no row above a third of a page."""
_NEAREST = 3
_REVISION = "reconciliations"
"""The setting that holds the number of the last change."""

_Identity = tuple[str, str, str]
"""Key, bucket and field: which difference of a reconciliation it is."""
_Rows = Collection[list[str | None]]


class Reconciliations(Table):
    """The tables `reconciliation_runs`, `differences` and `acceptances`."""

    def store(self, run: ReconciliationRun, found: Sequence[FoundDifference], seen: Collection[_Identity] = ()) -> None:
        """Store a comparison and age its differences.

        Found again: its values are renewed and `first_seen_at` stays; after it had been resolved, it is new. Not found any
        more: resolved, if its day lies in the run's window, or it has none and that window is as long as that of the run that
        found it last and shares days with it; otherwise nobody looked, and it stays as it is. Those of `seen`, of which it is
        too early to tell, stay open if they are. A run that `failed` compared nothing: it is written down and differences stay
        as they are.

        Said twice with the same name and run, the second changes nothing. Values of bookings that were erased are not
        stored. How many differences there are is counted here.

        Raises:
            JournalError: More than 100,000 differences would be open, or a key is longer than 500 characters; nothing
                was stored.
            ValueError: Two of `found` are the same difference, or a comparison that failed has found something.
        """
        if run.verdict == "failed" and found:
            raise ValueError("a comparison that failed has found nothing")
        name, known = run.name, columns(ReconciliationRun)
        early = [[_storable(value) for value in identity] for identity in seen]
        with self._writing() as opened:
            rows = self._rows(name, found)  # in here: who is erased meanwhile waits, and finds what is stored
            if opened.execute(select(known.id).where(known.name == name, known.run_id == run.run_id)).first() is None:
                new = resolved = 0
                if run.verdict != "failed":
                    new, resolved = self._age(opened, run, rows.values(), early)
                counted = {"differences": len(rows), "new_differences": new, "resolved_differences": resolved}
                counts = opened.exec_driver_sql(sql.DIFFERENCE_COUNTS)
                counted["open_differences"] = sum(each.open - each.accepted for each in counts if each.name == name)
                opened.execute(insert(ReconciliationRun).values(**run.model_dump(exclude_unset=True), **counted))
                self._changed(opened)

    @staticmethod
    def _age(opened: Connection, run: ReconciliationRun, rows: _Rows, early: _Rows) -> tuple[int, int]:
        """How many differences it opened and resolved."""
        name, window = run.name, run.window
        before = _count(opened, _open(name))
        about = name, run.run_id, to_text(run.ended_at)
        opened.exec_driver_sql(sql.STORE_DIFFERENCES, (as_json(list(rows)), *about))
        opened.exec_driver_sql(sql.RENEW_DIFFERENCES, (as_json(list(early)), *about))
        since = _count(opened, _open(name))
        days = window.start.isoformat(), window.end.isoformat()
        elsewhere = json.dumps(_elsewhere(opened, name, window))
        resolved = opened.exec_driver_sql(sql.RESOLVE_DIFFERENCES, (*about, *days, elsewhere)).rowcount
        if since - resolved > MOST_DIFFERENCES:
            raise _too_many(name)
        return since - before, resolved

    def _rows(self, name: str, found: Sequence[FoundDifference]) -> Mapping[_Identity, list[str | None]]:
        """What was found as the statement wants it, by what it is stored under; in the same order."""
        if len(found) > MOST_DIFFERENCES:
            raise _too_many(name)
        erased = {
            uuid for e in self._store.erasures.rows() for uuid in (*e.bookings, *(c[1] for c in e.contacts or ()))
        }
        rows: dict[_Identity, list[str | None]] = {}
        for one in found:
            if len(one.key) > _LONGEST_KEY:
                raise JournalError(
                    f"The reconciliation {name} found a key of {len(one.key)} characters, which no booking has: are `keys` "
                    "the right columns? Nothing was stored."
                )
            is_erased = one.booking_uuid in erased
            here, there = (None, None) if is_erased else (one.here_value, one.there_value)
            row = [_storable(value) for value in (
                one.key, one.bucket, one.field, one.rule, one.connection, one.booking_uuid, _cut(here), _cut(there),
                None if one.delta_amount is None else str(one.delta_amount), one.currency, one.reason, one.code,
                one.day.isoformat() if one.day else None, None if is_erased else one.both_rows,
            )]  # fmt: skip
            rows[str(row[0]), str(row[1]), str(row[2])] = row
        if len(rows) < len(found):
            raise ValueError(f"the reconciliation {name} gives the same key, bucket and field twice")
        return rows

    # -- what somebody lets be -------------------------------------------------------------------------------------------

    def accept(self, name: str, key: str, *, note: str, by: str, until: date | None, now: datetime) -> int:
        """Let the differences of a key be, those to come as well; how many are open now. Said again, it is replaced.

        Raises:
            JournalError: No open difference has this key, or the note is empty.
        """
        if not note.strip():
            raise JournalError("To accept a difference needs a note that says why; nothing was changed.")
        difference = columns(DifferenceRow)
        with self._writing() as opened:
            covered = _count(opened, and_(_open(name), difference.key == key))
            if covered:
                said = {"note": note.strip(), "accepted_by": by, "accepted_at": now, "until": until}
                opened.execute(delete(AcceptanceRow).where(*_of(name, key)))
                opened.execute(insert(AcceptanceRow).values(name=name, key=key, **said))
                self._changed(opened)
        if not covered:
            raise self._unknown(name, key)
        return covered

    def unaccept(self, name: str, key: str) -> None:
        """Look at the differences of a key again.

        Raises:
            JournalError: Nobody has accepted them.
        """
        with self._writing() as opened:
            if not opened.execute(delete(AcceptanceRow).where(*_of(name, key))).rowcount:
                raise JournalError(f"Nothing of {name} was accepted under the key {key}; nothing was changed.")
            self._changed(opened)

    def is_known(self, name: str, key: str) -> bool:
        """Whether a difference of the key was ever found, open or not."""
        difference = columns(DifferenceRow)
        with self._store.reading() as opened:
            return bool(_count(opened, and_(difference.name == name, difference.key == key)))

    def acceptances(self, name: str | None = None) -> list[AcceptanceRow]:
        """What was accepted of a reconciliation or of all, whether it still holds or not, by key."""
        return self._store.rows(chosen(select(AcceptanceRow).order_by(columns(AcceptanceRow).key), name=name))

    def _unknown(self, name: str, key: str) -> JournalError:
        keys = [key for (key,) in self._store.ask(select(columns(DifferenceRow).key).where(_open(name)).distinct())]
        if not keys:
            return JournalError(f"No difference of {name} is open; nothing was changed.")
        near = sorted(keys, key=lambda one: (-_alike(one.lower(), key.lower()), one))[:_NEAREST]
        return JournalError(
            f"No open difference of {name} has the key {key}; nothing was changed. The nearest: {', '.join(near)}."
        )

    # -- reading ---------------------------------------------------------------------------------------------------------

    def runs(self, name: str | None, limit: int) -> list[ReconciliationRun]:
        """The last comparisons of one reconciliation or of all, newest first."""
        newest = select(ReconciliationRun).order_by(columns(ReconciliationRun).id.desc())
        return self._store.rows(chosen(newest, name=name).limit(limit))

    def open_differences(self, name: str | None) -> list[StoredDifference]:
        """What is open in one reconciliation or in all, accepted or not; by name, key, bucket and field."""
        difference = columns(DifferenceRow)
        wanted = _stored().where(difference.resolved_at.is_(None))
        return self._differences(wanted if name is None else wanted.where(difference.name == name))

    def differences(self) -> list[StoredDifference]:
        """All that are stored, with those that were resolved."""
        return self._differences(_stored())

    def count(self) -> int:
        """How many those are."""
        return int(self._store.value("SELECT count(*) FROM differences"))

    def _differences(self, wanted: Select[Any]) -> list[StoredDifference]:
        return [StoredDifference(**row._mapping) for row in self._store.ask(wanted)]  # noqa: SLF001

    def revision(self) -> int:
        """A number that grows with every change of what this file stores; 0 before the first."""
        return int(self._store.settings.get(_REVISION) or 0)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction of these tables, one at a time: the row of the revision is its own until it ends."""
        with self._store.writing() as opened:
            touched = "", _REVISION, "0", to_text(self._store.clock.now())
            opened.exec_driver_sql(sql.NOTE + " DO UPDATE SET name = excluded.name", touched)
            yield opened

    def _changed(self, opened: Connection) -> None:
        # From the counter that only grows: another life of the journal never gives a number again that a copy has seen.
        self._store.settings.note(opened, _REVISION, str(self._store.next_number(opened)))

    def counts(self) -> list[DifferenceCount]:
        """How many differences are open, per reconciliation and bucket."""
        return self._store.counted(DifferenceCount, sql.DIFFERENCE_COUNTS)

    # -- what goes -------------------------------------------------------------------------------------------------------

    def prune(self, before: datetime) -> int:
        """Forget runs that ended before and differences that were resolved before; how many.

        The last run of each reconciliation stays, and the last that compared: what is new is new since that one.
        """
        run, difference = columns(ReconciliationRun), columns(DifferenceRow)
        lasting = select(func.max(run.id)).group_by(run.name, case((run.verdict == "failed", 1), else_=0))
        with self._writing() as opened:
            gone = opened.execute(
                delete(ReconciliationRun).where(run.ended_at < before, run.id.not_in(lasting))
            ).rowcount
            gone += opened.execute(delete(DifferenceRow).where(difference.resolved_at < before)).rowcount
            if gone:
                self._changed(opened)
        return gone

    def repeats(self, bookings: Collection[str], is_theirs: Callable[[str], bool]) -> bool:
        """Whether `blank_differences` would find anything."""
        with self._store.reading() as opened:
            return bool(_personal(opened, bookings, is_theirs))

    def blank(self, bookings: Collection[str], is_theirs: Callable[[str], bool]) -> int:
        """Empty the values of these bookings' differences, and replace texts that name somebody; in how many rows.

        That there is a difference, its age and its amount stay.
        """
        with self._writing() as opened:
            found = _personal(opened, bookings, is_theirs)
            for record, id_, values in found:
                opened.execute(update(record).where(columns(record).id == id_).values(values))
            if found:
                self._changed(opened)
        return len(found)


def _personal(
    opened: Connection, bookings: Collection[str], is_theirs: Callable[[str], bool]
) -> list[tuple[type[SQLModel], int, dict[str, str | None]]]:
    """Rows that say something of them: the table, the row's id, and its columns as they are to be."""
    difference, acceptance = columns(DifferenceRow), columns(AcceptanceRow)
    values = (difference.here_value, difference.there_value, difference.both_rows)
    found: list[tuple[type[SQLModel], int, dict[str, str | None]]] = []
    for row in opened.execute(select(difference.id, difference.booking_uuid, *values, difference.reason)).mappings():
        is_erased = row["booking_uuid"] in bookings
        blank: dict[str, str | None] = {
            name: None if name == "both_rows" or (is_erased and name != "reason") else GONE
            for name in ("here_value", "there_value", "both_rows", "reason")
            if row[name] is not None and ((is_erased and name != "reason") or is_theirs(_said(name, row[name])))
        }
        if blank:
            found.append((DifferenceRow, row["id"], blank))
    notes = opened.execute(select(acceptance.id, acceptance.note))
    return found + [(AcceptanceRow, id_, {"note": GONE}) for id_, note in notes if is_theirs(note)]


def _said(name: str, value: str) -> str:
    """What a column says; JSON writes some letters otherwise."""
    if name != "both_rows":
        return value
    return "\n".join(text for _, here, there, _ in json.loads(value) for text in (*here, *there))


def _count(opened: Connection, condition: ColumnElement[bool]) -> int:
    return int(opened.execute(select(func.count()).select_from(DifferenceRow).where(condition)).scalar_one())


def _open(name: str) -> ColumnElement[bool]:
    difference = columns(DifferenceRow)
    return and_(difference.name == name, difference.resolved_at.is_(None))


def _elsewhere(opened: Connection, name: str, window: Window) -> list[str]:
    """Runs that were the last to find something without a day, and looked at more days than `window` has or at none of them.

    A window that moves on with the days looks at as much as before. Of a run that was pruned nobody knows what it looked at:
    what it found would stay open for good.
    """
    run, difference = columns(ReconciliationRun), columns(DifferenceRow)
    dayless = select(difference.run_id).where(_open(name), difference.day.is_(None))
    found = opened.execute(
        select(run.run_id, run.window_start, run.window_end).where(run.name == name, run.run_id.in_(dayless))
    )
    return [
        run_id
        for run_id, start, end in found
        if Window(start, end).days > window.days or window.clip(Window(start, end)) is None
    ]


def _of(name: str, key: str) -> tuple[ColumnElement[bool], ...]:
    acceptance = columns(AcceptanceRow)
    return acceptance.name == name, acceptance.key == key


def _stored() -> Select[Any]:
    """All differences, each with the acceptance of its key."""
    difference, acceptance = columns(DifferenceRow), columns(AcceptanceRow)
    return (
        select(
            *(difference[name] for name in AgedDifference.model_fields),
            acceptance.note.label("accepted_note"),
            acceptance.accepted_by,
            acceptance.until.label("accepted_until"),
        )
        .select_from(DifferenceRow)
        .outerjoin(AcceptanceRow, and_(acceptance.name == difference.name, acceptance.key == difference.key))
        .order_by(difference.name, difference.key, difference.bucket, difference.field)
    )


def _alike(one: str, other: str) -> int:
    """Characters that begin and end alike: 1.4 s for 100,000 keys, where `difflib` takes 20."""
    pairs = zip(one, other, strict=False), zip(reversed(one), reversed(other), strict=False)
    return sum(sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both)) for both in pairs)


def _too_many(name: str) -> JournalError:
    return JournalError(
        f"The reconciliation {name} has more than {MOST_DIFFERENCES:,} differences: is it the right ledger? Nothing was stored."
    )


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= _LONGEST_VALUE else value[: _LONGEST_VALUE - 1] + "…"


def _storable(value: str | None) -> str | None:
    """PostgreSQL has no character 0, in JSON neither."""
    return None if value is None else value.replace("\0", "\N{REPLACEMENT CHARACTER}")
