"""XLSX workbooks: the stored values of one sheet.

The library that reads them hands out an empty cell where a sheet shows an error, or where a program wrote a formula and no
value. Amounts would vanish without a word, so the sheet's XML is searched for both.
"""

import re
import zipfile
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from octo_sync.errors import ConfigError, LedgerError, install
from octo_sync.reconciliation.ledgers import base, keeping
from octo_sync.reconciliation.ledgers.assembling import Found, from_files
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Stretch, Wanted
from octo_sync.reconciliation.ledgers.cells import ROWS, Cells

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

_CHUNK = 1 << 22
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_CELL = re.compile(rb"<(?:\w+:)?c\s([^>]*[^/>])>(.*?)</(?:\w+:)?c>", re.DOTALL)
_REFERENCE = re.compile(rb"\br=[\"']([A-Z]{1,3})(\d{1,7})[\"']")
_ERROR, _TEXT = re.compile(rb"\bt=[\"']e[\"']"), re.compile(rb"\bt=[\"']str[\"']")
_FORMULA, _VALUE = re.compile(rb"<(?:\w+:)?f[\s/>]"), re.compile(rb"<(?:\w+:)?v(?:\s[^>]*)?>([^<]+)<")
_SUSPECT = re.compile(rb"\bt=[\"']e[\"']|<(?:\w+:)?f[\s/>]")


def read_xlsx(paths: Sequence[Path], wanted: Sequence[Wanted], form: Format) -> Ledger:
    """XLSX workbooks: of each the sheet that `form` names, else the first. Formulas are their stored values.

    Raises:
        ConfigError: python-calamine is not installed.
        LedgerError: A file, a sheet, a column or a value cannot be read; a cell shows an error; a formula has no stored value.
    """
    return from_files(paths, wanted, form, _file)


def _file(path: Path, label: str, wanted: Sequence[Wanted], form: Format) -> Found:
    try:
        import python_calamine as calamine  # noqa: PLC0415 - an extra that few need
    except ImportError:
        raise ConfigError(f"Reading xlsx needs python-calamine: {install('xlsx')}.") from None
    try:
        with zipfile.ZipFile(path) as archive:
            if (size := sum(item.file_size for item in archive.infolist())) > base.LARGEST:
                raise LedgerError(
                    f"{label}: unpacked it is {size / 1e9:.1f} GB, and {base.LARGEST / 1e9:.0f} GB are read at once; export "
                    "it as CSV or Parquet, or a shorter period."
                )
            with calamine.CalamineWorkbook.from_path(path) as book:
                return _sheet(book, archive, label, wanted, form)
    except (calamine.CalamineError, zipfile.BadZipFile, ET.ParseError, OSError, KeyError):
        raise LedgerError(
            f"{label} cannot be read as an XLSX workbook: it is damaged, of another format, or has a password."
        ) from None


def _sheet(
    book: "CalamineWorkbook", archive: zipfile.ZipFile, label: str, wanted: Sequence[Wanted], form: Format
) -> Found:
    name = form.sheet or book.sheet_names[0]
    if name not in book.sheet_names:
        there = ", ".join(f'"{each}"' for each in book.sheet_names)
        raise LedgerError(f'{label}: there is no sheet "{name}". The sheets there are {there}.')
    place = f"{label}, sheet {name}"
    sheet = book.get_sheet_by_name(name)
    rows = iter(sheet.iter_rows())
    headers = [str(cell) for cell in next(islice(rows, form.header_row - 1, None), [])]
    if not any(header.strip() for header in headers):
        raise LedgerError(
            f"{place}, row {form.header_row}: there is no header; it is empty there. Set header_row to the row of the names, "
            "or sheet to another one."
        )
    positions = base.find(headers, wanted, f"{place}, row {form.header_row}")
    numbers, cells, waiting, empty, holes = array("q"), Cells(wanted), list[list[Any]](), 0, 0
    odds, footer = list(_odd_cells(archive, _part(archive, name))), list[int]()
    odd_rows = {odd.row for odd in odds}
    seen = (
        (number, row, number in odd_rows or any(_value(cell) is not None for cell in row))
        for number, row in enumerate(rows, form.header_row + 1)
    )
    for number, row in _without_footer(seen, form.skip_footer, footer):
        values = [_value(row[at]) for at in positions]
        if values.count(None) == len(values):
            empty += 1
            continue
        holes, empty = holes + empty, 0
        numbers.append(number)
        waiting.append(values)
        if len(waiting) == ROWS:
            cells.add(waiting)
            waiting = []
    cells.add(waiting)
    # Rows begin at the first column that is used.
    places = [position + (sheet.start or (0, 0))[1] for position in positions]
    for odd in odds:
        if odd.row == 0:
            raise LedgerError(f"{place}: in a cell somewhere {odd.sentence}")
        if odd.row > form.header_row and odd.column in places and odd.row not in footer:
            column = wanted[places.index(odd.column)].name
            raise LedgerError(f'{place}, row {odd.row}, column "{column}": {odd.sentence}')
    notes = [keeping.footer(place, footer)] if footer else []
    if holes:
        notes.append(f"{place}: {holes} row{'s' * (holes > 1)} with nothing in the wanted columns were left out.")
    stretch = Stretch(f"{place}, row ", numbers, cells=partial(_cells, str(archive.filename), name))
    return Found(cells.columns(), stretch, tuple(notes))


