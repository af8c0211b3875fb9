"""The tables of a warehouse in Delta Lake, and the one table that says which of their versions count.

Delta has no transaction over several tables. So the table `octo_sync_landed` is written last, in one commit, and names a
version of every table: those are what has landed, all together (R8). A version beyond it is of a landing that was cut off; it
is undone before anything is written to that table again. Each commit carries two numbers of ours (`Transaction`): that of its
landing, by which one whose answer was lost is known again, and which lets no other commit come in between; and the writer's
fence (R9).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from octo_sync.destinations.delta.tables import Overtaken, flush, marked, opened, overwrite, sweep, translated
from octo_sync.destinations.migrations import SCHEMA_VERSION
from octo_sync.errors import WriterFenced
from octo_sync.tables.schema import Table

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
    from deltalake import DeltaTable

STATE = "octo_sync_landed"
BUCKET, MONTH = "partition_bucket", "partition_month"
"""Columns that say in which files a row is: what is written at once is what lies together."""
LANDING, FENCE = "octo-sync landing", "octo-sync fence"
SETTINGS: Mapping[str, str] = {"delta.dataSkippingNumIndexedCols": "0"}
"""Of every table: its log repeats no value of a row, or a person's name would stay there when the rows are gone."""


@dataclass(frozen=True, slots=True)
class Landed:
    """What has landed: in which lake, by the how many-th landing, of which writer, in which schema, each table's version."""

    id: str
    number: int
    fence: int
    schema: int
    versions: Mapping[str, int]


class Lake:
    """All tables of one warehouse, as its one writer sees them. Blocking.

    Args:
        root: A folder or an address that delta-rs can write, such as `s3://bucket/octo`; personal data is in `root.private`.
        tables: What is kept there.
    """

    def __init__(self, root: str, tables: Sequence[Table]) -> None:
        self.root, self.landed = root.rstrip("/"), Landed("", -1, 0, SCHEMA_VERSION, {})
        self.tables = {t.full_name: t for t in tables}
        places = {False: self.root, True: f"{self.root}.private"}
        self._paths = {t.full_name: f"{places[t.private]}/{t.schema}/{t.name}" for t in tables}
        self._paths[STATE] = f"{self.root}/{STATE}"
        self._opened: dict[str, DeltaTable] = {}
        self._reached: dict[str, int] = {}
        """The version of each table that was read or written here last."""

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of each table that has everything that was written here."""
        return {name: version for name, version in self._reached.items() if name != STATE}

    def look(self) -> Landed | None:
        """What has landed by now, whoever landed it; None where nothing ever has. It counts from here on."""
        with translated(self.root):
            state = opened(self._paths[STATE])
            if state is None:
                return None
            self._opened[STATE], self.landed = state, _landed(state)
        self._reached = {**self.landed.versions, STATE: self.landed.number}
        return self.landed

    def undo(self) -> None:
        """Bring every table back to what has landed."""
        with translated(self.root):
            for name in self.landed.versions:
                self._undo(name, self._latest(name), self.landed.fence)

    def read(self, name: str) -> Any:  # noqa: ANN401 - a pyarrow Dataset, which ships no types
        """The rows of a table, to be scanned."""
        with translated(self.root):
            return self._table(name).to_pyarrow_dataset()

    def write(
        self, name: str, batches: "Callable[[], pa.RecordBatchReader]", partitions: str | None, fence: int
    ) -> None:
        """Put rows in the place of those of some partitions, a condition, or with None of all.

        Raises:
            WriterFenced: A newer writer took over.
            WarehouseError: It cannot be written.
        """
        with translated(self.root):
            try:
                self._put(name, batches, partitions, fence)
            except Overtaken:
                # By a landing that was cut off, or a writer that was: either never got so far that it counts.
                self.check(fence)
                self._undo(name, self._latest(name), fence)
                self._put(name, batches, partitions, fence)

    def commit(self, fence: int) -> None:
        """Have everything count that was written.

        Raises:
            WriterFenced: A newer writer took over.
            WarehouseError: It cannot be written.
        """
        import pyarrow as pa  # noqa: PLC0415 - commands start fast

        versions, of_all = self.versions, {"fence": fence, "schema_version": SCHEMA_VERSION}
        rows = pa.Table.from_pylist([{"table_name": name, "version": n, **of_all} for name, n in versions.items()])
        with translated(self.root):
            try:
                self._put(STATE, rows.to_reader, None, fence)
            except Overtaken:
                self.check(fence)
                raise
        id_ = str(self._opened[STATE].metadata().id)
        self.landed = Landed(id_, self._reached[STATE], fence, SCHEMA_VERSION, versions)

    def check(self, fence: int) -> None:
        """See that nobody else has landed anything since.

        Raises:
            WriterFenced: Somebody has.
        """
        if self.landed.number < 0:
            return
        with translated(self.root):
            state = self._latest(STATE)
            if state.version() == self.landed.number:
                return
            other = _landed(state)
        raise WriterFenced(
            f"Another writer (token {other.fence}) took over {self.root}; this one (token {fence}) stops. "
            f"Nothing of its landing was kept."
        )

    def vacuum(self, names: Collection[str], hours: int) -> None:
        """Have the files go that no version has needed for so many hours, also those of commits that never came."""
        with translated(self.root):
            for name in names:
                sweep(self._table(name), hours)

    # -- one table ----------------------------------------------------------------------------------------------

    def _table(self, name: str) -> "DeltaTable":
        """A table as it was reached here."""
        if name not in self._opened:
            self._opened[name] = self._latest(name, self._reached[name])
        return self._opened[name]

    def _latest(self, name: str, version: int | None = None) -> "DeltaTable":
        """A table as it is by now, or at a version."""
        from deltalake import DeltaTable  # noqa: PLC0415 - an extra that few need

        return DeltaTable(self._paths[name], version=version)

    def _marks(self, fence: int) -> Mapping[str, int]:
        return {LANDING: self.landed.number + 1, FENCE: fence}

    def _put(
        self, name: str, batches: "Callable[[], pa.RecordBatchReader]", partitions: str | None, fence: int
    ) -> None:
        """Write one version after the one that was reached here."""
        made: dict[str, Any] = {"configuration": {**SETTINGS}}
        before = self._table(name) if name in self._reached else None
        if name in self.tables:
            made |= {"partition_by": [BUCKET, MONTH], "description": self.tables[name].description}
            before = before or opened(self._paths[name])  # of a making that was cut off
        # Should it fail, the table is looked at anew.
        self._opened.pop(name, None)
        table = overwrite(self._paths[name], before, batches(), self._marks(fence), made=made, partitions=partitions)
        self._reach(name, table)

    def _reach(self, name: str, table: "DeltaTable") -> None:
        self._opened[name], self._reached[name] = table, table.version()

    def _undo(self, name: str, latest: "DeltaTable", fence: int) -> None:
        if latest.version() > self._reached.get(name, latest.version()):
            latest.restore(self._reached[name], commit_properties=marked(self._marks(fence)))
            flush(self._paths[name], latest.version())
        self._reach(name, latest)


def _landed(state: "DeltaTable") -> Landed:
    rows = state.to_pyarrow_table().to_pylist()
    return Landed(
        id=str(state.metadata().id),
        number=state.version(),
        fence=rows[0]["fence"],
        schema=rows[0]["schema_version"],
        versions={row["table_name"]: row["version"] for row in rows},
    )
