"""The public Python API: what was published, read-only, for notebooks and programs.

A handle on a file sees the copy as it was when it was opened. A later publish puts a new file in its place and does not
disturb it; open again to see the new one.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from octo_sync.destinations.base import Rows, TableDigest
from octo_sync.destinations.duckdb.reader import DuckDBReader
from octo_sync.destinations.reading import BATCH_ROWS, SCHEMAS, ColumnInfo, Parameters, Reader, TableInfo
from octo_sync.errors import QueryError, WarehouseError
from octo_sync.tables import all_tables

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped] # it ships no types
    import pyarrow as pa  # type: ignore[import-untyped] # the same

__all__ = ["ColumnInfo", "Copy", "Query", "TableInfo", "open", "reader"]

_PLACES = 4
"""Decimals of the amounts in the tables."""


class Query:
    """One reading statement; it runs each time one of the methods is called."""

    def __init__(self, reader: Reader, sql: str, parameters: Parameters, timeout: float | None) -> None:
        self._reader, self._sql, self._parameters, self._timeout = reader, sql, parameters, timeout

    def rows(self) -> list[tuple[Any, ...]]:
        """Every row as a tuple; instants are aware datetimes in UTC, amounts are Decimals."""
        return self.fetch().rows

    def fetch(self, limit: int | None = None) -> Rows:
        """Rows with their columns and types, at most `limit`; `truncated` says whether there were more.

        Raises:
            ValueError: `limit` is below 0.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"limit is {limit}; expected the number of rows at most, 0 or more, or None for all.")
        return self._reader.query(self._sql, self._parameters, limit=limit, timeout=self._timeout)

    def batches(self, size: int = BATCH_ROWS) -> "pa.RecordBatchReader":
        """The rows in pieces of about `size`, for what does not fit into memory: `for batch in query.batches(): …`.

        Raises:
            ValueError: `size` is below 1.
        """
        if size < 1:
            raise ValueError(f"size is {size}; expected the number of rows in a piece, 1 or more.")
        return self._reader.batches(self._sql, self._parameters, size=size, timeout=self._timeout)

    def arrow(self) -> "pa.Table":
        """A pyarrow Table: instants are `timestamp[us, UTC]`, amounts exact decimals."""
        return self.batches().read_all()

    def df(self, *, exact: bool = False) -> "pd.DataFrame":
        """A pandas DataFrame.

        Instants are `datetime64[us, UTC]`, dates `datetime64`, whole numbers `Int64` and yes/no `boolean`, both of which
        can be missing. Amounts are floats, which every function of pandas takes and which show the cents of sums up to
        some hundred billions rightly; with `exact` they are Arrow decimals with four places, or as many more as they
        have. The same table has the same types on DuckDB and PostgreSQL.
        """
        return _frame(self.arrow(), exact=exact)

    def __repr__(self) -> str:
        return f"Query({self._sql!r})"


class Copy:
    """What was published, opened for reading only; a context manager.

    SQL may name marts, then `core`, then `ops` tables without their schema. It cannot write, and reaches no file, network
    or extension. One handle may be shared by threads; they take turns.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def name(self) -> str:
        """What it is called: a file's name, or a database's."""
        return self._reader.name

    def tables(self) -> list[TableInfo]:
        """Every table and view: marts first, then core, then ops."""
        return self._reader.tables()

    def table(self, name: str, *, timeout: float | None = None) -> Query:
        """All rows of a table or view, named `core.bookings` or `bookings`; `timeout` in seconds.

        Raises:
            QueryError: There is none of that name.
        """
        known = {t.full_name: t for t in self.tables()}
        for schema in ("", *(f"{s}." for s in SCHEMAS)):
            if (full := schema + name.lower()) in known:
                return self.sql(f"select * from {known[full].quoted}", timeout=timeout)  # noqa: S608 - a name that is there, quoted
        raise QueryError(f"{self.name} has no table {name[:100]!r}; .tables() lists what it has.")

    def sql(self, query: str, parameters: Parameters = (), *, timeout: float | None = None) -> Query:
        """One reading statement, with `$1` or `$name` parameters; `timeout` in seconds.

        Raises:
            QueryError: When it runs: it is wrong, or it does more than read.
            WarehouseError: When it runs: the file cannot be read, or the time was up.
        """
        return Query(self._reader, query, parameters, timeout)

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Row count and order-independent digest of each core table, as `destinations/digests.py` defines them."""
        return self._reader.digest(tables)

    def close(self) -> None:
        """Let go of it. Twice is fine."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Copy({self.name!r})"


def open(where: str | Path) -> Copy:  # noqa: A001 - `octo_sync.open(…)` reads like the builtin it is named after
    """Open a published copy, e.g. `octo.read.duckdb`, or a PostgreSQL warehouse by its `postgresql://` address.

    Raises:
        WarehouseError: It is not there, cannot be reached, no DuckDB file, or the warehouse itself while it is being written.
    """
    return Copy(reader(where))


def reader(where: str | Path, *, is_whole: bool = False) -> Reader:
    """What `open` wraps: a reader of a published copy; raises the same.

    With `is_whole` all its queries are of one publish on PostgreSQL, too, where others are of the last one when they are asked.
    """
    if str(where).startswith(("postgresql://", "postgres://")):
        from octo_sync.destinations.postgres.reader import PostgresReader  # noqa: PLC0415 - its driver is an extra

        return PostgresReader(str(where), tables=all_tables(), is_whole=is_whole)
    if "://" in str(where):
        # Not quoted: an address may hold a password.
        raise WarehouseError("An address was given that is no postgresql:// one; expected that, or octo.read.duckdb.")
    return DuckDBReader(Path(where), tables=all_tables())


def _frame(table: "pa.Table", *, exact: bool) -> "pd.DataFrame":
    import pandas as pd  # noqa: PLC0415 - most who read need no pandas
    import pyarrow as pa  # noqa: PLC0415 - the same

    # Engines differ in how wide a number is (days between dates: 32 bits here, 64 there), and notebooks must not.
    for i, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            fitted = pa.decimal128(38, max(field.type.scale, _PLACES)) if exact else pa.float64()
            table = table.set_column(i, field.name, table.column(i).cast(fitted))

    def mapped(kind: "pa.DataType") -> Any:  # noqa: ANN401 - one of pandas' dtypes, which ship no types
        if pa.types.is_decimal(kind):
            return pd.ArrowDtype(kind)
        if pa.types.is_boolean(kind):
            return pd.BooleanDtype()
        if pa.types.is_integer(kind):
            return pd.UInt64Dtype() if kind == pa.uint64() else pd.Int64Dtype()
        return None

    return table.to_pandas(types_mapper=mapped, date_as_object=False)
