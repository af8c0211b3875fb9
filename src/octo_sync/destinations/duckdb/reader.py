"""The published copy in DuckDB, for reading: one file, no other file, no network, no extension, bounded memory.

DuckDB's settings are locked when the file is open, so no statement can undo them. Statements are looked at before they run
(one, and a reading one); that the file is attached read-only and access outside is off is what protects it.
"""

import re
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from octo_sync.destinations import digests
from octo_sync.destinations.base import Rows, TableDigest
from octo_sync.destinations.duckdb.files import attach_published
from octo_sync.destinations.duckdb.publish import rows_of
from octo_sync.destinations.duckdb.transactions import stopping_after, translated
from octo_sync.destinations.reading import SCHEMAS, Parameters, Reader
from octo_sync.destinations.relations import sql
from octo_sync.errors import OctoSyncError, QueryError, WarehouseError
from octo_sync.tables.schema import Table

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

_READING = frozenset({"SELECT", "EXPLAIN", "MULTI"})
"""`SHOW`, `DESCRIBE`, `SUMMARIZE`, `VALUES` and `FROM …` are SELECT to DuckDB, and a PIVOT is MULTI."""
_MAGIC_AT, _MAGIC = 8, b"DUCK"
"""Each DuckDB file begins with a checksum of 8 bytes, then this (its documentation, Storage format)."""
_STREAMS = 4
"""Results that can be streamed at once. Their connections are made before the settings are locked."""

_MEMORY = "2GB"
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 2,
    # Beyond its memory a query ends with a sentence: it neither starves the machine nor writes to its disk.
    "temp_directory": "",
    # Otherwise a function that is not there is looked for on the network, and a name among the caller's variables.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}


def open_read_only(path: Path) -> duckdb.DuckDBPyConnection:
    """Open a published copy for reading, without access to anything outside it.

    Raises:
        WarehouseError: The file is not there or not a DuckDB file.
        WarehouseLocked: A writer holds it: it is the warehouse itself, not its read copy.
    """
    return _connect(path, 1, _MEMORY)[0]


def _connect(path: Path, count: int, memory: str) -> list[duckdb.DuckDBPyConnection]:
    """Connections that see the same file; they are made before the settings are locked, for good and for all of them."""
    _refuse_others(path)
    with translated(path):
        first = duckdb.connect(":memory:", config={**_SETTINGS, "memory_limit": memory})
        try:
            attach_published(first, path, "octo")
        except duckdb.Error as error:
            if "could not set lock" in str(error).lower():
                raise
            said = str(error).splitlines()[0][:160]
            raise WarehouseError(f"{path} is damaged or cut off ({said}); octo-sync publish makes it anew.") from None
        connections = [first, *(first.cursor() for _ in range(count - 1))]
        for each in connections:
            each.execute("use octo")
            each.execute("set timezone = 'UTC'")
            try:
                each.execute(f"set search_path = '{','.join(f'octo.{schema}' for schema in SCHEMAS)}'")
            except duckdb.CatalogException:
                raise WarehouseError(f"Nothing is published in {path}; open the read copy, octo.read.duckdb.") from None
        first.execute("set enable_external_access = false")
        first.execute("set lock_configuration = true")
    return connections


def _refuse_others(path: Path) -> None:
    """Refuse what is no DuckDB file, in a sentence that says what to open instead."""
    if not path.exists():
        raise WarehouseError(f"{path} does not exist yet; run `octo-sync sync` (or `octo-sync publish`) first.")
    if path.is_dir():
        inside = sorted(path.glob("*.read.duckdb"))
        better = f"open {inside[0]}" if inside else "open the read copy, octo.read.duckdb in a project's folder"
        raise WarehouseError(f"{path.absolute()} is a folder; {better}.")
    try:
        with path.open("rb") as file:
            begins = file.read(_MAGIC_AT + len(_MAGIC))
    except OSError as error:
        raise WarehouseError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not begins.endswith(_MAGIC):
        said = "is a pipeline file" if path.suffix == ".toml" else "is no DuckDB file"
        raise WarehouseError(f"{path} {said}; open the read copy that octo-sync sync makes, octo.read.duckdb.")


