"""What any reader can read: tables without types that old readers lack.

Without deletion vectors and wall clocks, for which a reader of version 1 has no type: those are texts such as
`2026-01-02T09:30:00`.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from octo_sync.destinations.reading import as_texts
from octo_sync.errors import ConfigError, OctoSyncError, WarehouseError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

_STEP = re.compile(r"\x1b\[\d*m|↳|Kernel error -> ")
KEPT_HOURS = 7 * 24
"""Files of former versions are kept so long, for readers that are still at them."""


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
