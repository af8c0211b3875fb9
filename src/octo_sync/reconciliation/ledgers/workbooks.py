"""XLSX workbooks: the stored values of one sheet.

The library that reads them hands out an empty cell where a sheet shows an error, or where a program wrote a formula and no
value. Amounts would vanish without a word, so the sheet's XML is searched for both.
"""

import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from octo_sync.errors import ConfigError, LedgerError
from octo_sync.reconciliation.ledgers import base, keeping
from octo_sync.reconciliation.ledgers.assembling import Found, collected, from_files
from octo_sync.reconciliation.ledgers.base import Format, Ledger, Wanted

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")


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
        raise ConfigError("Reading xlsx needs python-calamine: pip install 'octo-sync[xlsx]'.") from None
    try:
        with zipfile.ZipFile(path) as archive:
            if (size := sum(item.file_size for item in archive.infolist())) > base.LARGEST:
                raise LedgerError(
                    f"{label}: unpacked it is {size / 1e6:,.0f} MB, and {base.LARGEST / 1e6:,.0f} MB are read at once; export "
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
    rows = iter(book.get_sheet_by_name(name).iter_rows())
    headers = [str(cell) for cell in next(islice(rows, form.header_row - 1, None), [])]
    if not any(header.strip() for header in headers):
        raise LedgerError(
            f"{place}, row {form.header_row}: there is no header; it is empty there. Set header_row to the row of the names, "
            "or sheet to another one."
        )
    positions = base.find(headers, wanted, f"{place}, row {form.header_row}")
    odds, footer = list(_odd_cells(archive, _part(archive, name))), list[int]()
    numbered = enumerate(rows, form.header_row + 1)
    kept = keeping.without_footer(numbered, form.skip_footer, footer, {odd.row for odd in odds})
    found = collected(kept, positions, wanted, place, "row")
    for odd in odds:
        if odd.row == 0:
            raise LedgerError(f"{place}: in a cell somewhere {odd.sentence}")
        if odd.row > form.header_row and odd.column in positions and odd.row not in footer:
            column = wanted[positions.index(odd.column)].name
            raise LedgerError(f'{place}, row {odd.row}, column "{column}": {odd.sentence}')
    return replace(found, notes=(*keeping.footer(place, footer), *found.notes))


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
    with archive.open(part) as xml:
        for _, element in ET.iterparse(xml):  # noqa: S314 - as above
            kind = element.tag.rpartition("}")[2]
            if kind == "c" and (odd := _odd(element)):
                yield odd
            if kind == "row":
                element.clear()


def _odd(cell: ET.Element) -> _Odd | None:
    parts = {part.tag.rpartition("}")[2]: part.text for part in cell}
    if cell.get("t") == "e":
        sentence = f"the cell shows {(parts.get('v') or 'an error')[:12]}; correct it in the sheet."
    elif "f" in parts and not parts.get("v") and cell.get("t") != "str":
        sentence = "the formula has no stored value; open the workbook in a spreadsheet program and save it."
    else:
        return None
    reference = _REFERENCE.fullmatch(cell.get("r", ""))
    if reference is None:  # it may leave out where it is; then the whole sheet is under suspicion
        return _Odd(0, 0, sentence)
    column = 0
    for letter in reference[1]:
        column = column * 26 + ord(letter) - ord("A") + 1
    return _Odd(int(reference[2]), column - 1, sentence)
