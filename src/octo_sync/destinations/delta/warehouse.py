"""The warehouse in Delta Lake, with a working copy in DuckDB on the machine that lands.

Everything about rows is decided by the landing's SQL in the working copy, which is a DuckDB warehouse. What it changed is then
written to the lake, and counts when the lake says so (`lake.py`). A file beside the working copy names the landing that it is
of; before anything is changed that file is removed. So a copy that was left in the middle of a landing, or that is older than
the lake because another machine has landed since, is known when it is opened, and made anew from the lake.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from octo_sync.destinations.base import Absence, Fence, Landing, LandingReport
from octo_sync.destinations.ddl import placed
from octo_sync.destinations.delta.lake import BUCKET, MONTH, Lake, Landed
from octo_sync.destinations.delta.note import Note
from octo_sync.destinations.delta.partitions import Digests, changed, condition, digests, rows_of
from octo_sync.destinations.delta.tables import KEPT_HOURS, described, readable
from octo_sync.destinations.delta.tables import translated as lake_errors
from octo_sync.destinations.delta.together import publish, published
from octo_sync.destinations.duckdb.carry_over import OWN
from octo_sync.destinations.duckdb.publish import DuckDBDraft
from octo_sync.destinations.duckdb.reader import DuckDBReader
from octo_sync.destinations.duckdb.transactions import translated
from octo_sync.destinations.duckdb.warehouse import DuckDBWarehouse
from octo_sync.destinations.migrations import steps_after
from octo_sync.destinations.reading import BATCH_ROWS
from octo_sync.destinations.relations import Run
from octo_sync.tables.schema import Table

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

T = TypeVar("T")
_Touched = tuple[Collection[str], Collection[str]]
"""The nouns and the connections of a landing: it changes rows of no others."""

_WIDE = "products"
"""A noun whose landing may change rows of all others."""
_PROOF, MARTS = "ops.coverage", "marts"


class DeltaWarehouse(DuckDBWarehouse):
    """A warehouse in Delta tables.

    Args:
        root: A folder or an address that delta-rs can write, such as `s3://bucket/octo`.
        copy: The working copy's file, made when it is not there or is not what the lake has; its private file lies beside it.
        settings: As of a DuckDB warehouse: `tables`, `nouns`, `now` and more.
    """

    def __init__(self, root: str, copy: Path, private_copy: Path, *, tables: Sequence[Table], **settings: Any) -> None:  # noqa: ANN401 - the working copy's
        self._lake = Lake(root, [t for t in tables if t.full_name not in OWN])
        self._note = Note(copy, private_copy)
        self._digests: dict[str, Digests] = {}
        """Of what is in the lake."""
        self._shown: dict[str, int] = {}
        """The versions of the tables that a copy in the making has the rows of."""
        landed = self._lake.look()
        steps = steps_after(landed.schema if landed else None, root)
        is_as_landed = landed is not None and not steps and self._note.is_of(landed)
        if not is_as_landed:
            self._note.remove_copy()
        super().__init__(copy, private_copy, tables=tables, **settings)
        try:
            with self._lock, translated(self.path):
                if landed is not None and not is_as_landed:
                    self._load(landed)
                if landed is not None and not steps:
                    self._digests = self._looked()
                for statement in (statement for step in steps for statement in step.statements):
                    self._db.execute(statement)
                if not is_as_landed:
                    self._store()
                self.migrated = self.migrated or steps
        except BaseException:
            self._db.close()
            raise

    # -- the working copy ---------------------------------------------------------------------------------------

    def _load(self, landed: Landed) -> None:
        """Fill the copy, which is empty, with what has landed."""
        self._lake.undo()
        self._run("insert into ops.writer (fence, owner, connection_id) values ($1, '', '')", [landed.fence])
        for name in landed.versions.keys() & self._lake.tables.keys():
            table, rows = self._lake.tables[name], self._lake.read(name)
            kept = [c for c in table.all_columns if c.name in rows.schema.names]
            self._db.register("lake_rows", rows)
            self._run(
                f"insert into {placed(table)} ({', '.join(c.name for c in kept)}) "
                f"select {', '.join(f'{c.name}::{c.type}' for c in kept)} from lake_rows"
            )
            self._db.unregister("lake_rows")

    def _looked(self, touched: _Touched | None = None) -> dict[str, Digests]:
        """What the copy's parts are by now, of those tables and connections that were touched; None: of all."""
        nouns, connections = touched or ((), ())
        looked: dict[str, Digests] = {}
        for name, table in self._lake.tables.items():
            # A history is written with the table that it follows.
            if not nouns or _WIDE in nouns or self._lake.tables[table.history_of or name].noun in {*nouns, ""}:
                found = {
                    (c, month): (rows, number) for c, month, rows, number in self._run(digests(table, connections))
                }
                others = self._digests.get(name, {}) if connections else {}
                looked[name] = {p: told for p, told in others.items() if p[0] not in {"", *connections}} | found
        return looked

    def _token(self) -> int:
        ((fence,),) = self._run("select coalesce(max(fence), 0) from ops.writer")
        return int(fence)

    # -- writing ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _stored(self, touched: _Touched | None = None) -> Iterator[None]:
        """What the block changes in the copy, of no more than it may touch, is in the lake when it has ended."""
        with self._lock, translated(self.path):
            self._lake.check(self._token())
            is_as_landed = self._note.is_there
            self._note.forget()
            yield
            self._store(touched if is_as_landed else None)

    def _store(self, touched: _Touched | None = None) -> None:
        """Write each partition that is another one than in the lake: rows before what says that they are proven.

        What an earlier landing could not write is written now: the copy never goes back, so an answer may count on it.
        """
        self._mend()
        now, fence = self._looked(touched), self._token()
        for name in sorted(now, key=lambda name: (not self._lake.tables[name].private, name == _PROOF, name)):
            is_new = name not in self._digests
            partitions = changed(self._digests.get(name, {}), now[name])
            if partitions or is_new:
                table, where = self._lake.tables[name], None if is_new else condition(partitions)
                rows, meant = rows_of(table, partitions, now[name]), _meant(table) if is_new else {}
                with contextlib.ExitStack() as cursors:
                    self._lake.write(name, partial(self._batches, *rows, meant, cursors), where, fence)
                self._digests[name] = now[name]
        landed = self._lake.landed
        if self._lake.versions != landed.versions or landed.fence != fence:
            self._lake.commit(fence)
        self._note.remember(self._lake.landed)

    def _batches(
        self, select: str, values: list[list[Any]], meant: Mapping[str, str], cursors: contextlib.ExitStack
    ) -> "pa.RecordBatchReader":
        """What a query finds, each column with what it means, where that is to be written."""
        # A cursor of its own: when a write fails, what was not read to its end would block all else.
        cursor = cursors.enter_context(contextlib.closing(self._db.cursor()))
        cursor.execute("set timezone = 'UTC'").fetchall()
        found = readable(cursor.sql(select, params=values).to_arrow_reader(BATCH_ROWS))
        return described(found, meant) if meant else found

    @contextlib.contextmanager
    def _once(self, fence: Fence) -> Iterator[Run]:
        with self._stored(), super()._once(fence) as run:
            yield run

    def land(self, landing: Landing) -> LandingReport:
        """Land everything or nothing; see `Destination`."""
        with self._stored(({a.noun for a in landing.answered}, {a.subject.connection for a in landing.answered})):
            return super().land(landing)

    def bury(self, absences: Sequence[Absence], *, now: datetime, fence: Fence) -> int:
        """Mark proven deletions; see `Destination`."""
        with self._stored():
            return super().bury(absences, now=now, fence=fence)

    # -- publishing ---------------------------------------------------------------------------------------------

    def _copied(self, target: Path, contacts: Path | None) -> DuckDBDraft:
        with self._lock, translated(self.path):
            with self._stored():
                pass  # what is published is looked at whole
            draft = super()._copied(target, contacts)
            self._shown = {n: v for n, v in self._lake.versions.items() if not self._lake.tables[n].private}
        return draft

    @contextlib.contextmanager
    def drafting(self, target: Path | None = None, *, contacts: Path | None = None) -> Iterator[DuckDBDraft]:
        """Marts as in a DuckDB file, and what of them is published is published in the lake, too; see `Destination`."""
        with self._drafting:
            with super().drafting(target, contacts=contacts) as draft:
                yield draft
            if target is not None and draft.is_published:
                self._publish(target)

    def _publish(self, copy: Path) -> None:
        """Write the marts of a copy, and which versions of them and of the tables belong together."""
        ((at,),) = self._read(lambda run: run("select current_timestamp", ()))
        with contextlib.closing(DuckDBReader(copy)) as reader, lake_errors(self._lake.root):
            beside = {name.replace(".", "/"): version for name, version in self._shown.items()}
            publish(reader, published(self._lake.root, self._token()), at, (MARTS,), beside)

    def move_in(self, files: Mapping[bool, Path], fence: int) -> int:
        """Take every row of a project's files into these tables, which are empty; how many."""
        with self._stored():
            return super().move_in(files, fence)

    # -- care ---------------------------------------------------------------------------------------------------

    def prune(self, **before: datetime | None) -> int:
        """Remove what is old, and files that no reader is at any more; see `Destination`."""
        gone = super().prune(**before)
        self._lake.vacuum(self._lake.tables, KEPT_HOURS)
        return gone

    def shed(self, *, core: bool) -> None:
        """Have the bytes go from the copy and from the lake; see `Destination`."""
        super().shed(core=core)
        with self._lock:
            self._lake.vacuum([name for name, table in self._lake.tables.items() if core or table.private], 0)

    def shed_published(self) -> None:
        """Have former marts go from the lake; see `Destination`."""
        with lake_errors(self._lake.root):
            published(self._lake.root).vacuum(f"{MARTS}/")


def _meant(table: Table) -> dict[str, str]:
    """What each column of a table in the lake means."""
    added = {BUCKET: "Of the connection: rows of one lie together.", MONTH: "Of its day, or none."}
    return {c.name: c.description for c in table.all_columns} | added
