"""Tables that are read together: at the versions that one more table names, which is written last, in one commit.

Each writing is a new version of every table whose rows are others. Who is killed in between leaves versions that nobody is
told of, and so does a writer that stood still while a newer one took over: the table of versions is written from the snapshot
that was looked at before any row was read, and delta-rs lets no commit pass that has the same application as one since.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from octo_sync.destinations.delta.lake import FENCE, SETTINGS
from octo_sync.destinations.delta.tables import KEPT_HOURS, described, flush, opened, overwrite, readable, sweep
from octo_sync.destinations.reading import Reader, TableInfo
from octo_sync.errors import WriterFenced

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
    from deltalake import DeltaTable

PUBLISHED = "octo_sync_published"
"""The table of the tables: which versions of marts, core and ops readers see as one state."""
_NONE: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written: where, and its version, rows and bytes as they are now."""

    path: str
    version: int
    rows: int
    size: int


class Together:
    """The tables below a root, as they are now. Blocking; everything is to be called where errors are `translated`.

    Args:
        root: A folder or an address that delta-rs can write, such as `s3://bucket/octo`.
        state: What the table of versions is called.
        fence: The writer's token (R9); None where anybody may write.
        settings: Of tables that are new.

    Raises:
        WriterFenced: A newer writer was here.
    """

    def __init__(
        self, root: str, state: str, *, fence: int | None = None, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._root, self._name, self._fence, self._settings = root.rstrip("/"), state, fence, settings
        self._state = self._opened(state)
        rows = self._state.to_pyarrow_table().to_pylist() if self._state else []
        self._there: Mapping[str, Mapping[str, Any]] = {row["table_name"]: row for row in rows}
        newest = (self._state and self._state.transaction_version(FENCE)) or 0
        if fence is not None and newest > fence:
            raise WriterFenced(
                f"Another writer (token {newest}) writes to {root}; this one (token {fence}) stops. A project that was begun "
                f"anew needs a place of its own."
            )

    def write(
        self,
        tables: "Mapping[str, Callable[[], pa.RecordBatchReader]]",
        at: datetime,
        *,
        marks: Mapping[str, int] = _NONE,
        meant: Mapping[str, str] = MappingProxyType({}),
        beside: Mapping[str, int] = _NONE,
    ) -> list[Written]:
        """Write each table whole to `root/NAME`, and last which versions belong together; what was written.

        One stays as it is where its mark, a number that other rows would not have, is that of its last writing. `meant` says
        what a table is, where it is new. `beside` are versions of other tables that belong to them. With the first writing of
        a day former files go, after `KEPT_HOURS`.
        """
        import pyarrow as pa  # noqa: PLC0415 - commands start fast

        number, before = int(at.timestamp() * 1_000_000), self._there
        kept = {name for name in tables.keys() & marks.keys() if before.get(name, {}).get("mark") == marks[name]}
        done = {
            name: _written(f"{self._root}/{name}", self._put(name, batches(), marks.get(name, number), meant.get(name)))
            for name, batches in tables.items()
            if name not in kept
        }
        told = {name: {"version": one.version, "rows": one.rows, "mark": marks.get(name)} for name, one in done.items()}
        told |= {name: {key: before[name][key] for key in ("version", "rows", "mark")} for name in sorted(kept)}
        told |= {name: {"version": version} for name, version in beside.items()}
        types = [("table_name", pa.string()), ("version", pa.int64()), ("rows", pa.int64())]
        types += [("exported_at_utc", pa.timestamp("us", "UTC")), ("mark", pa.int64())]
        self._there = {name: {"table_name": name, "exported_at_utc": at, **row} for name, row in told.items()}
        rows = pa.Table.from_pylist(list(self._there.values()), pa.schema(types))
        self._state = self._put(self._name, rows.to_reader(), number)
        self._empty([name for name in before.keys() - told.keys() if before[name].get("mark") is not None])
        if before and {row["exported_at_utc"].date() for row in before.values()} != {at.date()}:
            self.vacuum(hours=KEPT_HOURS)
        return list(done.values())

    def _empty(self, names: Collection[str]) -> None:
        """Have no rows left in tables that are published no more: an erasure looks only at those that are."""
        for name in names:
            if (table := self._opened(name)) is not None:
                table.delete()
                flush(f"{self._root}/{name}", table.version())
                sweep(table)

    def vacuum(self, folder: str = "", *, hours: int = 0) -> None:
        """Have files go that no version has needed for so many hours, of the tables in a folder; also those of no version."""
        versions = {name: row["version"] for name, row in self._there.items() if name.startswith(folder)}
        for name, version in (versions | {self._name: self._state.version() if self._state else 0}).items():
            if (table := self._opened(name)) is not None:
                sweep(table, hours, keep=version)

    def _opened(self, name: str) -> "DeltaTable | None":
        return opened(f"{self._root}/{name}")

    def _put(self, name: str, batches: "pa.RecordBatchReader", mark: int, meant: str | None = None) -> "DeltaTable":
        """Write the version after the one that is there; nobody else's comes in between."""
        table = self._state if name == self._name else self._opened(name)
        marks = {self._name: mark} | ({} if self._fence is None else {FENCE: self._fence})
        made = {"configuration": {**self._settings}, "description": meant}
        return overwrite(f"{self._root}/{name}", table, readable(batches), marks, made=made)


def publish(
    reader: Reader, into: Together, at: datetime, schemas: Collection[str], beside: Mapping[str, int] = _NONE
) -> None:
    """Write a copy's tables of these schemas as `SCHEMA/NAME`; they and those `beside` are one state."""
    tables = {f"{table.schema}/{table.name}": table for table in reader.tables() if table.schema in schemas}
    into.write(
        {name: partial(_batches, reader, table) for name, table in tables.items()},
        at,
        meant={name: table.description for name, table in tables.items()},
        marks={name: _mark(reader, table) for name, table in tables.items()},
        beside=beside,
    )


def _batches(reader: Reader, table: TableInfo) -> "pa.RecordBatchReader":
    meant = {column.name: column.description for column in table.columns}
    return described(readable(reader.batches(f"select * from {table.quoted}")), meant)


def published(root: str, fence: int | None = None) -> Together:
    """The tables that readers of a lake see as one state."""
    return Together(root, PUBLISHED, fence=fence, settings=SETTINGS)


def _mark(reader: Reader, table: TableInfo) -> int:
    """A number that a table of other rows or columns would not have."""
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    # Hashed twice, because DuckDB's hash of several values lets the last one through.
    ((rows, number),) = reader.query(f"select count(*), sum(hash(hash({names}))) from {table.quoted}").rows
    told = repr((rows, number, [(column.name, column.type, column.description) for column in table.columns]))
    return int.from_bytes(hashlib.blake2b(told.encode(), digest_size=7).digest())


def _written(path: str, table: "DeltaTable") -> Written:
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    adds = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    return Written(path, table.version(), sum(adds["num_records"]), sum(adds["size_bytes"]))
