"""What was published, in PostgreSQL, for reading: each statement in a read-only transaction of its own, within its time.

The server keeps a statement from writing, and `guard` from what is not published. What really bars the way is the
role that the address names, so dashboards and people get one that has rights on `marts` only (docs/postgresql.md).
"""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import postgres

from octo_sync.destinations import digests
from octo_sync.destinations.base import Rows, TableDigest
from octo_sync.destinations.postgres import Session
from octo_sync.destinations.postgres.guard import guard
from octo_sync.destinations.postgres.rows import columns_of, numbered, rows_of, run_in
from octo_sync.destinations.postgres.session import at_once, connect, has_marts, place, translated, value_of
from octo_sync.destinations.reading import SCHEMAS, Parameters, Reader
from octo_sync.destinations.relations import sql
from octo_sync.errors import QueryError, WarehouseError
from octo_sync.tables.schema import Table

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

_CANCELED, _READ_ONLY = "57014", "25006"
_LOCK_TIMEOUT = 10.0
_WHOLE = "begin isolation level repeatable read read only"
_CURSOR = "octo_rows"
_NO_CURSOR = frozenset({"explain", "show"})
"""First words of statements that the server makes no cursor for; their answers are short."""
_SCALE = 4
"""Decimals of amounts; what a query works out with more of them becomes a float, as with DuckDB."""


class PostgresReader(Reader):
    """A `Reader` of one database. When its session has ended, the next query makes another.

    Args:
        address: `postgresql://…`
        tables: What `digest` knows; from `octo_sync.tables`.
        is_whole: Whether every query is of the publish that was the last one when it was opened, as with a file. The server
            keeps former rows for as long.

    Raises:
        WarehouseError: It cannot be reached, or nothing was published yet.
    """

    def __init__(self, address: str, *, tables: Collection[Table] = (), is_whole: bool = False) -> None:
        self.name, self._address, self._tables = place(address), address, tuple(tables)
        self._lock = threading.RLock()
        self._session = self._connect()
        self._snapshot = self._keep() if is_whole else None
        """Who keeps it, and its name."""
        if not has_marts(self._session):
            self.close()
            raise WarehouseError(
                f"Nothing was published in {self.name} yet; run `octo-sync sync` or `octo-sync publish` first."
            )

    def _connect(self) -> Session:
        with at_once():
            return connect(self._address, lock_timeout=_LOCK_TIMEOUT, read_only=True)

    def _keep(self) -> tuple[Session, str]:
        keeper = self._connect()
        keeper.execute("set idle_in_transaction_session_timeout = 0")
        keeper.execute(_WHOLE)
        return keeper, str(value_of(keeper, "select pg_export_snapshot()"))

    def query(
        self, sql: str, parameters: Parameters = (), *, limit: int | None = None, timeout: float | None = None
    ) -> Rows:
        """Rows of one reading statement; see `Reader`."""
        text, values = numbered(sql, parameters)
        with self._lock, self._running(self._begun(), timeout) as session:
            word = guard(session, text, values)
            if limit is None or word in _NO_CURSOR:
                # In binary, because only then the server itself refuses a second statement.
                return rows_of(session.execute(text.encode(), values, binary=True), limit)
            # The driver would hold the whole answer before its first row is taken; the server holds it for us.
            with psycopg.RawServerCursor(session, _CURSOR) as cursor:
                return rows_of(cursor.execute(text.encode(), values or None, binary=True), limit)

    def _stream(self, sql: str, parameters: Parameters, size: int, timeout: float | None) -> Iterator[Any]:
        """First the schema, then the batches, in a session of its own; it ends with the last."""
        import pyarrow as pa  # noqa: PLC0415 - rows do without it

        self._refuse_when_closed()
        text, values = numbered(sql, parameters)
        session = self._connect()
        try:
            self._begin(session)
            with self._running(session, timeout), psycopg.RawServerCursor(session, _CURSOR) as cursor:
                guard(session, text, values)
                cursor.execute(text.encode(), values or None)
                names, _ = columns_of(cursor)
                rows = cursor.fetchmany(size)
                makers = [_arrow_type(c, [row[i] for row in rows]) for i, c in enumerate(cursor.description or ())]
                schema = pa.schema([pa.field(name, kind) for name, (kind, _) in zip(names, makers, strict=True)])
                yield schema
                while rows:
                    arrays = [
                        _array(kind, make, column)
                        for (kind, make), column in zip(makers, zip(*rows, strict=True), strict=True)
                    ]
                    yield pa.record_batch(arrays, schema=schema)
                    rows = cursor.fetchmany(size)
        finally:
            session.close()

    def _described(self) -> list[tuple[str, ...]]:
        return self.query(sql("postgres_tables"), [list(SCHEMAS)]).rows

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Row count and digest of each core table; see `Reader`."""
        with self._lock, self._running(self._begun(), None) as session:
            return digests.of_all(run_in(session), self._tables, tables, digests.POSTGRES)

    def close(self) -> None:
        """Let go of it. Twice is fine."""
        self._closed = True
        self._session.close()
        if self._snapshot:
            self._snapshot[0].close()

    def _begun(self) -> Session:
        """The session with a transaction begun; another session when the server has ended the former one meanwhile.

        Only the beginning is done twice: a query that ended its session may be why it ended.
        """
        self._refuse_when_closed()
        try:
            self._start(self._session)
        except psycopg.OperationalError:
            self._session.close()
            self._session = self._connect()
            self._begin(self._session)
        return self._session

    def _start(self, session: Session) -> None:
        session.execute(_WHOLE if self._snapshot else "begin read only")
        if self._snapshot:
            try:
                session.execute(f"set transaction snapshot '{self._snapshot[1]}'".encode())
            except (psycopg.DataError, psycopg.ProgrammingError):
                session.execute("rollback")
                raise WarehouseError(
                    f"{self.name} has ended the session that kept what is read as it was; run the command again."
                ) from None

    def _begin(self, session: Session) -> None:
        with at_once(), translated(self.name):
            self._start(session)

    @contextmanager
    def _running(self, session: Session, timeout: float | None) -> Iterator[Session]:
        """The block runs a user's SQL in one read-only transaction that was begun: its errors become one line each."""
        with at_once(), translated(self.name):
            try:
                if timeout:
                    session.execute(f"set local statement_timeout = {max(1, int(timeout * 1000))}".encode())
                yield session
                session.execute("commit")
            except psycopg.Error as error:
                if error.sqlstate == _CANCELED and timeout:
                    raise WarehouseError(
                        f"The query was stopped after {timeout:g} s; allow more, or ask for less."
                    ) from None
                if error.sqlstate == _READ_ONLY:
                    raise QueryError("It does more than read; the copy can only be read.") from None
                if isinstance(error, psycopg.ProgrammingError | psycopg.DataError | psycopg.NotSupportedError):
                    raise QueryError(_one_line(error)) from None
                raise
            finally:
                if not session.closed and session.info.transaction_status:
                    session.execute("rollback")


