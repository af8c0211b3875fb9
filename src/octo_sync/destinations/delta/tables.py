"""One Delta table: its versions, each written once, and in types that any reader can read.

Without deletion vectors and wall clocks, for which a reader of version 1 has no type: those are texts such as
`2026-01-02T09:30:00`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from octo_sync.destinations.reading import as_texts
from octo_sync.disk import fsync
from octo_sync.errors import ConfigError, OctoSyncError, WarehouseError, install

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
        raise ConfigError(f"Delta tables need the package deltalake: {install('delta')}.") from None
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
    made: Mapping[str, Any],
    partitions: str | None = None,
) -> "DeltaTable":
    """Write the version after that of `table`, None where there is none; of some partitions, a condition, or of all.

    `made` is what a new table is made with, as `write_deltalake` calls it.

    Raises:
        Overtaken: It was written by somebody else.
        DeltaError, OSError: It cannot be written.
    """
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 - an extra that few need
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - the same

    version, how = 0, {"mode": "error", **made}
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


def flush(table: str, version: int) -> None:
    """Have one version of a table on the disk for good, its rows before its entry in the log.

    delta-rs leaves that to an object store, for which nothing is to be done.
    """
    place = urlsplit(table)
    if "://" in table and place.scheme != "file":
        return
    folder = Path(unquote(place.path) if "://" in table else table)
    log = folder / "_delta_log" / f"{version:020}.json"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    files = [folder / unquote(entry["add"]["path"]) for entry in entries if "add" in entry]
    # A folder that is new is an entry of the one above.
    folders = {above for file in files for above in file.parents if above.is_relative_to(folder)}
    for path in (*files, *sorted(folders), log, log.parent, folder, folder.parent):
        fsync(path)


def sweep(table: "DeltaTable", hours: int = 0, *, keep: int | None = None) -> None:
    """Have the files go that no version has needed for so many hours, also those of commits that never came.

    Those of the version to `keep` stay: a newer one may be of a writer that was refused.
    """
    kept = None if keep is None else [keep]
    table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True, keep_versions=kept)


def readable(batches: "pa.RecordBatchReader") -> "pa.RecordBatchReader":
    """The same rows without types that old readers do not know."""
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    foreign = [n for n, field in enumerate(batches.schema) if _is_foreign(field.type)]
    if not foreign:
        return batches
    known = batches.schema
    for n in foreign:
        known = known.set(n, known.field(n).with_type(pa.string()))

    def told(batch: "pa.RecordBatch") -> "pa.RecordBatch":
        found = dict(zip(foreign, as_texts(batch.select(foreign)), strict=True))
        columns = [pa.array(found[n], pa.string()) if n in found else column for n, column in enumerate(batch.columns)]
        return pa.record_batch(columns, schema=known)

    return pa.RecordBatchReader.from_batches(known, map(told, batches))


def described(batches: "pa.RecordBatchReader", meant: Mapping[str, str]) -> "pa.RecordBatchReader":
    """The same rows, each column with what it means, which Delta keeps as its comment."""
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    told = [field.with_metadata({"comment": meant[field.name]}) for field in batches.schema]
    return pa.RecordBatchReader.from_batches(pa.schema(told), batches)


def _is_foreign(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    is_wall_clock = pa.types.is_timestamp(kind) and kind.tz is None
    return bool(is_wall_clock or pa.types.is_time(kind) or pa.types.is_duration(kind) or pa.types.is_interval(kind))
