"""The public Python API: a published copy, read-only, for notebooks and programs.

A handle sees the copy as it was when it was opened. A later publish puts a new file in its place and does not disturb
it; open again to see the new one.
"""

import re
import threading
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import duckdb

from octo_sync.destinations import digests
from octo_sync.destinations.base import Rows, TableDigest
from octo_sync.destinations.duckdb import open_read_only
from octo_sync.errors import OctoSyncError, QueryError, WarehouseError
from octo_sync.tables import all_tables

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped] # it ships no types
    import pyarrow as pa  # type: ignore[import-untyped] # the same

__all__ = ["ColumnInfo", "Copy", "Query", "TableInfo", "open"]

_READING = frozenset({"SELECT", "EXPLAIN", "MULTI"})
"""`SHOW`, `DESCRIBE`, `SUMMARIZE`, `VALUES` and `FROM …` are SELECT to DuckDB, and a PIVOT is MULTI."""
_SCHEMAS = ("marts", "core", "ops")

Parameters = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """One column: its SQL type and what it means."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One table or view of the copy, and what it means."""

    schema: str
    name: str
    kind: str
    description: str
    columns: tuple[ColumnInfo, ...]

    @property
    def full_name(self) -> str:
        """`schema.name`."""
        return f"{self.schema}.{self.name}"

    def __str__(self) -> str:
        return self.full_name


class Query:
    """One reading statement; it runs each time one of the methods is called."""

    def __init__(self, copy: "Copy", sql: str, parameters: Parameters, timeout: float | None) -> None:
        self._copy, self._sql, self._parameters, self._timeout = copy, sql, parameters, timeout

    def rows(self) -> list[tuple[Any, ...]]:
        """Every row as a tuple; instants are aware datetimes in UTC, amounts are Decimals."""
        return self.fetch().rows

    def fetch(self, limit: int | None = None) -> Rows:
        """Rows with their columns and types, at most `limit`; `truncated` says whether there were more."""
        with self._run() as (db, statement):
            db.execute(statement, self._parameters or None)
            columns = tuple(d[0] for d in db.description or ())
            types = tuple(str(d[1]) for d in db.description or ())
            rows = db.fetchall() if limit is None else db.fetchmany(limit + 1)
        cut = limit is not None and len(rows) > limit
        return Rows(columns, rows[:limit] if cut else rows, types, cut)

    def df(self) -> "pd.DataFrame":
        """A pandas DataFrame. Amounts become floats there; `arrow` keeps them exact."""
        with self._run() as (db, statement), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # between DuckDB and pandas, nobody else's business
            return db.execute(statement, self._parameters or None).df()

    def arrow(self) -> "pa.Table":
        """A pyarrow Table."""
        with self._run() as (db, _):
            return db.sql(self._sql, params=self._parameters or None).to_arrow_table()

    @contextmanager
    def _run(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.Statement]]:
        with self._copy.running(self._sql, self._timeout) as found:
            yield found

    def __repr__(self) -> str:
        return f"Query({self._sql!r})"


