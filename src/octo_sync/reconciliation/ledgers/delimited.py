"""CSV and its kin: parsed by Arrow as texts and read by its kernels; only what is wrong is looked for line by line."""

import csv
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped] # it ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyarrow import csv as arrow_csv

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import base, encoding, keeping
from octo_sync.reconciliation.ledgers.assembling import Found, from_files
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Stretch, Wanted
from octo_sync.reconciliation.ledgers.distinct import blank, first

_DELIMITERS = ",;\t|"
_BLOCK = 1 << 24
"""A record, with all the lines of its texts, fits into two blocks of this size."""
_END = "octo-sync: here ends the file"
"""A record behind the last one. Where it is not read as such, a quote was never closed; Arrow alone would not notice."""


def read_csv(paths: Sequence[Path], wanted: Sequence[Wanted], form: Format) -> Ledger:
    """CSV files, one after another; delimiter and encoding are found out for each, how values are written over all.

    Raises:
        LedgerError: A file, a column or a value cannot be read, or nothing says how to read it.
    """
    return from_files(paths, wanted, form, _file)


@dataclass(frozen=True, slots=True)
class _Head:
    """The header of a file and what it tells. `skipped` lines are above the first record."""

    headers: list[str]
    delimiter: str
    skipped: int
    place: str


def _file(path: Path, label: str, wanted: Sequence[Wanted], form: Format) -> Found:
    try:
        code, note = encoding.settle(path, label, form.encoding)
        try:
            head = _head(path, label, code, wanted, form)
            return _read(path, label, code, head, wanted, form, note)
        except UnicodeError:
            raise encoding.bad_bytes(path, code) from None
    except encoding.BadBytes as bad:
        raise LedgerError(_where(bad, path, label, wanted, form)) from None
    except OSError as error:
        raise LedgerError(f"{label} cannot be read: {error.strerror or error}.") from None


def _where(bad: encoding.BadBytes, path: Path, label: str, wanted: Sequence[Wanted], form: Format) -> str:
    """The sentence for bytes that cannot be read, with the column's name where the header tells it."""
    column = ""
    try:
        head = _head(path, label, "utf-8", wanted, form, errors="replace")
        before = next(csv.reader([bad.before], delimiter=head.delimiter), [""])
        column = f', column "{head.headers[len(before) - 1].strip()}"'
    except (LedgerError, csv.Error, IndexError):
        pass
    at = f"{label}, line {bad.line}{column}, character {len(bad.before) + 1}"
    return f"{at}: the bytes there are not of its encoding; {bad.advice}."


# ── the header ────────────────────────────────────────────────────────────────────────────────────────────────────


def _head(path: Path, label: str, code: str, wanted: Sequence[Wanted], form: Format, errors: str = "strict") -> _Head:
    def record(delimiter: str, above: int) -> tuple[list[str], int]:
        reader = csv.reader(islice(encoding.lines(path, code, errors=errors), above, None), delimiter=delimiter)
        try:
            return next(reader, []), above + reader.line_num
        except csv.Error:
            return [], above

    above, candidates = form.header_row - 1, form.delimiter or _DELIMITERS
    if above == 0 and (said := re.match(r"sep=(.)\s*$", next(encoding.lines(path, code, errors=errors), ""))):
        above, candidates = 1, said[1]  # a line that Excel writes and understands
    heads = []
    for delimiter in candidates:
        headers, skipped = record(delimiter, above)
        heads.append(_Head(headers, delimiter, skipped, f"{label}, line {above + 1}"))
    heads.sort(key=lambda head: len(head.headers), reverse=True)
    if not any(header.strip() for header in heads[0].headers):
        raise LedgerError(
            f"{heads[0].place}: there is no header; it is empty there. Set header_row to the line of the names."
        )
    for head in heads:
        try:
            base.find(head.headers, wanted, head.place)
        except LedgerError:
            continue
        return head
    return heads[0]


# ── the records ───────────────────────────────────────────────────────────────────────────────────────────────────


