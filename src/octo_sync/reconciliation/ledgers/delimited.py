"""CSV and its kin: records of texts, each with the line where it begins."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import chain, islice
from pathlib import Path

from octo_sync.errors import LedgerError
from octo_sync.reconciliation.ledgers import base, encoding, keeping
from octo_sync.reconciliation.ledgers.assembling import Found, collected, from_files
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Wanted

_DELIMITERS = ",;\t|"
_END = "octo-sync: here ends the file"
"""A record behind the last one. Where it is not read as such, a quote was never closed; no reader would say so."""


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
        raw = path.read_bytes()
        text, note = encoding.decoded(raw, label, form.encoding)
    except encoding.BadBytes as bad:
        raise LedgerError(_where(bad, raw, label, wanted, form)) from None
    except OSError as error:
        raise LedgerError(f"{label} cannot be read: {error.strerror or error}.") from None
    return _read(text, label, _head(text, label, wanted, form), wanted, form, note)


def _where(bad: encoding.BadBytes, raw: bytes, label: str, wanted: Sequence[Wanted], form: Format) -> str:
    """The sentence for bytes that cannot be read, with the column's name where the header tells it."""
    column = ""
    try:
        head = _head(raw.decode(errors="replace"), label, wanted, form)
        before = next(csv.reader([bad.before], delimiter=head.delimiter), [""])
        column = f', column "{head.headers[len(before) - 1].strip()}"'
    except (LedgerError, csv.Error, IndexError):
        pass
    at = f"{label}, line {bad.line}{column}, character {len(bad.before) + 1}"
    return f"{at}: the bytes there are not of its encoding; {bad.advice}."


# ── the header ────────────────────────────────────────────────────────────────────────────────────────────────────


def _lines(text: str, above: int) -> Iterator[str]:
    """With their ends, as `csv` wants them, without those `above`."""
    return islice(StringIO(text, newline=""), above, None)


def _head(text: str, label: str, wanted: Sequence[Wanted], form: Format) -> _Head:
    def record(delimiter: str, above: int) -> tuple[list[str], int]:
        reader = csv.reader(_lines(text, above), delimiter=delimiter)
        try:
            return next(reader, []), above + reader.line_num
        except csv.Error:
            return [], above

    above, candidates = form.header_row - 1, form.delimiter or _DELIMITERS
    if above == 0 and (said := re.match(r"sep=(.)\s*$", next(_lines(text, 0), ""))):
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


def _read(text: str, label: str, head: _Head, wanted: Sequence[Wanted], form: Format, note: str) -> Found:
    positions, footer = base.find(head.headers, wanted, head.place), list[int]()
    rows = keeping.without_footer(_rows(text, label, head), form.skip_footer, footer)
    found = collected(rows, positions, wanted, label, "line")
    notes = [note] if note else []
    return replace(found, notes=(*notes, *keeping.footer(label, footer), *found.notes))


def _rows(text: str, label: str, head: _Head) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line where it begins; all have as many cells as the first, and that as many as the header.

    One of the two may end with a delimiter that the other does not have.
    """
    headers = width = len(head.headers)
    is_first = True
    for line, record in _records(text, label, head):
        if is_first and (len(record) == headers + 1 or (len(record) == headers - 1 and not head.headers[-1].strip())):
            width = len(record)
        is_first = False
        if len(record) != width or (width > headers and record[-1]):
            raise LedgerError(
                f"{label}, line {line}: the row has {len(record)} cell{'s' * (len(record) != 1)} and the header {headers}. "
                "A delimiter or a quote inside of a text has to be quoted; if the delimiter is another one, set delimiter."
            )
        yield line, record


def _records(text: str, label: str, head: _Head) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line where it begins; lines without anything are none."""
    lines = chain(_lines(text, head.skipped), [f'"{_END}"'])
    reader = csv.reader(lines, delimiter=head.delimiter)
    start = head.skipped + 1
    try:
        for record in reader:
            if record == [_END]:
                return
            if record and _END in record[-1]:
                raise LedgerError(f"{label}, line {start}: a quote that opens in this record is never closed.")
            if record:
                yield start, record
            start = head.skipped + reader.line_num + 1
    except csv.Error:
        raise LedgerError(
            f"{label}, behind line {start}: there is a text too long for a ledger; is a quote left open?"
        ) from None
