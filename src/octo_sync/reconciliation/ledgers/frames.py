"""Ledgers that have types already: Parquet files, and tables that are in memory."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import base
from octo_sync.reconciliation.ledgers.assembling import Found, assemble, from_files
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Stretch, Wanted

__all__ = ["of_table", "read_parquet"]


def read_parquet(paths: Sequence[Path], wanted: Sequence[Wanted], form: Format) -> Ledger:
    """Parquet files, of which only the wanted columns are read.

    Raises:
        LedgerError: A file, a column or a value cannot be read.
    """
    return from_files(paths, wanted, form, _file)


def _file(path: Path, label: str, wanted: Sequence[Wanted], _: Format) -> Found:
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            positions = base.find(names, wanted, label)
            table = file.read(columns=[names[at] for at in dict.fromkeys(positions)])
    except (pa.ArrowException, OSError) as error:
        # Of the library's words only the first line, which is about the file.
        raise LedgerError(f"{label} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    columns = [[table.column(names[at])] for at in positions]
    return Found(columns, Stretch(f"{label}, row ", range(1, table.num_rows + 1)))


def of_table(table: pa.Table, origin: str, wanted: Sequence[Wanted], form: Format) -> Ledger:
    """A table in memory: another connection's bookings, or a notebook's frame (`pyarrow.Table.from_pandas`).

    Raises:
        LedgerError: A column is not there, or a value is not of the wanted kind.
    """
    wanted = base.same_kinds(wanted)
    columns = [[table.column(at)] for at in base.find(table.column_names, wanted, origin)]
    found = Found(columns, Stretch("row ", range(1, table.num_rows + 1), f" of {origin}"))
    return assemble([found], wanted, form, origin=origin, as_of=None)