def _cells(path: str, sheet: str, row: int) -> list[Any]:
    import python_calamine as calamine  # noqa: PLC0415 - an extra that few need

    with calamine.CalamineWorkbook.from_path(path) as book:
        return next(islice(book.get_sheet_by_name(sheet).iter_rows(), row - 1, None))


def _without_footer(
    rows: Iterable[tuple[int, list[Any], bool]], most: int, footer: list[int]
) -> Iterator[tuple[int, list[Any]]]:
    """All but the last `most` that have something in any column, whose numbers are put into `footer`."""
    held = deque[tuple[int, list[Any], bool]]()
    full = 0
    for one in rows:
        held.append(one)
        full += one[2]
        while full > most:
            number, cells, is_full = held.popleft()
            full -= is_full
            yield number, cells
    footer += [number for number, _, is_full in held if is_full]


def _value(cell: Any) -> Any:  # noqa: ANN401 - whatever a sheet holds
    return None if isinstance(cell, str) and not cell.strip() else cell


@dataclass(frozen=True, slots=True)
class _Odd:
    """A cell that has no value to be read. `row` counts from 1, `column` from 0."""

    row: int
    column: int
    sentence: str


def _part(archive: zipfile.ZipFile, sheet: str) -> str:
    """The name of a sheet's XML inside the archive."""
    # Python's expat refuses entities that grow without bound, and the archive's size is bounded.
    book = ET.fromstring(archive.read("xl/workbook.xml"))  # noqa: S314
    relations = ET.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
    wanted = next(
        each.get(_RELATION) for each in book.iter() if each.tag.endswith("}sheet") and each.get("name") == sheet
    )
    target = next(each.get("Target", "") for each in relations.iter() if each.get("Id") == wanted)
    return target.removeprefix("/") if target.startswith("/") else f"xl/{target}"


def _odd_cells(archive: zipfile.ZipFile, part: str) -> Iterator[_Odd]:
    """Cells that show an error, and formulas without a stored value, in the order of the sheet."""
    rest = b""
    with archive.open(part) as xml:
        while chunk := xml.read(_CHUNK):
            text = rest + chunk
            end = max(text.rfind(b"</row>"), text.rfind(b":row>"))
            rows, rest = (text[:end], text[end:]) if end >= 0 else (b"", text)
            if _SUSPECT.search(rows):
                yield from filter(None, map(_odd, _CELL.finditer(rows)))


def _odd(cell: re.Match[bytes]) -> _Odd | None:
    attributes, inner = cell.groups()
    value = _VALUE.search(inner)
    if _ERROR.search(attributes):
        shown = value[1].decode(errors="replace")[:12] if value else "an error"
        sentence = f"the cell shows {shown}; correct it in the sheet."
    elif _FORMULA.search(inner) and not value and not _TEXT.search(attributes):
        sentence = "the formula has no stored value; open the workbook in a spreadsheet program and save it."
    else:
        return None
    reference = _REFERENCE.search(attributes)
    if reference is None:  # it may leave out where it is; then the whole sheet is under suspicion
        return _Odd(0, 0, sentence)
    column = 0
    for letter in reference[1]:
        column = column * 26 + letter - ord("A") + 1
    return _Odd(int(reference[2]), column - 1, sentence)
