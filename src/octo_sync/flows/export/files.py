"""Export: rows into a file. Written beside it and renamed when whole, so there is never half a file.

Rows come as Arrow batches and are gone when the next one comes, so memory does not grow with their number. What a file of
each format says of a value:

| | csv | json, jsonl | parquet | xlsx |
|---|---|---|---|---|
| amount | `12.5000` | `"12.5000"` | decimal | number, shown with its currency's decimals |
| instant | `2026-01-02T03:04:05Z` | the same | timestamp in UTC | date and time in UTC |
| missing | nothing | `null` | null | empty cell |
| list, record | JSON | JSON | list, struct | JSON |
"""

import csv
import io
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from octo_sync.destinations.delta.tables import translated
from octo_sync.destinations.delta.together import Together
from octo_sync.destinations.reading import as_texts
from octo_sync.errors import ConfigError, OctoSyncError
from octo_sync.flows.wording import unique

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

FORMATS = ("csv", "parquet", "xlsx", "json", "jsonl")
DELTA_STATE = "octo_sync_export"
"""The table of Delta tables: which version of each is of the last whole export."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class ExportError(OctoSyncError):
    """The rows do not fit into a file of this format, or it cannot be written."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: a file, its rows, its size in bytes."""

    path: Path | str
    rows: int
    size: int


Writer = Callable[["pa.RecordBatch"], None]
"""Writes the rows of one batch; all are of one schema."""


def export(
    batches: "pa.RecordBatchReader",
    target: Path,
    form: str,
    *,
    raw: bool = False,
    force: bool = False,
    title: str = "",
    decimals: Mapping[str, int] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write all rows to `target` as one of `FORMATS`; with `raw` CSV texts as they are. Blocking.

    `title` names the sheet of a workbook, `decimals` (currency → digits) says how its amounts are shown, and `progress`
    is told the number of rows written so far.

    Raises:
        ConfigError: The target is there and `force` is not said, or it cannot be written.
        ExportError: The rows do not fit into the format.
        QueryError, WarehouseError: The rows cannot be read. The target is as it was in every case.
    """
    if form == "xlsx":
        from octo_sync.flows.export.workbook import export_together  # noqa: PLC0415 - an extra that few need

        return export_together([(title, batches)], target, force=force, decimals=decimals, progress=progress)[0]
    rows = 0
    with writing(target, force=force) as fresh:
        with fresh.open("wb") as file, _streamed(file, form, batches.schema, raw=raw) as write:
            for batch in batches:
                write(batch)
                rows += batch.num_rows
                progress(rows)
        size = fresh.stat().st_size
    return Exported(target, rows, size)


def export_delta(
    tables: "Mapping[str, Callable[[], pa.RecordBatchReader]]", target: str, at: datetime
) -> list[Exported]:
    """Write each table in Delta Lake to `target/NAME`, a folder or an address such as `s3://bucket/octo`. Blocking.

    Each export is a new version of every table. The table `DELTA_STATE`, written last, says which versions belong together:
    who reads those sees one state, and an export that was killed changes nothing of it. Access to an object store is what
    delta-rs finds in the environment, such as `AWS_ACCESS_KEY_ID`.

    Raises:
        ConfigError: delta-rs is not installed.
        ExportError: It cannot be written; what readers see is as it was.
        QueryError, WarehouseError: The rows cannot be read; likewise.
    """
    root = target.rstrip("/")
    with translated(root, ExportError):
        return [Exported(one.path, one.rows, one.size) for one in Together(root, DELTA_STATE).write(tables, at)]


def _make(fresh: Path, target: Path) -> None:
    """An empty file that nobody else made; one that is left of a killed process goes first."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise ConfigError(f"{target.parent} is a file and no folder; name another place than {target}.") from None
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror or error}; name another place.") from None


@contextmanager
def writing(target: Path, *, force: bool) -> Iterator[Path]:
    """A file beside the target, readable by its owner only, that takes its place when the block ends well.

    Folders on the way to the target are made.

    Raises:
        ConfigError: The target is there and `force` is not said, or no file can be made there.
        ExportError: The disk is full, or fails.
    """
    free(target, force=force)
    # Its name is known before it is there: a signal may come at any moment after that.
    fresh = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        _make(fresh, target)
        yield fresh
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        free(target, force=force)
        fresh.replace(target)
    except OSError as error:
        why = error.strerror or error
        raise ExportError(f"{target} cannot be written: {why}. What was there before is as it was.") from None
    finally:
        with suppress(OSError):
            fresh.unlink()


