"""What can be read: the one Protocol behind `octo_sync.open`, `sql`, `ask`, `tables` and `export`, whatever the engine.

A reader sees what was published (`marts`, `core`, `ops`) and nothing else, writes nothing, and names marts, then core, then
ops tables without their schema.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from octo_sync.destinations.base import Rows, TableDigest

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


def tables_of(rows: Iterable[tuple[str, ...]]) -> list[TableInfo]:
    """Rows of schema, table, kind, description, column, type and meaning as tables, in the order of their first columns."""
    grouped: dict[tuple[str, str, str, str], list[ColumnInfo]] = {}
    for schema, name, kind, description, *column in rows:
        grouped.setdefault((schema, name, kind, description), []).append(ColumnInfo(*column))
    return [TableInfo(*key, columns=tuple(columns)) for key, columns in grouped.items()]


class Reader(Protocol):
    """An open connection for reading. Threads may share it; they take turns."""

    name: str
    """What errors call it: a file's name, or a database and its host, never a password."""

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

    def tables(self) -> list[TableInfo]:
        """Every table and view: marts first, then core, then ops."""

    def digest(self, tables: Collection[str] | None = None) -> list[TableDigest]:
        """Row count and order-independent digest of each core table, as `destinations/digests.py` defines them.

        Raises:
            WarehouseError: It cannot be read.
        """

    def close(self) -> None:
        """Let go of it. Twice is fine."""
