"""What any reader can read: tables without types that old readers lack, and one table that says which versions belong together.

Without deletion vectors and wall clocks, for which a reader of version 1 has no type: those are texts such as
`2026-01-02T09:30:00`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from octo_sync.destinations.delta.flushing import flush
from octo_sync.destinations.reading import as_texts
from octo_sync.errors import ConfigError, OctoSyncError, WarehouseError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
    from deltalake import DeltaTable

_STEP = re.compile(r"\x1b\[\d*m|↳")
KEPT_HOURS = 7 * 24
"""Files of former versions are kept so long, for readers that are still at them."""


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written: where, and its version, rows and bytes as they are now."""

    path: str
    version: int
    rows: int
    size: int


@contextmanager
def translated(root: str, error: type[OctoSyncError] = WarehouseError) -> Iterator[None]:
    """Delta's errors become ours, of this kind, once, here.

    Raises:
        ConfigError: delta-rs is not installed.
    """
    try:
        from deltalake.exceptions import DeltaError  # noqa: PLC0415 - an extra that few need
    except ImportError:
        raise ConfigError('Delta tables need delta-rs; install it with pip install "octo-sync[delta]".') from None
    try:
        yield
    except (DeltaError, OSError) as raised:
        # What went wrong as a whole, and below it, step by step, why.
        told = _STEP.sub("", str(raised)).strip() or type(raised).__name__
        steps = [step.strip() for step in told.splitlines()]
        why = ": ".join(dict.fromkeys((steps[0], steps[-1])))
        raise error(f"{root} cannot be written as Delta tables: {why}") from None


def write_together(
    tables: "Iterable[tuple[str, pa.RecordBatchReader]]",
    root: str,
    state: str,
    at: datetime,
    *,
    marks: Mapping[str, int] = MappingProxyType({}),
    beside: Mapping[str, int] = MappingProxyType({}),
    settings: Mapping[str, str] = MappingProxyType({}),
) -> list[Written]:
    """Write each table whole to `root/NAME` as a new version, and last the table `state`: which versions belong together.

    `marks` are numbers by which `there_already` knows the tables again, `beside` versions of other tables that belong to them,
    by what the state calls them; `settings` are for new tables. Former files go after `KEPT_HOURS`. Call it where errors are
    `translated`.
    """
    import pyarrow as pa  # noqa: PLC0415 - commands start fast
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake  # noqa: PLC0415 - an extra that few need
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - the same

    def put(name: str, batches: "pa.RecordBatchReader") -> "DeltaTable":
        mark = marks.get(name, int(at.timestamp() * 1_000_000))
        try:
            write_deltalake(
                f"{root}/{name}",
                batches,
                mode="overwrite",
                schema_mode="overwrite",
                configuration={**settings},
                commit_properties=CommitProperties(app_transactions=[Transaction(state, mark)]),
            )
        except (DeltaError, OSError):
            # It may have been written, and only the answer was lost.
            is_there = False
            with suppress(DeltaError, OSError):
                is_there = bool(there_already(root, state, {name: mark}))
            if not is_there:
                raise
        table = DeltaTable(f"{root}/{name}")
        flush(f"{root}/{name}", table.version())
        return table

    written = {name: put(name, readable(batches)) for name, batches in tables}
    done = {name: _written(f"{root}/{name}", table) for name, table in written.items()}
    rows: list[tuple[str, int, int | None]] = [(name, one.version, one.rows) for name, one in done.items()]
    rows += [(name, version, None) for name, version in beside.items()]
    names, versions, counts = zip(*rows, strict=True) if rows else ((), (), ())
    belongs = {
        "table_name": pa.array(names, pa.string()),
        "version": pa.array(versions, pa.int64()),
        "rows": pa.array(counts, pa.int64()),
        "exported_at_utc": pa.array([at for _ in rows], pa.timestamp("us", "UTC")),
    }
    for table in (*written.values(), put(state, pa.table(belongs).to_reader())):
        table.vacuum(retention_hours=KEPT_HOURS, dry_run=False, enforce_retention_duration=False)
    return list(done.values())


def there_already(root: str, state: str, marks: Mapping[str, int]) -> dict[str, int]:
    """Of these tables those that were written last with their number, and their versions."""
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra that few need

    there = {name: DeltaTable(f"{root}/{name}") for name in marks if DeltaTable.is_deltatable(f"{root}/{name}")}
    return {name: table.version() for name, table in there.items() if table.transaction_version(state) == marks[name]}


def vacuum_together(root: str, state: str, folder: str) -> None:
    """Have all former files go of the tables in a folder that the table `state` names, also those of no version."""
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra that few need

    if DeltaTable.is_deltatable(f"{root}/{state}"):
        for name in DeltaTable(f"{root}/{state}").to_pyarrow_table()["table_name"].to_pylist():
            if name.startswith(folder):
                DeltaTable(f"{root}/{name}").vacuum(
                    retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True
                )


def _written(path: str, table: "DeltaTable") -> Written:
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    adds = pa.table(table.get_add_actions(flatten=True)).to_pydict()
    return Written(path, table.version(), sum(adds["num_records"]), sum(adds["size_bytes"]))


def readable(batches: "pa.RecordBatchReader") -> "pa.RecordBatchReader":
    """The same rows without types that old readers do not know."""
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    schema, told = readable_schema(batches.schema)
    return pa.RecordBatchReader.from_batches(schema, map(told, batches))


def readable_schema(schema: "pa.Schema") -> "tuple[pa.Schema, Callable[[pa.RecordBatch], pa.RecordBatch]]":
    """The schema of such rows, and what makes a batch of them."""
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    foreign = sorted(n for n, field in enumerate(schema) if _is_foreign(field.type))
    if not foreign:
        return schema, lambda batch: batch
    known = pa.schema([field.with_type(pa.string()) if n in foreign else field for n, field in enumerate(schema)])

    def told(batch: "pa.RecordBatch") -> "pa.RecordBatch":
        found = dict(zip(foreign, as_texts(batch.select(foreign)), strict=True))
        columns = [pa.array(found[n], pa.string()) if n in found else column for n, column in enumerate(batch.columns)]
        return pa.record_batch(columns, schema=known)

    return known, told


def _is_foreign(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    is_wall_clock = pa.types.is_timestamp(kind) and kind.tz is None
    return bool(is_wall_clock or pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind))
