"""Tables in Delta Lake, for Spark, Trino, DuckDB, Fabric and others; the only import of delta-rs.

Any reader can read them: no deletion vectors, and a wall clock, for which old readers have no type, is a text such as
`2026-01-02T09:30:00`. Each export is a new version of every table. The table `octo_sync_export`, written last, says which
versions belong together: who reads those sees one state, and an export that was killed changes nothing of it.
"""

from typing import TYPE_CHECKING, Any

from octo_sync.errors import ConfigError
from octo_sync.flows.export.files import Exported, ExportError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

STATE = "octo_sync_export"
"""The table of the tables: which version of each is of the last whole export."""
KEPT_HOURS = 7 * 24
"""Files of former versions are kept so long, for readers that are still at them."""


def write(tables: "Iterable[tuple[str, pa.RecordBatchReader]]", target: str, at: "datetime") -> list[Exported]:
    """Write each table to `target/NAME`, a folder or an address such as `s3://bucket/octo`. Blocking.

    Access to an object store is what delta-rs finds in the environment, such as `AWS_ACCESS_KEY_ID`.

    Raises:
        ConfigError: delta-rs is not installed.
        ExportError: It cannot be written; what readers see is as it was.
        QueryError, WarehouseError: The rows cannot be read; likewise.
    """
    try:
        from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 - an extra that few need
        from deltalake.exceptions import DeltaError  # noqa: PLC0415 - the same
    except ImportError:
        raise ConfigError(
            'Delta tables need delta-rs; install it with pip install "octo-sync[delta]", or take parquet.'
        ) from None
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    root = target.rstrip("/")
    written: list[tuple[str, Any, Exported]] = []

    def put(name: str, batches: "pa.RecordBatchReader") -> Any:  # noqa: ANN401 - a DeltaTable, which ships no stub here
        write_deltalake(f"{root}/{name}", batches, mode="overwrite", schema_mode="overwrite")
        return DeltaTable(f"{root}/{name}")

    try:
        for name, batches in tables:
            table = put(name, _readable(batches))
            adds = pa.table(table.get_add_actions(flatten=True)).to_pydict()
            written.append((name, table, Exported(f"{root}/{name}", sum(adds["num_records"]), sum(adds["size_bytes"]))))
        state = {
            "table_name": [name for name, _, _ in written],
            "version": [table.version() for _, table, _ in written],
            "rows": [one.rows for _, _, one in written],
            "exported_at_utc": [at for _ in written],
        }
        last = put(STATE, pa.table(state).to_reader())
        for table in (*(table for _, table, _ in written), last):
            table.vacuum(retention_hours=KEPT_HOURS, dry_run=False, enforce_retention_duration=False)
    except (DeltaError, OSError) as error:
        why = str(error).partition("\n")[0]
        raise ExportError(f"{root} cannot be written as Delta tables: {why}") from None
    return [one for _, _, one in written]


def _readable(batches: "pa.RecordBatchReader") -> "pa.RecordBatchReader":
    """The same rows without types that old readers do not know."""
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    from octo_sync.flows.export.files import as_texts  # noqa: PLC0415 - the same

    schema = batches.schema
    foreign = {n for n, field in enumerate(schema) if _is_foreign(field.type)}
    if not foreign:
        return batches
    known = pa.schema([field.with_type(pa.string()) if n in foreign else field for n, field in enumerate(schema)])

    def told() -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            texts = as_texts(batch.select(sorted(foreign)))
            found = dict(zip(sorted(foreign), texts, strict=True))
            columns = [
                pa.array(found[n], pa.string()) if n in foreign else column for n, column in enumerate(batch.columns)
            ]
            yield pa.record_batch(columns, schema=known)

    return pa.RecordBatchReader.from_batches(known, told())


def _is_foreign(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    is_wall_clock = pa.types.is_timestamp(kind) and kind.tz is None
    return bool(is_wall_clock or pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind))
