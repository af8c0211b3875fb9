"""From columns as they were found to a `Ledger`, or a sentence that names file, line and column."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import base, values
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Stretch, Wanted
from octo_sync.reconciliation.ledgers.distinct import Unreadable

__all__ = ["Found", "assemble", "end_to_end", "from_files"]


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
    found = [read(path, label, wanted, form) for path, label in zip(paths, base.labels(paths), strict=True)]
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
