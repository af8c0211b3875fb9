"""The watermark on DuckDB: one row of `ops.coverage` a subject, in the same transaction as its rows (R8)."""

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from octo_sync.destinations.base import Answered
from octo_sync.destinations.relations import given, sql
from octo_sync.model import Subject, SubjectKind
from octo_sync.tables.ops import COVERAGE

_COLUMNS = {c.name: c.type.replace("text", "varchar") for c in COVERAGE.columns}
_TYPES = _COLUMNS | {"is_equal": "boolean"}
_VERIFIED = ("verified_at_utc", "source", "missing_capabilities", "request_seq", "is_equal")
_FOUND = ("row_count", "is_complete", "missing_capabilities")
_SAME = "o.connection_id = n.connection_id and o.resource = n.resource and o.key = n.key"
_EQUAL = "n.is_equal and o.key is not null"
_WRONG = f"{_EQUAL} and o.answer_hash is distinct from n.answer_hash"


def cover(db: duckdb.DuckDBPyConnection, answered: Sequence[Answered], run_id: str, *, missed: bool) -> list[Subject]:
    """Renew the coverage of the subjects. Runs inside a transaction that the caller opened.

    `missed` says whether `ops.absences` may hold any row.

    Returned are those whose answer was taken for equal to one that is no longer what is landed.
    """
    # What was not asked for was not verified: what is known of it stays as old as it is.
    asked = [a for a in answered if not a.unasked]
    if not asked:
        return []
    columns = [*_COLUMNS, "is_equal"]
    select, arrays = answers_as(asked, columns, run_id=run_id)
    wrong: list[Subject] = []
    if any(a.unchanged for a in answered):
        # An equal answer keeps the findings of the one it equals. Since it was compared, another landing may have made that
        # one old news; or this one did.
        kept = {c: f"case when {_EQUAL} then o.{c} else n.{c} end" for c in _FOUND}
        kept |= {"answer_hash": f"case when not ({_WRONG}) then n.answer_hash end", "is_wrong": _WRONG}
        rest = ", ".join(
            [*(f"n.{c}" for c in columns if c not in kept), *(f"{value} as {c}" for c, value in kept.items())]
        )
        select = f"select {rest} from ({select}) n left join ops.coverage o on {_SAME}"
    db.execute(f"create or replace temp table covering as {select}", arrays)
    if any(a.unchanged for a in answered):
        found = db.execute("select connection_id, resource, key from covering where is_wrong").fetchall()
        wrong = sorted(Subject.from_key(*row) for row in found)
    db.execute(f"delete from ops.coverage o using covering n where {_SAME}")
    values = {c: f"n.{c}" for c in _COLUMNS}
    if missed:
        values["answer_hash"] = f"case when {sql('still_missed')} then null else n.answer_hash end"
    db.execute(f"insert into ops.coverage ({', '.join(values)}) select {', '.join(values.values())} from covering n")
    return wrong


def cover_open_dated(db: duckdb.DuckDBPyConnection, answered: Sequence[Answered], run_id: str) -> None:
    """Put on record which bookings without a day of travel the lists showed. After the merge, in the same transaction.

    No window speaks for such a booking, so what verifies it is the list that showed it: its month stands in `travel_month`,
    and an equal answer renews it.
    """
    lists = [a for a in answered if a.subject.kind is SubjectKind.BOOKINGS and not a.unasked]
    if not lists:
        return
    select, values = answers_as(lists, ("connection_id", "subject_key", "travel_month", *_VERIFIED))
    db.execute(f"create or replace temp table listing as {select}", values)
    former = "o.resource = 'open_dated' and o.connection_id = n.connection_id and o.travel_month = n.travel_month"
    db.execute(sql("open_dated_equal", former=former), [run_id])
    if all(a.unchanged for a in lists):
        return
    db.execute(sql("open_dated_gone", former=former))
    shown = "select connection_id, subject_key, uuid as booking_uuid from staged_bookings where resource = 'bookings'"
    if any(a.seen for a in lists):
        shown += " union select connection_id, subject_key, booking_uuid from seen_bookings"
    db.execute(sql("shown_bookings", shown=shown))
    db.execute(sql("open_dated_forget"))
    db.execute(sql("open_dated_shown"), [run_id])


def answers_as(
    answered: Iterable[Answered], columns: Sequence[str], *, run_id: str = ""
) -> tuple[str, list[list[Any]]]:
    """What is known of each answer: columns of `ops.coverage`, `subject_key`, `date_meaning` and `is_equal`."""
    known = [_known(a, run_id) for a in answered]
    return given({c: _TYPES.get(c, "varchar") for c in columns}, [[row[c] for c in columns] for row in known])


def _known(a: Answered, run_id: str) -> dict[str, Any]:
    return {
        "connection_id": a.subject.connection,
        "resource": str(a.subject.kind),
        "key": a.subject.key,
        "subject_key": a.subject.key,
        "product_id": a.subject.product_id,
        "option_id": a.subject.option_id,
        "travel_month": a.subject.travel_month,
        "window_start": a.window.start if a.window else None,
        "window_end": a.window.end if a.window else None,
        "verified_at_utc": a.fetched_at,
        "source": str(a.source),
        "row_count": a.row_count,
        "is_complete": a.complete,
        "missing_capabilities": ",".join(a.missing_capabilities),
        "request_seq": a.request_seq,
        "answer_hash": a.answer_hash if a.complete and not a.left_out else None,
        "run_id": run_id,
        "is_equal": a.unchanged,
        "date_meaning": a.date_meaning,
    }