def _one_line(error: Any) -> str:  # noqa: ANN401 - psycopg.Error, and the driver is an extra
    said = (error.diag.message_primary or str(error)).rstrip(".")
    at = f" (at character {error.diag.statement_position})" if error.diag.statement_position else ""
    hint = f" {error.diag.message_hint}" if error.diag.message_hint else ""
    return " ".join(f"{said}{at}.{hint}".split())[:1000]


_Make = Callable[[Any], Any]


def _arrow_type(column: Any, values: list[Any]) -> "tuple[pa.DataType, _Make | None]":  # noqa: ANN401 - psycopg.Column
    """The Arrow type of a column, and what its values have to go through; `values` are the first ones."""
    import pyarrow as pa  # noqa: PLC0415 - rows do without it

    info = postgres.types.get(column.type_code)
    fixed = {
        "bool": pa.bool_(),
        "int2": pa.int16(),
        "int4": pa.int32(),
        "int8": pa.int64(),
        "float4": pa.float32(),
        "float8": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", tz="UTC"),
    }
    name = info.name if info else ""
    if info and column.type_code == info.array_oid:
        return (pa.list_(fixed[name]), None) if name in fixed else (pa.string(), str)
    if name in fixed:
        return fixed[name], None
    if name != "numeric":
        return pa.string(), str
    if column.precision is not None:
        return pa.decimal128(column.precision, column.scale), None
    # A sum or an average, of which the server does not say how many decimals it has; where nothing tells, an amount.
    scale = max(
        (-int(v.as_tuple().exponent) for v in values if isinstance(v, Decimal) and v.is_finite()), default=_SCALE
    )
    if scale == 0:
        return pa.int64(), _whole
    return (pa.decimal128(38, _SCALE), None) if scale <= _SCALE else (pa.float64(), float)


def _whole(value: Decimal) -> int:
    """The integer that it is: what the first rows say of a column, the others may not."""
    if not value.is_finite() or value != (number := int(value)):
        raise QueryError("A number of the answer has decimals, those of the first rows had none; cast it in the query.")
    return number


def _array(kind: "pa.DataType", make: "_Make | None", values: tuple[Any, ...]) -> Any:  # noqa: ANN401 - a pyarrow Array
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        return pa.array(values if make is None else [v if v is None else make(v) for v in values], kind)
    except (pa.ArrowInvalid, OverflowError):
        raise QueryError("A number of the answer is too wide; cast it to text or float8 in the query.") from None
