"""The watermark on DuckDB: one row of `ops.coverage` a subject, in the same transaction as its rows (R8)."""

from collections.abc import Sequence
from typing import Any

import duckdb

from octo_sync.destinations.base import Answered
from octo_sync.model import Subject, SubjectKind

__all__ = ["cover", "cover_open_dated"]

_COLUMNS = {
    "connection_id": "varchar",
    "resource": "varchar",
    "key": "varchar",
    "product_id": "varchar",
    "option_id": "varchar",
    "travel_month": "varchar",
    "window_start": "date",
    "window_end": "date",
    "verified_at_utc": "timestamptz",
    "source": "varchar",
    "row_count": "bigint",
    "is_complete": "boolean",
    "missing_capabilities": "varchar",
    "request_seq": "bigint",
    "answer_hash": "varchar",
    "run_id": "varchar",
}
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
    rows = [_row(a, run_id) for a in answered if not a.unasked]
    if not rows:
        return []
    arrays = [list(column) for column in zip(*rows, strict=True)]
    types = {**_COLUMNS, "is_equal": "boolean"}
    select = ", ".join(f"unnest(${i + 1}::{t}[]) as {c}" for i, (c, t) in enumerate(types.items()))
    wrong: list[Subject] = []
    if any(a.unchanged for a in answered):
        # An equal answer keeps the findings of the one it equals. Since it was compared, another landing may have made that
        # one old news; or this one did.
        kept = {c: f"case when {_EQUAL} then o.{c} else n.{c} end" for c in _FOUND}
        kept |= {"answer_hash": f"case when not ({_WRONG}) then n.answer_hash end", "is_wrong": _WRONG}
        rest = ", ".join(
            [*(f"n.{c}" for c in types if c not in kept), *(f"{value} as {c}" for c, value in kept.items())]
        )
        select = f"{rest} from (select {select}) n left join ops.coverage o on {_SAME}"
    db.execute(f"create or replace temp table covering as select {select}", arrays)
    if any(a.unchanged for a in answered):
        found = db.execute("select connection_id, resource, key from covering where is_wrong").fetchall()
        wrong = sorted(Subject.from_key(*row) for row in found)
    db.execute(f"delete from ops.coverage o using covering n where {_SAME}")
    # While rows are missed, an equal answer must be looked at again: it may be the second proof.
    misses = (
        "exists (select 1 from ops.absences a where a.connection_id = n.connection_id and "
        "(a.resource = n.resource and a.subject_key = n.key "
        "or n.resource = 'products' and a.resource = 'product' "
        "or n.resource = 'bookings' and a.table_name = 'core.bookings'))"
    )
    values = ", ".join(
        f"case when {misses} then null else n.{c} end" if c == "answer_hash" and missed else f"n.{c}" for c in _COLUMNS
    )
    db.execute(f"insert into ops.coverage ({', '.join(_COLUMNS)}) select {values} from covering n")
    return wrong


def cover_open_dated(db: duckdb.DuckDBPyConnection, answered: Sequence[Answered], run_id: str) -> None:
    """Put on record which bookings without a day of travel the lists showed. After the merge, in the same transaction.

    No window speaks for such a booking, so what verifies it is the list that showed it: its month stands in `travel_month`,
    and an equal answer renews it.
    """
    lists = [a for a in answered if a.subject.kind is SubjectKind.BOOKINGS and not a.unasked]
    if not lists:
        return
    columns = {
        "connection_id": ("varchar", [a.subject.connection for a in lists]),
        "subject_key": ("varchar", [a.subject.key for a in lists]),
        "travel_month": ("varchar", [a.subject.travel_month for a in lists]),
        "verified_at_utc": ("timestamptz", [a.fetched_at for a in lists]),
        "source": ("varchar", [str(a.source) for a in lists]),
        "missing_capabilities": ("varchar", [",".join(a.missing_capabilities) for a in lists]),
        "request_seq": ("bigint", [a.request_seq for a in lists]),
        "is_equal": ("boolean", [a.unchanged for a in lists]),
    }
    select = ", ".join(f"unnest(${i + 1}::{kind}[]) as {name}" for i, (name, (kind, _)) in enumerate(columns.items()))
    db.execute(f"create or replace temp table listing as select {select}", [values for _, values in columns.values()])
    former = "o.resource = 'open_dated' and o.connection_id = n.connection_id and o.travel_month = n.travel_month"
    db.execute(
        "update ops.coverage o set verified_at_utc = n.verified_at_utc, source = n.source, request_seq = n.request_seq, "
        f"run_id = $1 from listing n where n.is_equal and {former} and o.request_seq < n.request_seq",
        [run_id],
    )
    if all(a.unchanged for a in lists):
        return
    db.execute(f"update ops.coverage o set travel_month = null from listing n where not n.is_equal and {former}")
    shown = "select connection_id, subject_key, uuid as booking_uuid from staged_bookings where resource = 'bookings'"
    if any(a.seen for a in lists):
        shown += " union select connection_id, subject_key, booking_uuid from seen_bookings"
    db.execute(
        "create or replace temp table shown_bookings as select n.*, t.local_date, to_json([t.booking_uuid])::varchar as key "
        f"from ({shown}) s join listing n using (connection_id, subject_key) join core.bookings t "
        "on t.connection_id = s.connection_id and t.booking_uuid = s.booking_uuid where not t.is_deleted "
        "qualify row_number() over (partition by t.connection_id, t.booking_uuid order by n.request_seq desc) = 1"
    )
    db.execute(
        "delete from ops.coverage o using shown_bookings n where o.resource = 'open_dated' "
        "and o.connection_id = n.connection_id and o.key = n.key"
    )
    db.execute(
        "insert into ops.coverage (connection_id, resource, key, travel_month, verified_at_utc, source, row_count, "
        "is_complete, missing_capabilities, request_seq, run_id) select connection_id, 'open_dated', key, travel_month, "
        "verified_at_utc, source, 1, true, missing_capabilities, request_seq, $1 from shown_bookings where local_date is null",
        [run_id],
    )


def _row(a: Answered, run_id: str) -> tuple[Any, ...]:
    return (
        a.subject.connection,
        str(a.subject.kind),
        a.subject.key,
        a.subject.product_id,
        a.subject.option_id,
        a.subject.travel_month,
        a.window.start if a.window else None,
        a.window.end if a.window else None,
        a.fetched_at,
        str(a.source),
        a.row_count,
        a.complete,
        ",".join(a.missing_capabilities),
        a.request_seq,
        a.answer_hash if a.complete and not a.left_out else None,
        run_id,
        a.unchanged,
    )