class DuckDBReader(Reader):
    """A `Reader` of one published file.

    Args:
        path: The read copy.
        tables: What `digest` knows; from `octo_sync.tables`.
        memory: The most that its queries may take, as DuckDB writes it.

    Raises:
        WarehouseError: The file is not there, or no DuckDB file.
        WarehouseLocked: It is the warehouse itself while it is being written.
    """

    def __init__(self, path: Path, *, tables: Collection[Table] = (), memory: str = _MEMORY) -> None:
        self.path, self.name, self._tables = path, path.name, tuple(tables)
        self._db, *self._spare = _connect(path, 1 + _STREAMS, memory)
        self._lock = threading.RLock()

    def query(
        self, sql: str, parameters: Parameters = (), *, limit: int | None = None, timeout: float | None = None
    ) -> Rows:
        """Rows of one reading statement; see `Reader`."""
        with self._lock:
            self._refuse_when_closed()
            with _running(self._db, self.path, sql, timeout):
                self._db.execute(_statement(self._db, sql), parameters or None)
                return rows_of(self._db, limit)

    def _stream(self, sql: str, parameters: Parameters, size: int, timeout: float | None) -> Iterator[Any]:
        """First the schema, then the batches; at the end, however it comes, the connection is free again."""
        with self._lock:
            self._refuse_when_closed()
            if not self._spare:
                raise QueryError(f"{_STREAMS} results of {self.name} are being streamed; read one to its end first.")
            db = self._spare.pop()
        try:
            with _running(db, self.path, sql, timeout):
                _statement(db, sql)
                # A relation is streamed; the result of `execute` would be whole in memory first (1.4 GB against 0.15).
                found = db.sql(sql, params=parameters or None).to_arrow_reader(size)
                schema, fitted = _with_integers(found.schema)
                yield schema
                while (batch := _next(found)) is not None:
                    yield fitted(batch)
        finally:
            with suppress(duckdb.Error):
                db.interrupt()
            self._spare.append(db)

    def _described(self) -> list[tuple[str, ...]]:
        return self.query(sql("duckdb_tables")).rows

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Row count and digest of each core table; see `Reader`."""
        with self._lock:
            self._refuse_when_closed()
            with _running(self._db, self.path, "", None):
                return digests.of_all(
                    lambda sql, _: self._db.execute(sql).fetchall(), self._tables, tables, digests.DUCKDB
                )

    def close(self) -> None:
        """Let go of the file. Twice is fine."""
        self._closed = True
        for db in (self._db, *self._spare):
            db.close()


def _statement(db: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The one reading statement that the text is."""
    statements = db.extract_statements(sql)
    if len(statements) != 1:
        found = "none" if not statements else f"{len(statements)}"
        raise QueryError(f"Expected one statement, found {found}; run them one by one.")
    kind = statements[0].type.name
    if kind not in _READING:
        raise QueryError(f"{kind} is not a reading statement; the copy can only be read.")
    return statements[0]


def _next(found: "pa.RecordBatchReader") -> Any:  # noqa: ANN401 - a RecordBatch, and pyarrow ships no types
    """The next batch, or None. What DuckDB says in the middle comes out of pyarrow as an error of its own."""
    try:
        return found.read_next_batch()
    except StopIteration:
        return None
    except (OSError, ValueError) as error:
        text = str(error)
        kinds = {"INTERRUPT Error": duckdb.InterruptException, "Out of Memory Error": duckdb.OutOfMemoryException}
        raise next((kind for said, kind in kinds.items() if said in text), duckdb.Error)(text) from None