def _read(path: Path, label: str, code: str, head: _Head, wanted: Sequence[Wanted], form: Format, note: str) -> Found:
    positions = base.find(head.headers, wanted, head.place)
    width = _width(path, code, head)
    names = [f"c{at}" for at in range(width)]
    # The last column is looked at too: with a delimiter at the end of each row it is one more than the header has.
    read = names if form.skip_footer else [names[at] for at in dict.fromkeys([*positions, width - 1])]
    with path.open("rb") as file:
        text = encoding.Text(file, code, head.delimiter.join([_END] * width))
        try:
            table = arrow_csv.read_csv(
                pa.PythonFile(text, "r"),
                arrow_csv.ReadOptions(column_names=names, skip_rows=head.skipped, block_size=_BLOCK),
                arrow_csv.ParseOptions(delimiter=head.delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    include_columns=read, column_types=dict.fromkeys(read, pa.string()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid:
            raise _wrong(path, label, code, head, width) from None
    rows = table.num_rows - 1
    if rows < 0 or any(column[rows].as_py() != _END for column in table.columns):
        raise _wrong(path, label, code, head, width)
    if text.zero:
        raise LedgerError(
            f"{label}: there are zero bytes in it, as in UTF-16 without a mark at its start; set encoding, for example to "
            '"utf-16-le".'
        )
    numbers: Sequence[int] = range(head.skipped + 1, head.skipped + 1 + rows)
    if rows and text.lines != head.skipped + rows:
        numbers = _numbers(path, code, head)
        if len(numbers) != rows:
            raise _wrong(path, label, code, head, width)
    table = table.slice(0, rows)
    if width > len(head.headers):
        full = first(pc.invert(blank(table.column(names[-1]))))
        if full is not None:
            raise _ragged(f"{label}, line {numbers[full]}", width, len(head.headers))
    notes = [note] if note else []
    if form.skip_footer:
        there = [n for n, is_empty in enumerate(_empty(table.columns).to_pylist()) if not is_empty]
        if left := there[-form.skip_footer :]:
            notes.append(keeping.footer(label, [numbers[at] for at in left]))
            numbers, table = numbers[: left[0]], table.slice(0, left[0])
    stretch = Stretch(f"{label}, line ", numbers, cells=partial(_cells, path, code, head.delimiter))
    return _without_blank([table.column(names[at]) for at in positions], stretch, label, notes)


def _cells(path: Path, code: str, delimiter: str, line: int) -> Sequence[str]:
    return next(csv.reader(islice(encoding.lines(path, code), line - 1, None), delimiter=delimiter))


def _empty(columns: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Which rows have nothing in any of the columns."""
    empty = blank(columns[0])
    for column in columns[1:]:
        empty = pc.and_(empty, blank(column))
    return empty


def _without_blank(columns: list[pa.ChunkedArray], stretch: Stretch, label: str, notes: list[str]) -> Found:
    """Rows that have nothing in any wanted column are none; a note says so where others follow."""
    columns = [pc.utf8_trim_whitespace(column) for column in columns]
    there = pc.invert(_empty(columns))
    kept = array("q", pc.indices_nonzero(there).to_pylist()) if not pc.all(there).as_py() else None
    if kept is not None:
        holes = (kept[-1] + 1 if kept else 0) - len(kept)
        if holes:
            notes.append(f"{label}: {holes} row{'s' * (holes > 1)} with nothing in the wanted columns were left out.")
        stretch = replace(stretch, numbers=array("q", (stretch.numbers[at] for at in kept)))
        columns = [column.filter(there) for column in columns]
    return Found([[column] for column in columns], stretch, tuple(notes))


def _records(path: Path, code: str, head: _Head) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line where it begins; lines without anything are none."""
    reader = csv.reader(islice(encoding.lines(path, code), head.skipped, None), delimiter=head.delimiter)
    start = head.skipped + 1
    for record in reader:
        if record:
            yield start, record
        start = head.skipped + reader.line_num + 1


def _width(path: Path, code: str, head: _Head) -> int:
    """How many cells records have: as many as the header, or one more or less where only one of them ends with a delimiter."""
    width = len(head.headers)
    try:
        _, record = next(_records(path, code, head), (0, head.headers))
    except csv.Error:
        return width
    if len(record) == width + 1 and not record[-1]:
        return width + 1
    return width - 1 if len(record) == width - 1 and not head.headers[-1].strip() else width


def _numbers(path: Path, code: str, head: _Head) -> Sequence[int]:
    try:
        return array("q", (number for number, _ in _records(path, code, head)))
    except csv.Error:
        return ()


def _wrong(path: Path, label: str, code: str, head: _Head, width: int) -> LedgerError:
    """Why the records cannot be read, and where."""
    number = head.skipped
    try:
        for number, record in _records(path, code, head):
            if len(record) != width:
                return _ragged(f"{label}, line {number}", len(record), len(head.headers))
    except csv.Error:
        return LedgerError(
            f"{label}, behind line {number}: there is a text too long for a ledger; is a quote left open?"
        )
    return LedgerError(
        f"{label}, line {number}: a quote that opens in this record is never closed, or a record is longer than "
        f"{_BLOCK >> 20} MB; correct it where the file comes from."
    )


def _ragged(place: str, cells: int, headers: int) -> LedgerError:
    return LedgerError(
        f"{place}: the row has {cells} cell{'s' * (cells != 1)} and the header {headers}. A delimiter or a quote inside of a "
        "text has to be quoted; if the delimiter is another one, set delimiter."
    )