class Copy:
    """A published copy, opened for reading only; a context manager.

    SQL may name marts, then `core`, then `ops` tables without their schema. It cannot write, and reaches no file, network
    or extension. One handle may be shared by threads; they take turns.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = open_read_only(path)
        self._lock = threading.RLock()
        self._closed = False

    def tables(self) -> list[TableInfo]:
        """Every table and view that the copy has: marts first, then core, then ops."""
        found = self.sql(
            "select c.schema_name, c.table_name, case when v.view_name is null then 'table' else 'view' end, "
            "coalesce(t.comment, v.comment, ''), c.column_name, c.data_type, coalesce(c.comment, '') "
            "from duckdb_columns() c "
            "left join duckdb_tables() t on t.database_oid = c.database_oid and t.table_oid = c.table_oid "
            "left join duckdb_views() v on v.database_oid = c.database_oid and v.view_oid = c.table_oid "
            "where c.database_name = 'octo' and not c.internal "
            "order by list_position(['marts', 'core', 'ops'], c.schema_name) nulls last, 1, 2, c.column_index"
        ).rows()
        grouped: dict[tuple[str, str, str, str], list[ColumnInfo]] = {}
        for schema, name, kind, description, *column in found:
            grouped.setdefault((schema, name, kind, description), []).append(ColumnInfo(*column))
        return [TableInfo(*key, columns=tuple(columns)) for key, columns in grouped.items()]

    def table(self, name: str) -> Query:
        """All rows of a table or view, named `core.bookings` or `bookings`.

        Raises:
            QueryError: There is none of that name.
        """
        known = {t.full_name for t in self.tables()}
        for schema in ("", *(f"{s}." for s in _SCHEMAS)):
            if (full := schema + name.lower()) in known:
                quoted = ".".join('"' + part.replace('"', '""') + '"' for part in full.split(".", 1))
                return self.sql(f"select * from {quoted}")  # noqa: S608 - a name that is there, quoted
        raise QueryError(f"{self.path.name} has no table {name[:100]!r}; .tables() lists what it has.")

    def sql(self, query: str, parameters: Parameters = (), *, timeout: float | None = None) -> Query:
        """One reading statement, with `$1` or `$name` parameters; `timeout` in seconds.

        Raises:
            QueryError: When it runs: it is wrong, or it does more than read.
            WarehouseError: When it runs: the file cannot be read, or the time was up.
        """
        return Query(self, query, parameters, timeout)

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Row count and order-independent digest of each core table, as `destinations/digests.py` defines them."""
        chosen = [t for t in all_tables() if t.schema == "core" and t.noun and not t.private]
        with self._lock, _translated(self.path, ""):
            return [digests.of(self._db, t) for t in chosen if tables is None or t.full_name in tables]

    @contextmanager
    def running(self, sql: str, timeout: float | None) -> Iterator[tuple[duckdb.DuckDBPyConnection, duckdb.Statement]]:
        """For `Query`: the connection and the statement, found to be a reading one; the block runs it."""
        out_of_time = threading.Event()

        def stop() -> None:
            out_of_time.set()
            self._db.interrupt()

        with self._lock:
            if self._closed:
                raise WarehouseError(f"{self.path.name} was closed; open it again.")
            timer = threading.Timer(timeout, stop) if timeout else None
            if timer is not None:
                timer.daemon = True
                timer.start()
            try:
                with _translated(self.path, sql, timeout if timer else None, out_of_time):
                    yield self._db, self._reading(sql)
            finally:
                if timer is not None:
                    timer.cancel()

    def _reading(self, sql: str) -> duckdb.Statement:
        statements = self._db.extract_statements(sql)
        if len(statements) != 1:
            found = "none" if not statements else f"{len(statements)}"
            raise QueryError(f"Expected one statement, found {found}; run them one by one.")
        kind = statements[0].type.name
        if kind not in _READING:
            raise QueryError(f"{kind} is not a reading statement; the copy can only be read.")
        return statements[0]

    def close(self) -> None:
        """Let go of the file. Twice is fine."""
        self._closed = True
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Copy({str(self.path)!r})"


def open(path: str | Path) -> Copy:  # noqa: A001 - `octo_sync.open(…)` reads like the builtin it is named after
    """Open a published copy, e.g. `octo.read.duckdb`.

    Raises:
        WarehouseError: It is not there, no DuckDB file, or the warehouse itself while it is being written.
    """
    return Copy(Path(path))


@contextmanager
def _translated(
    path: Path, sql: str, timeout: float | None = None, out_of_time: threading.Event | None = None
) -> Iterator[None]:
    """DuckDB's errors about a user's SQL become one line each."""
    problem: OctoSyncError
    try:
        yield
    except (duckdb.IOException, duckdb.FatalException, duckdb.InternalException) as error:
        problem = WarehouseError(f"{path} cannot be read: {_one_line(error, '')}")
    except duckdb.PermissionException as error:
        problem = QueryError(f"Queries reach no file, network or extension. {_one_line(error, sql)}")
    except (duckdb.Error, RuntimeError) as error:
        if out_of_time is not None and out_of_time.is_set():
            problem = WarehouseError(f"The query was stopped after {timeout:g} s; allow more, or ask for less.")
        elif isinstance(error, duckdb.InterruptException | RuntimeError):
            raise KeyboardInterrupt from None
        elif isinstance(error, duckdb.OutOfMemoryException):
            problem = WarehouseError(f"The query needs more memory than there is: {_one_line(error, '')}")
        else:
            problem = QueryError(_one_line(error, sql))
    else:
        return
    raise problem from None


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