def _with_integers(schema: "pa.Schema") -> "tuple[pa.Schema, Callable[[Any], Any]]":
    """DuckDB's sums of integers are 128 bits wide, which Arrow writes as decimals: make them the integers they are."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    wide = [i for i, field in enumerate(schema) if field.type == pa.decimal128(38, 0)]
    if not wide:
        return schema, lambda batch: batch
    for i in wide:
        schema = schema.set(i, schema.field(i).with_type(pa.int64()))

    def fitted(batch: Any) -> Any:  # noqa: ANN401 - a RecordBatch, and pyarrow ships no types
        try:
            return batch.cast(schema)
        except pa.ArrowInvalid:
            raise QueryError(
                "A whole number of the answer is wider than 64 bits; cast it to varchar or double in the query."
            ) from None

    return schema, fitted


@contextmanager
def _running(db: duckdb.DuckDBPyConnection, path: Path, sql: str, timeout: float | None) -> Iterator[None]:
    """The block runs a user's SQL: its errors become one line each, and after `timeout` seconds it is interrupted."""
    with stopping_after(db, timeout) as stopped:
        try:
            yield
        except (duckdb.Error, RuntimeError) as error:
            if stopped.is_late:
                raise WarehouseError(
                    f"The query was stopped after {timeout:g} s; allow more, or ask for less."
                ) from None
            if isinstance(error, duckdb.InterruptException) or not isinstance(error, duckdb.Error):
                if threading.current_thread() is threading.main_thread():
                    # DuckDB drops what the signal's handler raised: it is asked once more.
                    signal.raise_signal(stopped.signal())
                    raise KeyboardInterrupt from None
                if isinstance(error, duckdb.Error):
                    raise WarehouseError("The query was interrupted before its end; ask again.") from None
                raise
            raise _translated(error, path, sql) from None


def _translated(error: duckdb.Error, path: Path, sql: str) -> OctoSyncError:
    if isinstance(error, duckdb.IOException | duckdb.FatalException | duckdb.InternalException):
        return WarehouseError(f"{path} cannot be read: {_one_line(error, '')}")
    if isinstance(error, duckdb.PermissionException):
        return QueryError(f"Queries reach no file, network or extension. {_one_line(error, sql)}")
    if isinstance(error, duckdb.OutOfMemoryException):
        return WarehouseError(f"The query needs more memory than it may have: {_one_line(error, '')}")
    return QueryError(_one_line(error, sql))


def _one_line(error: Exception, sql: str) -> str:
    """`Binder Error: what`, a hint, and a drawing of the place → `what (line 1, column 8). hint`."""
    text, _, shown = str(error).partition("\n\nLINE ")
    first, *hints = [line.strip() for line in text.splitlines() if line.strip()] or [type(error).__name__]
    first = re.sub(r"^(?:[A-Z][A-Za-z]+ )+Error: ", "", first)
    where = _position(shown, sql)
    said = first.rstrip("!.") + (f" ({where})" if where else "") + "."
    return " ".join([said, *hints])[:1000]


def _position(shown: str, sql: str) -> str:
    """Line and column from DuckDB's drawing: `1: select a from t` and below it spaces and `^`."""
    number, _, rest = shown.partition(": ")
    lines = rest.splitlines()
    if not number.isdigit() or not lines:
        return ""
    caret = next((line.index("^") for line in lines[1:] if line.strip(" ^~") == "" and "^" in line), None)
    if caret is None:
        return f"line {number}"
    column = caret - len(f"LINE {number}: ")
    if lines[0].startswith("..."):
        # A long line is shown in part; the line itself tells where the part begins.
        part = lines[0].removeprefix("...").removesuffix("...")
        source = sql.splitlines()[int(number) - 1] if int(number) <= len(sql.splitlines()) else ""
        start = source.find(part)
        if start < 0:
            return f"line {number}"
        column += start - len("...")
    return f"line {number}, column {column + 1}"
