"""From columns as they were found to a `Ledger`, or a sentence that names file, line and column.

Ledgers that have types already are read here too: Parquet files, and tables that are in memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import base, keeping, values
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Stretch, Wanted
from octo_sync.reconciliation.ledgers.distinct import Unreadable


@dataclass(frozen=True, slots=True)
class Found:
    """What one file, sheet or query had: a column for each wanted one, in their order, each as parts (`values.py`)."""

    columns: Sequence[Sequence[pa.ChunkedArray]]
    stretch: Stretch
    notes: tuple[str, ...] = ()


def from_files(
    paths: Sequence[Path],
    wanted: Sequence[Wanted],
    form: Format,
    read: Callable[[Path, str, Sequence[Wanted], Format], Found],
) -> Ledger:
    """Files, one after another, as one ledger; `read` is given each with what sentences call it.

    Raises:
        LedgerError: A file, a column or a value cannot be read.
    """
    wanted, as_of = base.same_kinds(wanted), base.look(paths)
    asked = keeping.columns(form)
    found = [
        keeping.kept(read(path, label, [*wanted, *asked], form), asked, label, form)
        for path, label in zip(paths, base.labels(paths), strict=True)
    ]
    return assemble(found, wanted, form, origin=base.origin(paths), as_of=as_of)


def assemble(
    found: Sequence[Found], wanted: Sequence[Wanted], form: Format, *, origin: str, as_of: datetime | None
) -> Ledger:
    """All of `found`, one after another, as one ledger. Conventions are found out over all of them.

    Raises:
        LedgerError: A value is not of the kind that is wanted.
    """
    form.zone()
    ledger = Ledger(
        pa.table({}),
        origin,
        as_of,
        tuple(note for each in found for note in each.notes),
        tuple(f.stretch for f in found),
    )
    rows: dict[str, pa.ChunkedArray] = {}
    for at, column in enumerate(wanted):
        parts = end_to_end([each.columns[at] for each in found], [len(each.stretch.numbers) for each in found])
        try:
            read = values.read(parts, column.kind, form)
        except Unreadable as error:
            places = " and ".join(ledger.place(row) for row in error.rows)
            raise LedgerError(f'{places}, column "{column.name}": {error.sentence}') from None
        rows |= dict(zip((column.name, f"{column.name}.wall"), read, strict=False))
    return Ledger(pa.table(rows), origin, as_of, ledger.notes, ledger.stretches)


def end_to_end(files: Sequence[Sequence[pa.ChunkedArray]], lengths: Sequence[int]) -> list[pa.ChunkedArray]:
    """Parts of several files as parts of all: one for each type."""
    types = list(dict.fromkeys(part.type for parts in files for part in parts))
    joined = []
    for kind in types:
        chunks: list[pa.Array] = []
        for parts, length in zip(files, lengths, strict=True):
            fitting = [part for part in parts if part.type == kind]
            chunks += fitting[0].chunks if fitting else [pa.nulls(length, kind)]
        joined.append(pa.chunked_array(chunks, kind))
    return joined


# ── what has types already ────────────────────────────────────────────────────────────────────────────────────────


def read_parquet(paths: Sequence[Path], wanted: Sequence[Wanted], form: Format) -> Ledger:
    """Parquet files, of which only the wanted columns are read.

    Raises:
        LedgerError: A file, a column or a value cannot be read.
    """
    return from_files(paths, wanted, form, _parquet)


def _parquet(path: Path, label: str, wanted: Sequence[Wanted], form: Format) -> Found:
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            positions = base.find(names, wanted, label)
            table = file.read(columns=[names[at] for at in dict.fromkeys(positions)])
    except (pa.ArrowException, OSError) as error:
        # Of the library's words only the first line, which is about the file.
        raise LedgerError(f"{label} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    rows = max(0, table.num_rows - form.skip_footer)
    notes = [keeping.footer(label, range(rows + 1, table.num_rows + 1))] if rows < table.num_rows else []
    columns = [[table.column(names[at]).slice(0, rows)] for at in positions]
    stretch = Stretch(f"{label}, row ", range(1, rows + 1), cells=lambda number: _cells(pq.read_table(path), number))
    return Found(columns, stretch, tuple(notes))


def _cells(table: pa.Table, number: int) -> Sequence[object]:
    return [column[number - 1].as_py() for column in table.columns]


def of_table(table: pa.Table, origin: str, wanted: Sequence[Wanted], form: Format) -> Ledger:
    """A table in memory: another connection's bookings, or a notebook's frame (`pyarrow.Table.from_pandas`).

    Raises:
        LedgerError: A column is not there, or a value is not of the wanted kind.
    """
    wanted = base.same_kinds(wanted)
    columns = [[table.column(at)] for at in base.find(table.column_names, wanted, origin)]
    found = Found(columns, Stretch("row ", range(1, table.num_rows + 1), f" of {origin}", partial(_cells, table)))
    return assemble([found], wanted, form, origin=origin, as_of=None)
