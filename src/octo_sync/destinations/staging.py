"""Checked records become a temporary relation: spool file in, `staged_<noun>` out.

The spool is newline-delimited JSON, mode 0600, working storage only: it is gone before the landing commits. It holds what
the shape check re-encoded, so that the loader cannot read anything else than what was checked.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from octo_sync.destinations.base import Answered
from octo_sync.model import SubjectKind
from octo_sync.schema import STAGED, Noun, Table

__all__ = ["FLAGS", "Facts", "Stage"]

FLAGS = {"pricing": "has_pricing", "content": "has_content", "extras": "has_extras"}

_SPOOL = 4 << 20
"""Bytes of one spool file."""
_LEAST_LINE = 1 << 20
"""Bytes DuckDB may expect of a line at least; it reserves memory by the longest."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about everything staged, so that statements which cannot matter are not even planned."""

    flags: frozenset[str]
    """Capabilities (as `has_…`) that every answer really had."""
    present: frozenset[str]
    """Tables with `present` of which some record holds a row."""
    parents: frozenset[str]
    """Tables whose changed rows decide about details."""


class Stage:
    """One noun's answers of one landing. `tables` are those made from the noun."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        noun: Noun,
        answered: Sequence[Answered],
        *,
        spool: Path,
        tables: Sequence[Table],
    ) -> None:
        self._db = connection
        self.noun = noun
        self._tables = tables
        self._answered = answered
        self._spool = spool

    def load(self) -> None:
        """Read the spool into `staged_<noun>` and leave out what is not for this landing."""
        # By travel month, product and option, so that what is asked for together lies together on disk.
        ordered = sorted(self._answered, key=lambda a: (a.subject.parts[-1:], a.subject.parts))
        staged = f"staged_{self.noun.name}"
        begin = f"create or replace temp table {staged} as"
        lines: list[bytes] = []
        size = 0
        for line in (line for a in ordered for line in a.lines):
            lines.append(line)
            size += len(line)
            if size >= _SPOOL:
                self._read(lines, begin)
                begin, lines, size = f"insert into {staged}", [], 0
        if lines or begin.startswith("create"):
            self._read(lines, begin)
        self._leave_out()
        self.facts = self._look()

    def _look(self) -> Facts:
        details = [t for t in self._tables if t.present]
        asked = [f"bool_and({flag})" for flag in FLAGS.values()] + [f"bool_or({t.present})" for t in details]
        found = self._db.execute(f"select {', '.join(asked)} from staged_{self.noun.name}").fetchone() or ()
        names = [*FLAGS.values(), *(t.full_name for t in details)]
        true = frozenset(name for name, value in zip(names, found, strict=True) if value)
        return Facts(
            flags=true & set(FLAGS.values()),
            present=true - set(FLAGS.values()),
            parents=frozenset(t.parent for t in self._tables if t.parent),
        )

    def _read(self, lines: Sequence[bytes], begin: str) -> None:
        """Read some lines. DuckDB holds two thousand lines of a file at once, whatever their length: so the file is short."""
        handle, name = tempfile.mkstemp(suffix=".ndjson", dir=self._spool)  # made with mode 0600
        try:
            with os.fdopen(handle, "wb") as out:
                out.writelines(line + b"\n" for line in lines)
            longest = max((len(line) + 2 for line in lines), default=0)
            columns = ", ".join(f"{column}: '{kind}'" for column, kind in STAGED)
            record = self.noun.record.replace("'", "''")
            self._db.execute(
                f"{begin} select * exclude (records), "
                f"unnest(records) as r from read_json($1, format = 'newline_delimited', records = 'true', "
                f"columns = {{{columns}, records: '{record}[]'}}, maximum_object_size = {max(_LEAST_LINE, longest)})",
                [name],
            )
        finally:
            Path(name).unlink(missing_ok=True)

    def _leave_out(self) -> None:
        staged = f"staged_{self.noun.name}"
        if self.noun.name == "availability":
            # A slot outside the days that were asked for belongs to another subject.
            self._db.execute(
                f'delete from {staged} where left(r."localDateTimeStart", 10)::date '
                f"not between window_start and window_end"
            )
        elif self.noun.name == "products":
            self._newest("r.id, language")
            # R6 between a list and a single product: the later request wins.
            self._db.execute(
                f"delete from {staged} s where exists (select 1 from ops.coverage c "
                f"where c.connection_id = s.connection_id and c.request_seq > s.request_seq and "
                f"(c.resource = 'products' and s.resource = 'product' "
                f"or c.resource = 'product' and c.product_id = s.r.id))"
            )
        elif self.noun.name == "bookings":
            self._newest("r.uuid")
            if not self._later_landed():
                return
            self._db.execute(
                f"delete from {staged} s where exists (select 1 from ops.coverage c "
                f"where c.connection_id = s.connection_id and c.resource = 'booking' "
                f"and c.key = to_json([s.r.uuid])::varchar and c.request_seq > s.request_seq)"
            )
            self._db.execute(
                f"delete from {staged} s where s.resource = 'booking' and exists (select 1 from core.bookings t "
                f"join ops.coverage c on c.connection_id = t.connection_id and c.resource = 'bookings' "
                f"and t.local_date between c.window_start and c.window_end "
                f"where t.connection_id = s.connection_id and t.booking_uuid = s.r.uuid and not t.is_deleted "
                f"and c.request_seq > s.request_seq)"
            )

    def _later_landed(self) -> bool:
        """Whether any booking answer landed whose request started after the first of these."""
        first = min(a.request_seq for a in self._answered)
        found = self._db.execute(
            "select 1 from ops.coverage where resource in ('booking', 'bookings') and request_seq > $1 limit 1", [first]
        )
        return found.fetchone() is not None

    def _newest(self, key: str) -> None:
        """Several answers of one landing may hold the same record: the one whose request started last counts."""
        if len(self._answered) > 1:
            staged = f"staged_{self.noun.name}"
            self._db.execute(
                f"delete from {staged} where rowid in (select rowid from {staged} "
                f"qualify row_number() over (partition by connection_id, {key} order by request_seq desc) > 1)"
            )

    def absence_scope(self, table: Table) -> str | None:
        """Which rows of the table the complete answers speak for: a relation for `Merger.note_absences`, or None."""
        name = table.full_name
        complete = [a for a in self._answered if a.complete]
        if name == "core.products":
            complete = [a for a in complete if a.subject.kind is SubjectKind.PRODUCTS]
        elif name == "core.bookings":
            complete = [
                a
                for a in complete
                if a.subject.kind is SubjectKind.BOOKINGS and a.date_meaning in ("travel", "creation")
            ]
        if not complete:
            return None
        if self.noun.name == "products" and name != "core.products":
            flag = f" where has_{table.capability}" if table.capability else ""
            # A product's own document is asked again, whichever answer it was missed in.
            return (
                "select connection_id, product_id, 'product' as resource, to_json([product_id])::varchar as subject_key, "
                f"max(request_seq) as request_seq from ({self.noun.scope}){flag} group by all"
            )
        self._db.execute(
            "create or replace temp table answered_scope as select unnest($1::varchar[]) as connection_id, "
            "unnest($2::varchar[]) as resource, unnest($3::varchar[]) as subject_key, "
            "unnest($4::bigint[]) as request_seq, unnest($5::varchar[]) as product_id, "
            "unnest($6::varchar[]) as option_id, unnest($7::date[]) as window_start, unnest($8::date[]) as window_end, "
            "unnest($9::varchar[]) as date_meaning",
            [
                [a.subject.connection for a in complete],
                [str(a.subject.kind) for a in complete],
                [a.subject.key for a in complete],
                [a.request_seq for a in complete],
                [(a.subject.parts or (None,))[0] for a in complete],
                [a.subject.parts[1] if len(a.subject.parts) > 1 else None for a in complete],
                [a.window.start if a.window else None for a in complete],
                [a.window.end if a.window else None for a in complete],
                [a.date_meaning for a in complete],
            ],
        )
        return "select * from answered_scope"

    def forget_answers_about_changed_bookings(self) -> None:
        """A booking that changed by its own road makes the last answer of its window old news.

        Without this, a window whose bytes go back to what they were would be taken for unchanged.
        """
        self._db.execute(
            "update ops.coverage c set answer_hash = null from (select s.connection_id, t.local_date, "
            "t.utc_created_at::date as created_date from staged_bookings s join changed_core_bookings d "
            "on d.connection_id = s.connection_id and d.booking_uuid = s.r.uuid "
            "join core.bookings t on t.connection_id = s.connection_id and t.booking_uuid = s.r.uuid "
            "where s.resource = 'booking') b where c.connection_id = b.connection_id and c.resource = 'bookings' "
            "and (b.local_date between c.window_start and c.window_end "
            "or b.created_date between c.window_start and c.window_end)"
        )
