"""Checked records become a temporary relation: spool file in, `staged_<noun>` out.

The spool is newline-delimited JSON, mode 0600, working storage only: it is gone before the landing commits. It holds what
the shape check re-encoded, so that the loader cannot read anything else than what was checked.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from octo_sync.destinations.base import Answered
from octo_sync.destinations.ddl import quoted
from octo_sync.destinations.landing.coverage import answers_as
from octo_sync.destinations.relations import given, sql
from octo_sync.model import SubjectKind, Window
from octo_sync.tables.schema import STAGED, Noun, Table

FLAGS = {"pricing": "has_pricing", "content": "has_content", "extras": "has_extras"}

_SUBJECT = ("connection_id", "resource", "subject_key", "request_seq", "product_id", "option_id")

_SPOOL = 2 << 20
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
    rows: int
    """Records staged."""
    seen: bool = False
    """Whether there are bookings that were in an answer but not read: `seen_bookings`."""
    unknown: bool = False
    """Whether some field has a value that is not on its list."""
    days: Window | None = None
    """From the first to the last day of departures that the answers are about."""


@dataclass
class Stage:
    """One noun's answers of one landing. `tables` are those made from the noun."""

    db: duckdb.DuckDBPyConnection
    noun: Noun
    answered: Sequence[Answered]
    spool: Path
    tables: Sequence[Table]

    def read(self) -> None:
        """Read the spool into `staged_<noun>`, by one statement: to plan it costs as much as to read some megabytes."""
        # By travel month, product and option, so that what is asked for together lies together on disk.
        ordered = sorted(self.answered, key=lambda a: (a.subject.parts[-1:], a.subject.parts))
        files: list[list[bytes]] = []
        size = _SPOOL
        for line in (line for a in ordered for line in a.lines):
            # DuckDB holds two thousand lines of a file at once, whatever their length: so a file is short.
            if size >= _SPOOL:
                files.append([])
                size = 0
            files[-1].append(line)
            size += len(line)
        longest = max((len(line) + 2 for lines in files for line in lines), default=0)
        with contextlib.ExitStack() as stack:
            self._read([stack.enter_context(self._spooled(lines)) for lines in files or [[]]], longest)

    @contextlib.contextmanager
    def _spooled(self, lines: Sequence[bytes]) -> Iterator[str]:
        with tempfile.NamedTemporaryFile(suffix=".ndjson", dir=self.spool) as file:  # made with mode 0600
            # By one call: after each call this thread waits until whoever checks answers lets it go on.
            file.write(b"\n".join(lines))
            file.flush()
            yield file.name

    def settle(self) -> None:
        """Leave out what later requests have shown. From here on the rows that are there count."""
        self._stage_seen()
        self._leave_out()
        self.facts = self._look()

    def _look(self) -> Facts:
        asked = {flag: f"bool_and({flag})" for flag in FLAGS.values()}
        asked |= {t.full_name: f"bool_or({t.present})" for t in self.tables if t.present}
        odd = " or ".join(f"len({enum.unknown}) > 0" for enum in self.noun.enums) or "false"
        looks = f"select count(*), {', '.join(asked.values())}, bool_or({odd}) from staged_{self.noun.name} r"
        rows, *found, unknown = self.db.execute(looks).fetchone() or (0, None)
        windows = [a.window for a in self.answered if a.window] if self.noun.name == "availability" else []
        true = frozenset(name for name, value in zip(asked, found, strict=True) if value)
        return Facts(
            flags=true & set(FLAGS.values()),
            present=true - set(FLAGS.values()),
            rows=rows,
            seen=any(a.seen for a in self.answered),
            unknown=bool(unknown),
            days=Window(min(w.start for w in windows), max(w.end for w in windows)) if windows else None,
        )

    def _read(self, files: list[str], longest: int) -> None:
        columns = [f"{column}: '{kind}'" for column, kind in STAGED]
        columns += [f"{column}: '{kind}[]'" for column, kind in self.noun.beside]
        columns.append("records: " + quoted(f"{self.noun.record}[]"))
        parts = {
            "lists": ", ".join(column for column, _ in (*self.noun.beside, ("records", ""))),
            "beside": "".join(f"unnest({column}) as {column}, " for column, _ in self.noun.beside),
            "columns": "{" + ", ".join(columns) + "}",
        }
        self.db.execute(sql("stage", noun=self.noun.name, longest=max(_LEAST_LINE, longest), **parts), [files])

    def _leave_out(self) -> None:
        left_out = [pair for a in self.answered for pair in a.left_out]
        if left_out:
            key = "uuid" if self.noun.name == "bookings" else "id"
            self.db.execute(
                f"delete from staged_{self.noun.name} s where (s.request_seq, s.{key}) in "
                "(select unnest($1::bigint[]), unnest($2::varchar[]))",
                [list(column) for column in zip(*left_out, strict=True)],
            )

    def _stage_seen(self) -> None:
        """What was in the answers and not read becomes `seen_bookings`."""
        seen = [(a.subject.connection, a.subject.key, s.uuid) for a in self.answered for s in a.seen]
        if not seen:
            return
        select, values = given(("connection_id", "subject_key", "booking_uuid"), seen)
        self.db.execute(f"create or replace temp table seen_bookings as {select}", values)

    def note_digests(self) -> None:
        """Rows that stayed as they were may come from other bytes now: contacts are not in them, and texts are left alone."""
        self.db.execute(sql("digests"))

    def absence_scope(self, table: Table) -> str | None:
        """Which rows of the table the complete answers speak for: a relation for `Merger.note_absences`, or None."""
        name = table.full_name
        complete = [a for a in self.answered if a.complete]
        if name == "core.products":
            complete = [a for a in complete if a.subject.kind is SubjectKind.PRODUCTS]
        elif name == "core.bookings":
            complete = [a for a in complete if a.subject.kind is SubjectKind.BOOKINGS and a.date_meaning != "unknown"]
        if not complete:
            return None
        if self.noun.name == "products" and name != "core.products":
            flag = f" where has_{table.capability}" if table.capability else ""
            # A product's own document is asked again, whichever answer it was missed in.
            return (
                "select connection_id, product_id, 'product' as resource, to_json([product_id])::varchar as subject_key, "
                f"max(request_seq) as request_seq from ({self.noun.scope}){flag} group by all"
            )
        select, values = answers_as(complete, (*_SUBJECT, "window_start", "window_end", "date_meaning"))
        self.db.execute(f"create or replace temp table answered_scope as {select}", values)
        return "select * from answered_scope"

    def forget_other_answers(self) -> None:
        """A record that changed by one road makes the last answer of the other road old news.

        Without this, an answer whose bytes go back to what they were would be taken for unchanged. Before the merge.
        """
        kinds = {a.subject.kind for a in self.answered}
        if self.noun.name == "products":
            self.db.execute(sql("forget_products"))
        elif self.noun.name == "bookings":
            if SubjectKind.BOOKINGS in kinds:
                self.db.execute(sql("forget_own"))
            if SubjectKind.BOOKING in kinds:
                self.db.execute(sql("forget_lists"))
