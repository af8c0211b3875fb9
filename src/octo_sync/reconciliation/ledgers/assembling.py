"""From columns as they were found to a `Ledger`, or a sentence that names file, line and column.

Ledgers that have types already are read here too: Parquet files, and tables that are in memory.
"""

import uuid
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import base, keeping, values
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Stretch, Wanted
from octo_sync.reconciliation.ledgers.unreadable import Unreadable

_UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Found:
    """What one file, sheet or query had: a column for each wanted one, in their order."""

    columns: Sequence[Sequence[Any]]
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
    rows: dict[str, pa.Array] = {}
    for at, column in enumerate(wanted):
        cells = [cell for each in found for cell in each.columns[at]]
        try:
            read = values.read(cells, column.kind, form)
        except Unreadable as error:
            at_rows = (next(row for row, cell in enumerate(cells) if cell is value) for value in error.values)
            places = " and ".join(map(ledger.place, at_rows))
            raise LedgerError(f'{places}, column "{column.name}": {error.sentence}') from None
        rows |= dict(zip((column.name, f"{column.name}.wall"), read, strict=False))
    return replace(ledger, rows=pa.table(rows))


def collected(
    rows: Iterable[tuple[int, Sequence[Any]]], positions: Sequence[int], wanted: Sequence[Wanted], place: str, unit: str
) -> Found:
    """The cells at `positions` of numbered rows of a file; `unit` is what the numbers count.

    Rows that have nothing in any wanted column are none; a note says so where others follow.
    """
    numbers, kept, empty, holes = array("q"), list[list[Any]](), 0, 0
    for number, row in rows:
        cells = values.trimmed([row[at] for at in positions])
        if cells.count(None) == len(cells):
            empty += 1
            continue
        holes, empty = holes + empty, 0
        numbers.append(number)
        kept.append(cells)
    note = f"{place}: {holes} row{'s' * (holes > 1)} with nothing in the wanted columns were left out."
    return Found(columns(kept, wanted), Stretch(f"{place}, {unit} ", numbers), (note,) if holes else ())


def columns(rows: Sequence[Sequence[Any]], wanted: Sequence[Wanted]) -> Sequence[Sequence[Any]]:
    """What stands in rows, column by column."""
    return list(zip(*rows, strict=True)) or [()] * len(wanted)


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
    notes = keeping.footer(label, range(rows + 1, table.num_rows + 1))
    columns = [_cells(table.column(names[at]).slice(0, rows), label) for at in positions]
    return Found(columns, Stretch(f"{label}, row ", range(1, rows + 1)), tuple(notes))


def of_table(table: pa.Table, origin: str, wanted: Sequence[Wanted], form: Format) -> Ledger:
    """A table in memory: another connection's bookings, or a notebook's frame (`pyarrow.Table.from_pandas`).

    Raises:
        LedgerError: A column is not there, or a value is not of the wanted kind.
    """
    wanted = base.same_kinds(wanted)
    columns = [_cells(table.column(at), origin) for at in base.find(table.column_names, wanted, origin)]
    found = Found(columns, Stretch("row ", range(1, table.num_rows + 1), f" of {origin}"))
    return assemble([found], wanted, form, origin=origin, as_of=None)


def _cells(column: pa.ChunkedArray, origin: str) -> list[Any]:
    """A column of Arrow as Python's values."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    elif pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_floating(kind):  # the shortest text that is the same number, also of 32 bits
        return [text and float(text) for text in column.cast(pa.string()).to_pylist()]
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == _UUID_BYTES:  # how Parquet keeps UUIDs
        return [value and str(uuid.UUID(bytes=value)) for value in column.to_pylist()]
    zone = Format(time_zone=kind.tz).zone() if pa.types.is_timestamp(kind) and kind.tz else None
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz and "UTC"), safe=False)
    try:
        cells = column.to_pylist()
    except (ValueError, OverflowError):
        raise LedgerError(f"{origin}: a moment is outside of the years 1 to 9999.") from None
    return [cell and cell.astimezone(zone) for cell in cells] if zone else values.trimmed(cells)