def write_texts(texts: Mapping[Path, str], *, force: bool, mode: int = 0o600) -> None:
    """Write several files, all or none of them; raises as `writing` does."""
    with ExitStack() as all_of_them:
        for path, text in texts.items():
            fresh = all_of_them.enter_context(writing(path, force=force))
            fresh.write_text(text, encoding="utf-8")
            fresh.chmod(mode)


def free(target: Path, *, force: bool) -> None:
    """Whether a file may be put there; raises ConfigError where not."""
    if target.is_dir():
        raise ConfigError(f"{target} is a folder; name a file in it.")
    if target.exists() and not target.is_file():
        # A file would take its place for everybody, /dev/stdout for example.
        raise ConfigError(f"{target} is a device or a pipe, which no file may take the place of; name a file.")
    if target.exists() and not force:
        raise ConfigError(f"{target} is there already; --force overwrites it.")


class _Sink(io.BytesIO):
    """A file that only grows, and is taken away while it does."""

    _taken = 0

    def tell(self) -> int:
        """Where a Parquet file's parts begin is written at its end."""
        return self._taken + super().tell()

    def take(self) -> bytes:
        """What came since it was last asked."""
        piece = self.getvalue()
        self._taken += len(piece)
        self.seek(0)
        self.truncate()
        return piece


def pieces(batches: "pa.RecordBatchReader", form: str) -> Iterator[bytes]:
    """The bytes of the same file as they are made, for whoever sends it on; one of `FORMATS` but xlsx.

    Raises:
        QueryError, WarehouseError: While it is taken: the rows cannot be read to their end.
    """
    sink = _Sink()
    with _streamed(sink, form, batches.schema, raw=False) as write:
        for batch in batches:
            write(batch)
            yield sink.take()
    yield sink.take()


def _streamed(file: IO[bytes], form: str, schema: "pa.Schema", *, raw: bool) -> AbstractContextManager[Writer]:
    if form == "csv":
        return _csv(file, schema, raw=raw)
    if form == "parquet":
        return _parquet(file, schema)
    return _json(file, schema, lines=form == "jsonl")


@contextmanager
def _csv(file: IO[bytes], schema: "pa.Schema", *, raw: bool) -> Iterator[Writer]:
    neutral = [not raw and _is_text(field.type) for field in schema]
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    # RFC 4180; with a bare line feed Python 3.11 would leave a text's carriage return unquoted, a line of its own.
    rows = csv.writer(text, lineterminator="\r\n")
    rows.writerow(schema.names if raw else map(formula_safe, schema.names))

    def write(batch: "pa.RecordBatch") -> None:
        columns = zip(as_texts(batch), neutral, strict=True)
        rows.writerows(zip(*(map(formula_safe, c) if safe else c for c, safe in columns), strict=True))

    yield write
    text.detach()  # all of it is written, and the file is left open to whoever opened it


@contextmanager
def _json(file: IO[bytes], schema: "pa.Schema", *, lines: bool) -> Iterator[Writer]:
    names = unique(schema.names)
    encode = msgspec.json.Encoder().encode
    between = b"\n" if lines else b",\n"
    begun = False
    file.write(b"" if lines else b"[\n")

    def write(batch: "pa.RecordBatch") -> None:
        nonlocal begun
        found = [encode(dict(zip(names, row, strict=True))) for row in zip(*as_texts(batch, nested=False), strict=True)]
        if found:
            file.write((between if begun else b"") + between.join(found))
            begun = True

    yield write
    file.write((b"\n" if begun else b"") + (b"" if lines else b"]\n"))


@contextmanager
def _parquet(file: IO[bytes], schema: "pa.Schema") -> Iterator[Writer]:
    from pyarrow import parquet  # noqa: PLC0415 - half a second that other formats do without

    # Names may occur twice in a query but not in a file that others are to read.
    renamed = unique(schema.names)
    for i, name in enumerate(renamed):
        schema = schema.set(i, schema.field(i).with_name(name))
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        yield lambda batch: writer.write_batch(batch.rename_columns(renamed))


def formula_safe(text: str | None) -> str | None:
    """A text that a spreadsheet would run as a formula gets an apostrophe before it, which spreadsheets take for "text"."""
    return "'" + text if text and text.startswith(_FORMULA) else text


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - commands start fast

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))
