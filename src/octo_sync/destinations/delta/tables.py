"""One Delta table: its versions, each written once, and in types that any reader can read.

Without deletion vectors and wall clocks, for which a reader of version 1 has no type: those are texts such as
`2026-01-02T09:30:00`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from octo_sync.destinations.delta.flushing import flush
from octo_sync.destinations.reading import as_texts
from octo_sync.errors import ConfigError, OctoSyncError, WarehouseError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
    from deltalake import CommitProperties, DeltaTable

_STEP = re.compile(r"\x1b\[\d*m|↳|Kernel error -> ")
KEPT_HOURS = 7 * 24
"""Files of former versions are kept so long, for readers that are still at them."""


class Overtaken(OSError):  # noqa: N818 - it reads as what happened
    """Somebody else has written the version that was to be written."""


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


def opened(path: str) -> "DeltaTable | None":
    """A table as it is by now; None where there is none."""
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra that few need
    from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415 - the same

    try:
        # `is_deltatable` would hold all other threads up until the store answers.
        return DeltaTable(path)
    except TableNotFoundError:
        return None


def marked(marks: Mapping[str, int]) -> "CommitProperties":
    """A commit with numbers of ours: none passes that has one of the same names since the table was looked at."""
    from deltalake import CommitProperties, Transaction  # noqa: PLC0415 - an extra that few need

    return CommitProperties(app_transactions=[Transaction(name, number) for name, number in marks.items()])


def overwrite(
    path: str,
    table: "DeltaTable | None",
    batches: "pa.RecordBatchReader",
    marks: Mapping[str, int],
    *,
    settings: Mapping[str, str],
    partitions: str | None = None,
) -> "DeltaTable":
    """Write the version after that of `table`, None where there is none; of some partitions, a condition, or of all.

    Raises:
        Overtaken: It was written by somebody else.
        DeltaError, OSError: It cannot be written.
    """
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 - an extra that few need
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - the same

    how: dict[str, Any] = {"mode": "error", "configuration": dict(settings)}
    version = 0
    if table is not None:
        schema = None if partitions else "overwrite"
        version, how = table.version() + 1, {"mode": "overwrite", "predicate": partitions, "schema_mode": schema}
    try:
        write_deltalake(table or path, batches, commit_properties=marked(marks), **how)
    except (DeltaError, OSError) as error:
        # Before all else: it may have been written, and only the answer was lost.
        latest = None
        with suppress(DeltaError, OSError):
            latest = opened(path)
        if latest is None or latest.version() < version:
            raise
        if latest.version() > version or any(latest.transaction_version(n) != number for n, number in marks.items()):
            raise Overtaken(str(error)) from error
        table = latest
    # As this one wrote it: somebody else may have written since.
    if table is None or table.version() != version:
        table = DeltaTable(path, version=version)
    flush(path, version)
    return table


def sweep(table: "DeltaTable", hours: int = 0, *, keep: int | None = None) -> None:
    """Have the files go that no version has needed for so many hours, also those of commits that never came.

    Those of the version to `keep` stay: a newer one may be of a writer that was refused.
    """
    kept = None if keep is None else [keep]
    table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True, keep_versions=kept)


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
