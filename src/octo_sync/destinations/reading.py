"""What can be read: the one Protocol behind `octo_sync.open`, `sql`, `ask`, `tables` and `export`, whatever the engine.

A reader sees what was published (`marts`, `core`, `ops`) and nothing else, writes nothing, and names marts, then core, then
ops tables without their schema.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from octo_sync.destinations.base import Rows, TableDigest
from octo_sync.errors import WarehouseError

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

BATCH_ROWS = 50_000
"""Rows of one batch where nobody asks for another number: some 10 MB of bookings."""
SCHEMAS = ("marts", "core", "ops")
"""What is published, in the order in which names without a schema are looked up."""

Parameters = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """One column: its SQL type and what it means."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class TableInfo:
    """One table or view, and what it means."""

    schema: str
    name: str
    kind: str
    description: str
    columns: tuple[ColumnInfo, ...]

    @property
    def full_name(self) -> str:
        """`schema.name`."""
        return f"{self.schema}.{self.name}"

    @property
    def quoted(self) -> str:
        """The same as SQL spells it, whatever is in a name."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in (self.schema, self.name))

    def __str__(self) -> str:
        return self.full_name


def as_texts(batch: "pa.RecordBatch", *, nested: bool = True) -> list[list[Any]]:
    """The columns as lists of what CSV and JSON say: amounts, dates and instants are texts, made in bulk.

    With `nested` lists and records are JSON texts and yes/no is `true` or `false`; without, they are left to a JSON encoder.
    """
    return [_texts(column, nested=nested) for column in batch.columns]


def _texts(column: "pa.Array", *, nested: bool) -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415 - commands start fast
    import pyarrow.compute as pc  # type: ignore[import-untyped] # noqa: PLC0415 - the same

    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        # `2026-01-02 03:04:05.000000Z` → `2026-01-02T03:04:05Z`, once for those that are the same: a microsecond each.
        coded = column.dictionary_encode()
        text = pc.replace_substring(coded.dictionary.cast(pa.string()), " ", "T", max_replacements=1)
        values = pc.replace_substring(text, ".000000", "").take(coded.indices).to_pylist()
    elif pa.types.is_decimal(kind) or pa.types.is_date(kind) or (nested and pa.types.is_boolean(kind)):
        values = column.cast(pa.string()).to_pylist()
    elif pa.types.is_binary(kind):
        values = [value if value is None else value.hex() for value in column.to_pylist()]
    elif pa.types.is_interval(kind) or pa.types.is_duration(kind):
        values = [value if value is None else str(value) for value in column.to_pylist()]
    elif nested and pa.types.is_nested(kind):
        values = [value if value is None else as_json(value) for value in column.to_pylist()]
    else:
        values = column.to_pylist()
    return list(values)


def as_json(value: object) -> str:
    """A list or a record as JSON text."""
    return msgspec.json.encode(value).decode()


class Reader(Protocol):
    """An open connection for reading. Threads may share it; they take turns."""

    name: str
    """What errors call it: a file's name, or a database and its host, never a password."""
    _closed: bool = False

    def query(
        self, sql: str, parameters: Parameters = (), *, limit: int | None = None, timeout: float | None = None
    ) -> Rows:
        """Rows of one reading statement, at most `limit`, within `timeout` seconds.

        Raises:
            QueryError: It is wrong, or does more than read.
            WarehouseError: It cannot be read, or the time was up.
        """

    def batches(
        self, sql: str, parameters: Parameters = (), *, size: int = BATCH_ROWS, timeout: float | None = None
    ) -> "pa.RecordBatchReader":
        """The rows of one reading statement as Arrow batches of about `size` rows, made while they are taken.

        Instants are `timestamp[us, UTC]`, amounts decimals, whole numbers integers. Other queries may run meanwhile.

        Raises:
            QueryError: It is wrong, or does more than read.
            WarehouseError: It cannot be read, or the time was up. Both may come while batches are taken.
        """
        import pyarrow as pa  # noqa: PLC0415 - rows do without it

        made = self._stream(sql, parameters, size, timeout)
        schema: pa.Schema = next(made)
        return pa.RecordBatchReader.from_batches(schema, made)

    def _stream(self, sql: str, parameters: Parameters, size: int, timeout: float | None) -> Iterator[Any]:
        """First the schema of an answer, then its rows as Arrow batches."""

    def tables(self) -> list[TableInfo]:
        """Every table and view: marts first, then core, then ops; columns in their order."""
        grouped: dict[tuple[str, str, str, str], list[ColumnInfo]] = {}
        for schema, name, kind, description, *column in self._described():
            grouped.setdefault((schema, name, kind, description), []).append(ColumnInfo(*column))
        return [TableInfo(*key, columns=tuple(columns)) for key, columns in grouped.items()]

    def _described(self) -> Sequence[tuple[str, ...]]:
        """Schema, table, kind, description, column, type and meaning of each column."""

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Row count and order-independent digest of each core table, as `destinations/digests.py` defines them.

        Raises:
            WarehouseError: It cannot be read.
        """

    def close(self) -> None:
        """Let go of it. Twice is fine."""

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise WarehouseError(f"{self.name} was closed; open it again.")


_MONTHS = (
    "select data_type from information_schema.columns "
    "where table_schema = 'marts' and table_name = 'dim_date' and column_name = 'travel_month'"
)


def refuse_older(name: str, ask: Callable[[str], Sequence[Sequence[Any]]]) -> None:
    """Refuse a copy whose months are texts, as those of 0.2.0 are, to who asks selects of this program.

    Raises:
        WarehouseError: It is one.
    """
    if any(str(kind).lower() != "date" for (kind,) in ask(_MONTHS)):
        raise WarehouseError(f"{name} was published by an older octo-sync; make it anew: octo-sync publish.")
