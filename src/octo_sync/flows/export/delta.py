"""Tables in Delta Lake, for Spark, Trino, DuckDB, Fabric and others.

Each export is a new version of every table. The table `octo_sync_export`, written last, says which versions belong together:
who reads those sees one state, and an export that was killed changes nothing of it.
"""

from typing import TYPE_CHECKING

from octo_sync.destinations.delta.tables import translated
from octo_sync.destinations.delta.together import Together
from octo_sync.flows.export.files import Exported, ExportError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

STATE = "octo_sync_export"
"""The table of the tables: which version of each is of the last whole export."""


def write(tables: "Mapping[str, Callable[[], pa.RecordBatchReader]]", target: str, at: "datetime") -> list[Exported]:
    """Write each table to `target/NAME`, a folder or an address such as `s3://bucket/octo`. Blocking.

    Access to an object store is what delta-rs finds in the environment, such as `AWS_ACCESS_KEY_ID`.

    Raises:
        ConfigError: delta-rs is not installed.
        ExportError: It cannot be written; what readers see is as it was.
        QueryError, WarehouseError: The rows cannot be read; likewise.
    """
    root = target.rstrip("/")
    with translated(root, ExportError):
        return [Exported(one.path, one.rows, one.size) for one in Together(root, STATE).write(tables, at)]
